// RankBoost's two sums: how much each document should rise (its potential), and the threshold on
// one feature that follows these wishes best. No pair is ever formed: the weight of a pair is a
// factor of the winner times a factor of the loser, and sums of factors by label do the rest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

// Factors exp(s) around the middle of a query stay normal while its scores spread less than this.
constexpr double kFactorSpread = 1400;

// One query, rows by ascending label, NaN labels last; `n` counts those with a label.
struct LabelledList {
    const double* label;
    const double* score;
    const double* weight;  // of the pairs a document wins; null is 1
    int64_t n;

    double weight_of(int64_t i) const { return weight ? weight[i] : 1.0; }

    // Calls body(begin, end) for the rows of each label, from the smallest up or the largest down.
    template <class Body>
    void for_levels(bool up, Body&& body) const {
        if (up)
            for (int64_t a = 0, b; a < n; a = b) {
                for (b = a + 1; b < n && label[b] == label[a];) ++b;
                body(a, b);
            }
        else
            for (int64_t a, b = n; b > 0; b = a) {
                for (a = b - 1; a > 0 && label[a - 1] == label[b - 1];) --a;
                body(a, b);
            }
    }
};

// Scores so far apart that their factors overflow: the pairs one by one.
inline double potentials_by_pairs(const LabelledList& q, double* potential) {
    double total = 0;
    for (int64_t i = 0; i < q.n; ++i)
        for (int64_t j = 0; j < q.n && q.label[j] < q.label[i]; ++j) {
            const double pair = q.weight_of(i) * std::exp(q.score[j] - q.score[i]);
            potential[i] += pair;
            potential[j] -= pair;
            total += pair;
        }
    return total;
}

// potential_i = sum of w_i exp(s_j - s_i) over the losers j - sum of w_k exp(s_i - s_k) over the
// winners k. Returns the sum over all pairs.
inline double potentials_of(const LabelledList& q, double* potential) {
    std::fill_n(potential, q.n, 0.0);
    if (q.n < 2 || q.label[0] == q.label[q.n - 1]) return 0;
    const auto [low, high] = std::minmax_element(q.score, q.score + q.n);
    if (!(*high - *low < kFactorSpread)) return potentials_by_pairs(q, potential);
    const double middle = *low + (*high - *low) / 2;
    thread_local std::vector<double> lose, win;
    lose.resize(q.n), win.resize(q.n);
    for (int64_t i = 0; i < q.n; ++i) {
        lose[i] = std::exp(q.score[i] - middle);
        win[i] = q.weight_of(i) / lose[i];
    }
    double total = 0, passed = 0;
    q.for_levels(true, [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) total += potential[i] = win[i] * passed;
        for (int64_t i = a; i < b; ++i) passed += lose[i];
    });
    passed = 0;
    q.for_levels(false, [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) potential[i] -= lose[i] * passed;
        for (int64_t i = a; i < b; ++i) passed += win[i];
    });
    return total;
}

// Potentials of all documents; `total` (one number per query) gets the sums over pairs.
inline void pair_potentials(const double* label, const double* score, const double* weight,
                            const int64_t* offsets, int64_t n_queries, double* potential,
                            double* total, int n_threads) {
    const int64_t n_docs = offsets[n_queries];
    std::fill_n(potential, n_docs, 0.0);
    parallel_for(n_queries, n_docs * 20, n_threads, [&](int64_t q) {
        const int64_t start = offsets[q], size = offsets[q + 1] - start;
        const double* y = label + start;
        int64_t n = size;
        while (n > 0 && y[n - 1] != y[n - 1]) --n;
        const LabelledList list{y, score + start, weight ? weight + start : nullptr, n};
        total[q] = potentials_of(list, potential + start);
    });
}

// "Is feature `feature` above its threshold number `threshold`": 1 or 0; a missing value answers
// 1 if `missing`. `gain` is the sum of the potentials of the documents that answer 1.
struct Stump {
    int64_t feature = -1;
    int64_t threshold = 0;
    bool missing = false;
    double gain = 0;
};

// Documents of one feature as bins: bin b holds the values above b thresholds, the bin after the
// last one those that are missing.
template <class Bin>
void sum_bins(const Bin* bin, const double* potential, int64_t n, int64_t n_bins, double* sums) {
    // Four tables, so that equal bins in a row do not wait for one another.
    thread_local std::vector<double> tables;
    tables.assign(static_cast<size_t>(4 * n_bins), 0.0);
    double *t0 = tables.data(), *t1 = t0 + n_bins, *t2 = t1 + n_bins, *t3 = t2 + n_bins;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        t0[bin[i]] += potential[i];
        t1[bin[i + 1]] += potential[i + 1];
        t2[bin[i + 2]] += potential[i + 2];
        t3[bin[i + 3]] += potential[i + 3];
    }
    for (; i < n; ++i) t0[bin[i]] += potential[i];
    for (int64_t b = 0; b < n_bins; ++b) sums[b] = (t0[b] + t1[b]) + (t2[b] + t3[b]);
}

// The best stump of one feature by |gain|; among equals the smallest threshold, missing 0 first.
// Threshold number `n_thresholds` is above every value: only missing ones answer 1.
template <class Bin>
Stump best_of_feature(const Bin* bin, const double* potential, int64_t n, int64_t n_thresholds,
                      int64_t feature) {
    thread_local std::vector<double> sums;
    sums.resize(static_cast<size_t>(n_thresholds) + 2);
    sum_bins(bin, potential, n, n_thresholds + 2, sums.data());
    const double missing = sums[n_thresholds + 1];
    sums[n_thresholds + 1] = 0;  // from here on sums[t + 1] is what lies above threshold t
    for (int64_t t = n_thresholds; t > 0; --t) sums[t] += sums[t + 1];
    Stump best{feature, 0, false, 0};
    const auto offer = [&](int64_t t, bool side) {
        const double gain = sums[t + 1] + (side ? missing : 0.0);
        if (std::abs(gain) > std::abs(best.gain)) best = {feature, t, side, gain};
    };
    for (int64_t t = 0; t < n_thresholds; ++t) offer(t, false);
    if (missing != 0)
        for (int64_t t = 0; t <= n_thresholds; ++t) offer(t, true);
    return best;
}

template <class Bin>
Stump best_stump(const Bin* bins, const int64_t* n_thresholds, int64_t n_features, int64_t n_docs,
                 const double* potential, int n_threads) {
    std::vector<Stump> found(static_cast<size_t>(n_features));
    parallel_for(n_features, n_features * n_docs, n_threads, [&](int64_t f) {
        found[f] = best_of_feature(bins + f * n_docs, potential, n_docs, n_thresholds[f], f);
    });
    Stump best;
    for (const Stump& s : found)
        if (std::abs(s.gain) > std::abs(best.gain)) best = s;
    return best;
}

}  // namespace rankwise
