// Measures that only trec_eval computes. They are not sums over ranks, so their expectation under
// ties has no closed form: the ranking must come with one of the rules that order tied documents.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "metrics_values.hpp"

namespace rankwise::metrics {

// Calls body(rank, label) for each entry, ranks from 1. The documents of a block have equal labels.
template <class Body>
void for_ranks(const Ranking& r, Body&& body) {
    for_blocks(r, [&](size_t a, size_t b) {
        for (size_t i = a; i < b; ++i)
            body(r.entries[a].before + static_cast<int64_t>(i - a) + 1, r.entries[i].label);
        return true;
    });
}

// Largest precision at or after the point where `wanted` relevant documents have been found.
inline double interpolated(const Request& m, const Ranking& r, int64_t wanted) {
    double best = 0.0;
    int64_t found = 0;
    for_ranks(r, [&](int64_t rank, double label) {
        if (!m.relevant(label)) return;
        ++found;
        if (found >= wanted)
            best = std::max(best, static_cast<double>(found) / static_cast<double>(rank));
    });
    return best;
}

// Mean over recall levels; trec_eval 9 rounds the number of documents up from .1, 10 to nearest.
inline double interpolated_precision(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    double sum = 0.0;
    for (const double level : m.weights) {
        const double exact = level * static_cast<double>(R);
        sum += interpolated(m, r,
                            m.round_up ? static_cast<int64_t>(exact + 0.9) : std::llround(exact));
    }
    return sum / static_cast<double>(m.weights.size());
}

inline double utility(const Request& m, const Ranking& r) {
    const auto R = static_cast<double>(count_relevant(m, r));
    const auto n = static_cast<double>(r.n_ranked);
    const double found = hits(m, r, r.n_ranked);
    return m.weights[0] * found + m.weights[1] * (n - found) + m.weights[2] * (R - found) +
           m.weights[3] * (found - n - R);
}

// 1 / log2(2 + nonrelevant documents above), averaged over the relevant documents.
inline double bin_g(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    double sum = 0.0;
    int64_t found = 0;
    for_ranks(r, [&](int64_t rank, double label) {
        if (m.relevant(label)) sum += 1.0 / std::log2(static_cast<double>(2 + rank - ++found));
    });
    return sum / static_cast<double>(R);
}

// gain / log2(2 + cost so far - gain so far), over the sum of all gains; a rank costs the ideal
// gain there, at least 1.
inline double g(const Request& m, const Ranking& r) {
    if (without_gain(m, r)) return m.empty;
    const auto n_labels = static_cast<int64_t>(r.labels.size());
    double value = 0.0, gained = 0.0, cost = 0.0, all = 0.0;
    int64_t paid = 0;
    for_ranks(r, [&](int64_t rank, double label) {
        for (; paid < rank; ++paid)
            cost += paid < n_labels ? std::max(m.gain_of(r.labels[paid]), 1.0) : 1.0;
        const double gain = m.gain_of(label);
        gained += gain;
        value += gain / std::log2(2.0 + cost - gained);
    });
    for (const double label : r.labels) all += m.gain_of(label);
    return value / all;
}

// DCG at the documents with gain, in rank order, with their ranks; and the ideal DCG at each rank.
struct Curve {
    std::vector<int64_t> rank;
    std::vector<double> dcg, ideal;  // ideal[i]: of the first i + 1 documents

    Curve(const Request& m, const Ranking& r) {
        double sum = 0.0;
        for_ranks(r, [&](int64_t at, double label) {
            if (!(m.gain_of(label) > 0.0)) return;
            sum += m.gain_of(label) * m.discounts[at - 1];
            rank.push_back(at);
            dcg.push_back(sum);
        });
        sum = 0.0;
        for (size_t i = 0; i < r.labels.size() && m.gain_of(r.labels[i]) > 0.0; ++i)
            ideal.push_back(sum += m.gain_of(r.labels[i]) * m.discounts[i]);
    }

    double last() const { return dcg.empty() ? 0.0 : dcg.back(); }

    double ideal_at(int64_t at) const {
        return ideal[std::min(static_cast<size_t>(at), ideal.size()) - 1];
    }

    double dcg_at(int64_t at) const {
        const auto after = std::upper_bound(rank.begin(), rank.end(), at) - rank.begin();
        return after == 0 ? 0.0 : dcg[after - 1];
    }
};

// Mean of nDCG at the ranks of the documents with gain; those missed count with the last DCG.
inline double ndcg_rel(const Request& m, const Ranking& r) {
    if (without_gain(m, r)) return m.empty;
    const Curve curve(m, r);
    double sum = 0.0;
    for (size_t i = 0; i < curve.rank.size(); ++i)
        sum += curve.dcg[i] / curve.ideal_at(curve.rank[i]);
    const auto n = static_cast<double>(curve.ideal.size());
    sum += (n - static_cast<double>(curve.rank.size())) * curve.last() / curve.ideal.back();
    return sum / n;
}

// Mean of nDCG at the ranks where the ideal gain changes, and at the end of the list where it is
// longer than the ideal one by two or more (trec_eval's rule).
inline double r_ndcg(const Request& m, const Ranking& r) {
    if (without_gain(m, r)) return m.empty;
    const Curve curve(m, r);
    const auto n = static_cast<int64_t>(curve.ideal.size());
    double sum = 0.0;
    int64_t points = 0;
    for (int64_t i = 1; i <= n; ++i) {
        if (i < n && r.labels[i] == r.labels[i - 1]) continue;
        sum += curve.dcg_at(i) / curve.ideal_at(i);
        ++points;
    }
    if (r.n_ranked > n + 1) {
        sum += curve.last() / curve.ideal.back();
        ++points;
    }
    return sum / static_cast<double>(points);
}

}  // namespace rankwise::metrics
