// Lambda gradients for metrics of the form "gain times discount" (nDCG, DCG, precision, RBP, ...).
//
// A pair of documents of one query with gains g_i > g_j pulls i up and j down with the force
//     w_ij rho_ij,   w_ij = (g_i - g_j) |D(p_i) - D(p_j)| / ideal,
//     rho_ij = 1 / (1 + exp(sigma (s_i - s_j))),
// where p is the place in the current ranking and D the discount, which never rises. Three
// things make the pass over all pairs cheap:
//   * rho_ij = E_j / (E_i + E_j) with E = exp(sigma s): one exponential per document, none per
//   pair;
//   * documents sorted by score, so that "upper" documents meet contiguous runs of "lower" ones,
//     eight at a time, without a branch;
//   * pairs inside a tied block have rho = 1/2 and one common weight: a sort and two prefix
//     sums replace them, and the first round of boosting, where every score is 0, is O(n log n).
//
// Tied scores. Positions inside a tied block are uniform over the orders of its documents, and the
// weight of a pair is the expectation of |D(p_i) - D(p_j)| over those orders: the difference of the
// blocks' mean discounts between blocks, the mean over ordered pairs of places inside one. A
// truncation keeps pairs with at least one document in the first T places; the expectation then
// runs over those orders in which the pair is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

struct LambdaProblem {
    const double* gain;  // NaN: unjudged, holds a place but takes part in no pair
    const double* score;
    const double* weight;  // per document, the winner's counts; may be null
    const int64_t* offsets;
    const double* discount;       // by place, never rising, at least 0
    const double* inverse_ideal;  // per query, 0 leaves the query out
    double sigma;
    int64_t truncation;   // at least one document of a pair is in the first `truncation` places
    bool stable;          // equal scores keep their row order instead of forming tied blocks
    bool scale_by_gap;    // divide w_ij by .01 + |s_i - s_j| where a query's scores differ
    bool scale_by_query;  // multiply by log2(1 + S) / S, S the sum of all forces of the query
};

// Places [first, last) of the ranking hold equal scores; [begin, end) are its judged documents.
struct TiedBlock {
    int64_t begin, end;
    double mean;    // E D(p): what a document above pays for a document of this block
    double upper;   // E D(p) [p < T]: what a document of this block is worth as the upper one
    double share;   // P(p < T)
    double within;  // E |D(p) - D(q)| [min(p, q) < T] over two places of the block
};

struct Scored {
    double score;
    int64_t row;  // in the query
};

// The judged documents of one query, best score first. Columns are padded to whole vectors.
struct ScoredList {
    int64_t n = 0;
    std::vector<Scored> ranking, spare;
    std::vector<TiedBlock> blocks;
    std::vector<double> level, gain, lower, score, weight, force, mass;
    std::vector<int64_t> row;
    std::vector<int64_t> by_gain;

    void resize(int64_t documents) {
        const size_t padded = static_cast<size_t>(documents) + 8;
        for (auto* column : {&level, &gain, &lower, &score, &weight, &force, &mass})
            if (column->size() < padded) column->resize(padded);
        if (row.size() < padded) row.resize(padded);
    }
};

inline TiedBlock tied_block(const double* discount, int64_t first, int64_t last, int64_t T) {
    TiedBlock block{};
    if (last - first == 1) {
        block.mean = discount[first];
        block.share = first < T ? 1.0 : 0.0;
        block.upper = block.share * block.mean;
        return block;
    }
    const double m = static_cast<double>(last - first);
    double sum = 0, top = 0, pairs = 0;
    for (int64_t p = last - 1; p >= first; --p) {
        if (p < T) {
            pairs += static_cast<double>(last - 1 - p) * discount[p] - sum;
            top += discount[p];
        }
        sum += discount[p];
    }
    block.mean = sum / m;
    block.upper = top / m;
    block.share = static_cast<double>(std::clamp<int64_t>(T - first, 0, last - first)) / m;
    block.within = std::max(pairs, 0.0) / (m * (m - 1) / 2);
    return block;
}

// Place of each document among n: how many beat it, or equal it and come before. Quadratic, but
// without a branch to predict: for short runs faster than sorting.
RANKWISE_CLONES inline void places_by_counting(const double* score, int64_t n, int64_t* place) {
    for (int64_t i = 0; i < n; ++i) {
        int64_t above = 0;
        for (int64_t j = 0; j < i; ++j) above += score[j] >= score[i];
        for (int64_t j = i + 1; j < n; ++j) above += score[j] > score[i];
        place[i] = above;
    }
}

// Fills list.ranking by descending score, equal scores in row order: runs sorted by counting, then
// merged.
inline void sort_by_score(const double* score, int64_t n, ScoredList& list) {
    constexpr int64_t kRun = 32;
    auto &ranking = list.ranking, &spare = list.spare;
    ranking.resize(n), spare.resize(n);
    int64_t place[kRun];
    for (int64_t start = 0; start < n; start += kRun) {
        const int64_t size = std::min(kRun, n - start);
        places_by_counting(score + start, size, place);
        for (int64_t i = 0; i < size; ++i)
            ranking[start + place[i]] = {score[start + i], start + i};
    }
    const auto before = [](const Scored& a, const Scored& b) { return a.score > b.score; };
    for (int64_t run = kRun; run < n; run *= 2) {
        for (int64_t start = 0; start < n; start += 2 * run) {
            const auto from = ranking.begin();
            const int64_t half = std::min(start + run, n), end = std::min(start + 2 * run, n);
            std::merge(from + start, from + half, from + half, from + end, spare.begin() + start,
                       before);
        }
        ranking.swap(spare);
    }
}

// Sorts query q by score and lays its judged documents out as columns. False: no pair to visit.
inline bool load_query(const LambdaProblem& in, int64_t q, ScoredList& list) {
    const int64_t start = in.offsets[q], size = in.offsets[q + 1] - start;
    list.n = 0;
    if (size < 2 || in.inverse_ideal[q] == 0) return false;
    const double *score = in.score + start, *gain = in.gain + start;
    sort_by_score(score, size, list);
    list.resize(size);
    list.blocks.clear();
    int64_t n = 0;
    for (int64_t first = 0, last; first < size; first = last) {
        last = first + 1;
        while (!in.stable && last < size && list.ranking[last].score == list.ranking[first].score)
            ++last;
        TiedBlock block = tied_block(in.discount, first, last, in.truncation);
        block.begin = n;
        for (int64_t p = first; p < last; ++p) {
            const int64_t i = list.ranking[p].row;
            if (gain[i] != gain[i]) continue;
            list.row[n] = start + i;
            list.gain[n] = gain[i];
            list.score[n] = score[i];
            list.lower[n] = block.mean;
            list.weight[n] = in.weight ? in.weight[start + i] : 1.0;
            ++n;
        }
        block.end = n;
        list.blocks.push_back(block);
    }
    list.n = n;
    for (int64_t i = n; i < n + 8; ++i)
        list.gain[i] = list.score[i] = list.lower[i] = list.weight[i] = 0, list.level[i] = 1;
    std::fill_n(list.force.begin(), n + 8, 0.0);
    std::fill_n(list.mass.begin(), n + 8, 0.0);
    return n > 1;
}

// Inside one tied block the change is the same for all pairs and rho is 1/2. Adds to each document
//   force: change / 2 * (sum over its losers w_i (g_i - g_j) - sum over its winners w_j (g_j -
//   g_i)) mass:  change / 4 * (the same two sums added)
// and returns the sum over pairs of change w_winner |g_i - g_j|.
inline double add_within_block(ScoredList& list, const TiedBlock& block, double change) {
    if (block.end - block.begin < 2 || change == 0) return 0;
    auto& order = list.by_gain;
    order.resize(block.end - block.begin);
    for (size_t i = 0; i < order.size(); ++i) order[i] = block.begin + static_cast<int64_t>(i);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return list.gain[a] < list.gain[b] || (list.gain[a] == list.gain[b] && a < b);
    });
    const auto total_gap = [&](auto from, auto to, int sign) {
        // Walks the sorted documents in one direction; the sums hold those strictly passed.
        double count = 0, sum = 0, pending_count = 0, pending_sum = 0, pairs = 0;
        for (auto it = from; it != to; ++it) {
            const int64_t i = *it;
            const double g = list.gain[i];
            if (it != from && g != list.gain[*(it - 1)]) {
                count += pending_count, sum += pending_sum;
                pending_count = pending_sum = 0;
            }
            // Upwards the passed documents lose against i, which brings its own weight; downwards
            // they win, each with theirs.
            const double w = sign > 0 ? 1.0 : list.weight[i];
            const double gap = sign > 0 ? list.weight[i] * (count * g - sum) : sum - count * g;
            list.force[i] += change / 2 * sign * gap;
            list.mass[i] += change / 4 * gap;
            pairs += gap;
            pending_count += w, pending_sum += w * g;
        }
        return pairs;
    };
    const double pairs = total_gap(order.begin(), order.end(), 1);
    total_gap(order.rbegin(), order.rend(), -1);
    return change * pairs;
}

constexpr double kSmallestGap = 0.01;

// A query whose scores are all equal has no gaps to divide by.
inline bool scales_by_gap(const LambdaProblem& in, const ScoredList& list) {
    return in.scale_by_gap && list.score[0] != list.score[list.n - 1];
}

constexpr int64_t kLanes = 4;
using Lanes = double __attribute__((vector_size(8 * kLanes)));
using LaneBits = int64_t __attribute__((vector_size(8 * kLanes)));
// Read from kLanes - k: the first k lanes 0, the rest 1; from 2 kLanes - k: the first k lanes 1.
constexpr double kEdge[3 * kLanes] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};

inline __attribute__((always_inline)) void load(Lanes& v, const double* p) {
    std::memcpy(&v, p, sizeof v);
}
inline __attribute__((always_inline)) void store(double* p, const Lanes& v) {
    std::memcpy(p, &v, sizeof v);
}

// Adds the pairs (i, j) for all j in [begin, n), i above j. Returns the sum of their |force|.
template <bool kWeighted, bool kGap>
inline __attribute__((always_inline)) double add_row(ScoredList& list, int64_t i, int64_t begin,
                                                     double level_i, double upper, double share) {
    const int64_t n = list.n;
    const double *level = list.level.data(), *gain = list.gain.data(), *lower = list.lower.data();
    const double *score = list.score.data(), *weight = list.weight.data();
    double *force = list.force.data(), *mass = list.mass.data();
    const double gain_i = gain[i], score_i = score[i], weight_i = weight[i];
    Lanes row_force{}, row_mass{}, row_total{};
    const Lanes one = Lanes{} + 1.0;
    const LaneBits no_sign = LaneBits{} + INT64_MAX;
    // Every row starts at a whole vector, so that what the row before stored is loaded in the same
    // pieces; the lanes before `begin` and after `n` are masked.
    const int64_t first = begin - begin % kLanes;
    Lanes inside;
    load(inside, kEdge + kLanes - begin % kLanes);
    for (int64_t j = first; j < n; j += kLanes) {
        Lanes E, g, d, f, m;
        load(E, level + j), load(g, gain + j), load(d, lower + j);
        load(f, force + j), load(m, mass + j);
        if (n - j < kLanes) {
            Lanes end;
            load(end, kEdge + 2 * kLanes - (n - j));
            inside *= end;
        }
        const Lanes gap = (gain_i - g) * inside;
        inside = one;
        const Lanes size = (Lanes)((LaneBits)gap & no_sign);
        Lanes i_wins = 0.5 * (gap + size);  // one of the two is 0, the other |gap|
        Lanes j_wins = size - i_wins;
        if constexpr (kWeighted) {
            Lanes w;
            load(w, weight + j);
            i_wins *= weight_i, j_wins *= w;
        }
        Lanes change = upper - share * d;
        if constexpr (kGap) {
            Lanes s;
            load(s, score + j);
            const Lanes distance = score_i - s;
            change /= kSmallestGap + (Lanes)((LaneBits)distance & no_sign);
        }
        const Lanes inverse = one / (level_i + E);
        const Lanes p_i = level_i * inverse, p_j = E * inverse;
        const Lanes up = change * (i_wins * p_j - j_wins * p_i);
        const Lanes bend = change * (i_wins + j_wins) * (p_i * p_j);
        row_force += up, row_mass += bend;
        row_total += (Lanes)((LaneBits)up & no_sign);
        store(force + j, f - up), store(mass + j, m + bend);
    }
    double total_force = 0, total_mass = 0, total = 0;
    for (int64_t l = 0; l < kLanes; ++l)
        total_force += row_force[l], total_mass += row_mass[l], total += row_total[l];
    list.force[i] += total_force;
    list.mass[i] += total_mass;
    return total;
}

// exp(sigma s) around the middle of the scores stays normal while they spread over less than this.
constexpr double kSpread = 1400;

template <bool kWeighted, bool kGap>
inline __attribute__((always_inline)) double add_pairs(const LambdaProblem& in, ScoredList& list) {
    const double high = list.score[0], low = list.score[list.n - 1];
    const bool wide = !(in.sigma * (high - low) < kSpread);
    const double middle = low + (high - low) / 2;
    if (!wide)
        for (int64_t i = 0; i < list.n; ++i)
            list.level[i] = std::exp(in.sigma * (list.score[i] - middle));
    double total = 0;
    for (const TiedBlock& block : list.blocks) {
        if (block.share == 0 || block.upper == 0) break;
        const double within = kGap ? block.within / kSmallestGap : block.within;
        total += add_within_block(list, block, within) / 2;
        for (int64_t i = block.begin; i < block.end; ++i) {
            double level_i = list.level[i];
            if (wide) {
                level_i = 1;
                for (int64_t j = block.end; j < list.n; ++j)
                    list.level[j] = std::exp(in.sigma * (list.score[j] - list.score[i]));
            }
            total +=
                add_row<kWeighted, kGap>(list, i, block.end, level_i, block.upper, block.share);
        }
    }
    return total;
}

// The four kinds of pair loop; one clone of each per instruction set.
RANKWISE_CLONES inline double add_all_pairs(const LambdaProblem& in, ScoredList& list) {
    const bool gap = scales_by_gap(in, list);
    if (in.weight) return gap ? add_pairs<true, true>(in, list) : add_pairs<true, false>(in, list);
    return gap ? add_pairs<false, true>(in, list) : add_pairs<false, false>(in, list);
}

// Gradient and curvature of the weighted pair loss of every document; the gradient is minus the
// force.
inline void lambda_gradients(const LambdaProblem& in, int64_t n_queries, double* gradient,
                             double* curvature, int n_threads) {
    const int64_t n_docs = in.offsets[n_queries];
    std::fill_n(gradient, n_docs, 0.0);
    std::fill_n(curvature, n_docs, 0.0);
    parallel_for(n_queries, n_docs * 50, n_threads, [&](int64_t q) {
        thread_local ScoredList list;
        if (!load_query(in, q, list)) return;
        const double total = add_all_pairs(in, list);
        double scale = in.sigma * in.inverse_ideal[q];
        const double sum = 2 * scale * total;
        if (in.scale_by_query && sum > 0) scale *= std::log2(1 + sum) / sum;
        for (int64_t i = 0; i < list.n; ++i) {
            gradient[list.row[i]] = -scale * list.force[i];
            // Equal discounts may differ by rounding: no curvature below 0.
            curvature[list.row[i]] = in.sigma * scale * std::max(list.mass[i], 0.0);
        }
    });
}

// The loss of query q: the sum over pairs of w_ij log(1 + exp(-sigma (s_i - s_j))).
inline double lambda_value_of(const LambdaProblem& in, int64_t q, ScoredList& list) {
    if (!load_query(in, q, list)) return 0;
    const bool by_gap = scales_by_gap(in, list);
    double value = 0;
    for (const TiedBlock& block : list.blocks) {
        const double within = by_gap ? block.within / kSmallestGap : block.within;
        value += std::log(2.0) * add_within_block(list, block, within);
        for (int64_t i = block.begin; i < block.end; ++i)
            for (int64_t j = block.end; j < list.n; ++j) {
                const double gap = list.gain[i] - list.gain[j], d = list.score[i] - list.score[j];
                double w = std::abs(gap) * list.weight[gap > 0 ? i : j] *
                           (block.upper - block.share * list.lower[j]);
                if (by_gap) w /= kSmallestGap + d;
                const double margin = in.sigma * (gap > 0 ? d : -d);
                value += w * (std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0));
            }
    }
    return value * in.inverse_ideal[q];
}

inline void lambda_values(const LambdaProblem& in, int64_t n_queries, double* value,
                          int n_threads) {
    parallel_for(n_queries, in.offsets[n_queries] * 500, n_threads, [&](int64_t q) {
        thread_local ScoredList list;
        value[q] = lambda_value_of(in, q, list);
    });
}

}  // namespace rankwise
