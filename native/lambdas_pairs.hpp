// The pass over the pairs of one query's sorted list: force and curvature of every document.
//
// Three walks do it.
//   * Pairs inside a tied block have rho = 1/2 and, for all metrics but ERR, one change per unit of
//     gain difference: two prefix sums replace them.
//   * For a gain times discount the change is |D_i - D_j| whichever document is above, so documents
//     are laid out by gain and each meets all those with smaller gains as one contiguous run: pairs
//     with equal gains are never looked at, and the winner is known.
//   * For all other changes each document meets those below it, whichever of the two wins.
// rho_ij = E_j / (E_i + E_j) with E = exp(sigma s) takes one exponential per document, none per
// pair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "lambdas_changes.hpp"
#include "simd.hpp"

namespace rankwise {

// How the weights of a pair follow from the columns of the list.
enum class PairWeights {
    change,    // the change of a swap, for the document with the larger gain
    distance,  // the same plus a function of the distance of the two places
    own,       // each document of a pair wins with its own gain times its own column
};

struct LambdaOptions {
    SwapForm form = SwapForm::discount;
    PairWeights weights = PairWeights::change;
    double sigma = 1;
    int64_t truncation = 0;       // pairs need a document in the first `truncation` places
    bool stable = false;          // equal scores keep their row order, no tied blocks
    bool scale_by_gap = false;    // divide w_ij by .01 + |s_i - s_j| where a query's scores differ
    bool scale_by_query = false;  // multiply by log2(1 + S) / S, S the sum of the query's forces
    bool per_document = false;    // the table by place has one entry per document, not per place
    double constant = 1;          // change of every pair, for SwapForm::constant
    int64_t pairs_per_doc = 0;    // pairs drawn per document of a long list; 0: all pairs
    uint64_t seed = 0;
};

// What the walks of one query read besides its list.
struct LambdaQuery {
    const LambdaOptions& options;
    const double* value;       // by place
    const int32_t* gain_rank;  // of each document: its gain among the query's different ones
    const double* distance;    // change by the distance of two places, from 0; or null
    const double* tail;        // its sums from each distance to the end
    int64_t reach;             // places that can be the upper one of a pair
    bool weighted;
};

constexpr double kSmallestGap = 0.01;

// A query whose scores are all equal has no gaps to divide by.
inline bool scales_by_gap(const LambdaOptions& in, const ScoredList& list) {
    return in.scale_by_gap && list.score[0] != list.score[list.n - 1];
}

// --- pairs inside a tied block -----------------------------------------------------------------

// Adds to each document of the block, rho being 1/2,
//   force: change / 2 * (sum over its losers w_i (g_i - g_j) - sum over its winners w_j (g_j -
//   g_i)) mass:  change / 4 * (the same two sums added)
// and returns the sum over pairs of change w_winner |g_i - g_j|. The block is in canonical order:
// gains fall.
inline double add_equal_changes(ScoredList& list, const TiedBlock& block, double change) {
    if (block.end - block.begin < 2 || change == 0) return 0;
    double total = 0;
    const auto pass = [&](int64_t from, int64_t to, int64_t step) {
        // Walks from one end; the sums hold those strictly passed: losers upwards, each bringing
        // this document's weight, winners downwards, each with its own.
        const bool upwards = step < 0;
        double count = 0, sum = 0, pending_count = 0, pending_sum = 0;
        for (int64_t i = from; i != to; i += step) {
            const double g = list.gain[i];
            if (i != from && g != list.gain[i - step]) {
                count += pending_count, sum += pending_sum;
                pending_count = pending_sum = 0;
            }
            const double gap = upwards ? list.weight[i] * (count * g - sum) : sum - count * g;
            list.force[i] += (upwards ? change : -change) / 2 * gap;
            list.mass[i] += change / 4 * gap;
            if (upwards) total += gap;
            const double w = upwards ? 1.0 : list.weight[i];
            pending_count += w, pending_sum += w * g;
        }
    };
    pass(block.end - 1, block.begin - 1, -1);
    pass(block.begin, block.end, 1);
    return change * total;
}

// The same for ERR, whose change depends on the two gains: one computation per pair of gains.
inline double add_cascade_changes(const double* v, int64_t reach, ScoredList& list,
                                  const TiedBlock& block, double factor) {
    thread_local CascadeScratch products;
    const int64_t m = block.size(), T = block.reached(reach);
    if (block.end - block.begin < 2 || T == 0 || list.gain[block.begin] == list.gain[block.end - 1])
        return 0;
    block_products(list, block, products.all);
    const auto run_end = [&](int64_t i) {
        int64_t end = i + 1;
        while (end < block.end && list.gain[end] == list.gain[i]) ++end;
        return end;
    };
    double total = 0;
    for (int64_t a = block.begin, a_end; a < block.end; a = a_end) {
        a_end = run_end(a);
        products.all.without(1 - list.gain[a], products.one);
        const double weights =
            std::accumulate(list.weight.begin() + a, list.weight.begin() + a_end, 0.0);
        for (int64_t b = a_end, b_end; b < block.end; b = b_end) {
            b_end = run_end(b);
            products.one.without(1 - list.gain[b], products.two);
            const double change = factor * (list.gain[a] - list.gain[b]) *
                                  cascade_within(v + block.first, m, T, products.two);
            const auto losers = static_cast<double>(b_end - b);
            for (int64_t i = a; i < a_end; ++i) {
                list.force[i] += change / 2 * losers * list.weight[i];
                list.mass[i] += change / 4 * losers * list.weight[i];
            }
            for (int64_t j = b; j < b_end; ++j) {
                list.force[j] -= change / 2 * weights;
                list.mass[j] += change / 4 * weights;
            }
            total += change * losers * weights;
        }
    }
    return total;
}

// Each document wins with its own gain: w_i = g_i c for all pairs of the block.
inline double add_own_weights(ScoredList& list, const TiedBlock& block, double c) {
    const auto n = static_cast<double>(block.end - block.begin);
    if (n < 2 || c == 0) return 0;
    double sum = 0;
    for (int64_t i = block.begin; i < block.end; ++i) sum += list.gain[i] * list.weight[i];
    for (int64_t i = block.begin; i < block.end; ++i) {
        const double own = list.gain[i] * list.weight[i];
        list.force[i] += c / 2 * (n * own - sum);
        list.mass[i] += c / 4 * ((n - 2) * own + sum);
    }
    return c * (n - 1) * sum;
}

inline double add_tied_pairs(const LambdaQuery& in, ScoredList& list, const TiedBlock& block,
                             double within) {
    if (in.options.weights == PairWeights::own) return add_own_weights(list, block, within);
    if (in.options.form == SwapForm::cascade)
        return add_cascade_changes(in.value, in.reach, list, block, within);
    return add_equal_changes(list, block, within);
}

// --- vectors -----------------------------------------------------------------------------------

constexpr int64_t kLanes = 4;
using Lanes4 = double __attribute__((vector_size(8 * kLanes)));
using LaneBits = int64_t __attribute__((vector_size(8 * kLanes)));
// Read from kLanes - k: the first k lanes 0, the rest 1; from 2 kLanes - k: the first k lanes 1.
constexpr double kEdge[3 * kLanes] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};

#define RANKWISE_ALWAYS inline __attribute__((always_inline))

RANKWISE_ALWAYS void load4(Lanes4& v, const double* p) { std::memcpy(&v, p, sizeof v); }
RANKWISE_ALWAYS void store4(double* p, const Lanes4& v) { std::memcpy(p, &v, sizeof v); }
RANKWISE_ALWAYS void absolute(const Lanes4& v, Lanes4& out) {
    out = (Lanes4)((LaneBits)v & (LaneBits{} + INT64_MAX));
}
RANKWISE_ALWAYS double sum4(const Lanes4& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// --- documents by gain: changes |U_i - S_i L_j| ------------------------------------------------

// Runs of documents by rising gain. Pairs of a run with an earlier one have different blocks.
struct GainRun {
    int64_t begin = 0, end = 0;
};

// The list laid out anew: documents whose whole block is within reach, those of the block that
// straddles the reach, and those below it; each run by rising gain and place, padded to whole
// vectors.
struct GainLayout {
    GainRun top, straddling, below;
    std::vector<double> level, gain, lower, score, weight, force, mass;
    std::vector<int64_t> from;   // where in the list
    std::vector<int64_t> start;  // where the next document of each gain goes

    void resize(int64_t documents) {
        const size_t padded = static_cast<size_t>(documents) + 4 * kLanes;
        for (auto* c : {&level, &gain, &lower, &score, &weight, &force, &mass})
            if (c->size() < padded) c->resize(padded);
        if (from.size() < padded) from.resize(padded);
    }

    void add(const ScoredList& list, int64_t i, int64_t to) {
        level[to] = list.level[i], gain[to] = list.gain[i], lower[to] = list.lower[i];
        score[to] = list.score[i], weight[to] = list.weight[i], from[to] = i;
        force[to] = mass[to] = 0;
    }

    // Documents [first, last) of the list become a run from `begin` on, by a counting sort.
    GainRun add_run(const int32_t* gain_rank, const ScoredList& list, int64_t first, int64_t last,
                    int64_t begin) {
        start.clear();
        for (int64_t i = first; i < last; ++i) {
            const auto rank = static_cast<size_t>(gain_rank[list.doc[i]]);
            if (rank + 2 > start.size()) start.resize(rank + 2, 0);
            ++start[rank + 1];
        }
        for (size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
        for (int64_t i = first; i < last; ++i)
            add(list, i, begin + start[gain_rank[list.doc[i]]]++);
        const int64_t end = begin + last - first;
        for (int64_t i = end; i % kLanes != 0; ++i) {
            gain[i] = lower[i] = score[i] = weight[i] = force[i] = mass[i] = 0;
            level[i] = 1;
        }
        return {begin, end};
    }
};

inline void lay_out(const LambdaQuery& in, const ScoredList& list, GainLayout& out) {
    out.resize(list.size);
    int64_t top = 0, straddling = 0;  // ends in the list
    for (const TiedBlock& block : list.blocks) {
        const int64_t T = block.reached(in.reach);
        if (T > 0) straddling = block.end;
        if (T < block.size()) break;
        top = block.end;
    }
    const auto whole = [](int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; };
    out.top = out.add_run(in.gain_rank, list, 0, top, 0);
    out.straddling = out.add_run(in.gain_rank, list, top, straddling, whole(out.top.end));
    out.below = out.add_run(in.gain_rank, list, straddling, list.n, whole(out.straddling.end));
}

// One document against a run: what it is worth as the upper one of the pairs.
struct GainRow {
    double level, gain, score, weight, U, S;
    Lanes4 force{}, mass{}, total{};
};

// Adds the pairs of a document with those in [begin, end), which all have smaller gains (kWins) or
// all have larger ones.
template <bool kWins, bool kGap>
RANKWISE_ALWAYS void add_gain_run(GainLayout& list, GainRow& row, int64_t begin, int64_t end) {
    if (begin >= end) return;
    const Lanes4 one = Lanes4{} + 1.0;
    const int64_t first = begin - begin % kLanes;
    Lanes4 inside;
    load4(inside, kEdge + kLanes - begin % kLanes);
    bool masked = begin != first;
    for (int64_t j = first; j < end; j += kLanes) {
        Lanes4 E, g, L, F, M;
        load4(E, list.level.data() + j), load4(g, list.gain.data() + j);
        load4(L, list.lower.data() + j);
        load4(F, list.force.data() + j), load4(M, list.mass.data() + j);
        Lanes4 c;
        absolute(row.U - row.S * L, c);
        if constexpr (kWins) {
            c *= (row.gain - g) * row.weight;
        } else {
            Lanes4 w;
            load4(w, list.weight.data() + j);
            c *= (g - row.gain) * w;
        }
        if (end - j < kLanes) {
            Lanes4 tail;
            load4(tail, kEdge + 2 * kLanes - (end - j));
            inside *= tail, masked = true;
        }
        if (masked) c *= inside, inside = one, masked = false;
        if constexpr (kGap) {
            Lanes4 s;
            load4(s, list.score.data() + j);
            Lanes4 distance;
            absolute(row.score - s, distance);
            c /= kSmallestGap + distance;
        }
        const Lanes4 inverse = one / (row.level + E);
        const Lanes4 loser = (kWins ? E : Lanes4{} + row.level) * inverse;
        const Lanes4 f = c * loser;
        const Lanes4 bend = f - f * loser;
        row.total += f, row.mass += bend;
        store4(list.force.data() + j, kWins ? F - f : F + f);
        store4(list.mass.data() + j, M + bend);
    }
}

template <bool kGap>
RANKWISE_ALWAYS double add_row_by_gain(GainLayout& list, int64_t i, double U, double S,
                                       const GainRun& losers, const GainRun (&others)[2],
                                       int64_t (&smaller)[2], int64_t (&larger)[2]) {
    GainRow won{list.level[i], list.gain[i], list.score[i], list.weight[i], U, S};
    GainRow lost = won;
    add_gain_run<true, kGap>(list, won, losers.begin, losers.end);
    for (int r = 0; r < 2; ++r) {
        const GainRun& run = others[r];
        while (smaller[r] < run.end && list.gain[smaller[r]] < won.gain) ++smaller[r];
        while (larger[r] < run.end && list.gain[larger[r]] <= won.gain) ++larger[r];
        add_gain_run<true, kGap>(list, won, run.begin, smaller[r]);
        add_gain_run<false, kGap>(list, lost, larger[r], run.end);
    }
    const double up = sum4(won.total), down = sum4(lost.total);
    list.force[i] += up - down;
    list.mass[i] += sum4(won.mass) + sum4(lost.mass);
    return up + down;
}

// The pairs of the documents of a run with those of two others, and, where the blocks of the run
// are all different, among themselves.
template <bool kGap>
RANKWISE_ALWAYS double add_rows_by_gain(const ScoredList& list, GainLayout& layout,
                                        const GainRun& rows, const GainRun (&others)[2],
                                        bool among) {
    int64_t smaller[2] = {others[0].begin, others[1].begin};
    int64_t larger[2] = {others[0].begin, others[1].begin};
    int64_t run_begin = rows.begin;
    double total = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        if (layout.gain[i] != layout.gain[run_begin]) run_begin = i;
        const int64_t at = layout.from[i];
        const GainRun losers{rows.begin, among ? run_begin : rows.begin};
        total += add_row_by_gain<kGap>(layout, i, list.upper[at], list.share[at], losers, others,
                                       smaller, larger);
    }
    return total;
}

// All pairs of different blocks of a gain times discount. list.level is filled.
template <bool kGap>
RANKWISE_ALWAYS double add_pairs_by_gain(const LambdaQuery& in, ScoredList& list,
                                         GainLayout& layout) {
    lay_out(in, list, layout);
    const GainRun below_top[2] = {layout.straddling, layout.below};
    const GainRun below[2] = {layout.below, GainRun{}};
    const double total = add_rows_by_gain<kGap>(list, layout, layout.top, below_top, true) +
                         add_rows_by_gain<kGap>(list, layout, layout.straddling, below, false);
    for (const GainRun& run : {layout.top, layout.straddling, layout.below})
        for (int64_t i = run.begin; i < run.end; ++i) {
            list.force[layout.from[i]] += layout.force[i];
            list.mass[layout.from[i]] += layout.mass[i];
        }
    return total;
}

// --- documents by place: changes of any form ---------------------------------------------------

// Adds the pairs (i, j) for all j in [begin, n), i above j. Returns the sum of their forces.
template <PairWeights kWeights, bool kGap>
RANKWISE_ALWAYS double add_row_by_place(ScoredList& list, int64_t i, int64_t begin,
                                        double level_i) {
    const int64_t n = list.n;
    const double gain_i = list.gain[i], score_i = list.score[i], weight_i = list.weight[i];
    const double upper = list.upper[i], share = list.share[i];
    Lanes4 row_force{}, row_mass{}, row_total{};
    const Lanes4 one = Lanes4{} + 1.0;
    // Every row starts at a whole vector, so that what the row before stored is loaded in the same
    // pieces; the lanes before `begin` and after `n` are masked.
    const int64_t first = begin - begin % kLanes;
    Lanes4 inside;
    load4(inside, kEdge + kLanes - begin % kLanes);
    for (int64_t j = first; j < n; j += kLanes) {
        Lanes4 E, g, d, w, f, m;
        load4(E, list.level.data() + j), load4(g, list.gain.data() + j);
        load4(d, list.lower.data() + j), load4(w, list.weight.data() + j);
        load4(f, list.force.data() + j), load4(m, list.mass.data() + j);
        if (n - j < kLanes) {
            Lanes4 end;
            load4(end, kEdge + 2 * kLanes - (n - j));
            inside *= end;
        }
        Lanes4 i_wins, j_wins;  // weights of the pair
        if constexpr (kWeights == PairWeights::own) {
            i_wins = inside * (gain_i * upper * weight_i);
            j_wins = inside * (share * g * d * w);
        } else {
            const Lanes4 gap = (gain_i - g) * inside;
            Lanes4 size;
            absolute(gap, size);
            i_wins = 0.5 * (gap + size);  // one of the two is 0, the other |gap|
            j_wins = size - i_wins;
            Lanes4 change = upper - share * d;
            if constexpr (kWeights == PairWeights::distance) {
                Lanes4 e;
                load4(e, list.extra.data() + j);
                change += e;
            }
            i_wins *= change * weight_i, j_wins *= change * w;
        }
        inside = one;
        if constexpr (kGap) {
            Lanes4 s;
            load4(s, list.score.data() + j);
            Lanes4 distance;
            absolute(score_i - s, distance);
            const Lanes4 near = one / (kSmallestGap + distance);
            i_wins *= near, j_wins *= near;
        }
        const Lanes4 inverse = one / (level_i + E);
        const Lanes4 p_i = level_i * inverse, p_j = E * inverse;
        const Lanes4 up = i_wins * p_j, down = j_wins * p_i;
        const Lanes4 bend = (i_wins + j_wins) * (p_i * p_j);
        row_force += up - down, row_mass += bend, row_total += up + down;
        store4(list.force.data() + j, f - (up - down)), store4(list.mass.data() + j, m + bend);
    }
    list.force[i] += sum4(row_force);
    list.mass[i] += sum4(row_mass);
    return sum4(row_total);
}

// The mean over the places of two documents of the change by distance: one of block a, within the
// reach, the other of a block below.
inline double distance_mean(const LambdaQuery& in, const TiedBlock& a, const TiedBlock& b) {
    const int64_t T = a.reached(in.reach), near = b.first - a.first, far = b.last - a.first;
    if (a.size() == 1 && b.size() == 1) return T * in.distance[near];
    double sum = 0;
    if (T <= b.size())
        for (int64_t p = 0; p < T; ++p) sum += in.tail[near - p] - in.tail[far - p];
    else
        for (int64_t q = near; q < far; ++q) sum += in.tail[q - T + 1] - in.tail[q + 1];
    return sum / (static_cast<double>(a.size()) * static_cast<double>(b.size()));
}

// The same for two documents of one block.
inline double distance_within(const LambdaQuery& in, const TiedBlock& block) {
    const int64_t m = block.size(), T = block.reached(in.reach);
    double sum = 0;
    for (int64_t d = 1; d < m; ++d) sum += static_cast<double>(std::min(T, m - d)) * in.distance[d];
    return m > 1 ? sum / (0.5 * static_cast<double>(m) * static_cast<double>(m - 1)) : 0.0;
}

inline void fill_distances(const LambdaQuery& in, ScoredList& list, size_t a) {
    for (size_t b = a + 1; b < list.blocks.size(); ++b) {
        const double mean = distance_mean(in, list.blocks[a], list.blocks[b]);
        for (int64_t j = list.blocks[b].begin; j < list.blocks[b].end; ++j) list.extra[j] = mean;
    }
}

// exp(sigma s) around the middle of the scores stays normal while they spread over less than this.
constexpr double kSpread = 1400;

// Fills list.level; false where scores spread too far for one level per document.
inline bool fill_levels(double sigma, ScoredList& list) {
    const double high = list.score[0], low = list.score[list.n - 1];
    if (!(sigma * (high - low) < kSpread)) return false;
    const double middle = low + (high - low) / 2;
    for (int64_t i = 0; i < list.n; ++i) list.level[i] = std::exp(sigma * (list.score[i] - middle));
    return true;
}

template <PairWeights kWeights, bool kGap>
RANKWISE_ALWAYS double add_pairs_by_place(const LambdaQuery& in, ScoredList& list, bool narrow) {
    const double sigma = in.options.sigma;
    double total = 0;
    for (size_t b = 0; b < list.blocks.size(); ++b) {
        const TiedBlock& block = list.blocks[b];
        if (block.begin >= list.n_upper) break;
        if (kWeights == PairWeights::distance) fill_distances(in, list, b);
        for (int64_t i = block.begin; i < block.end; ++i) {
            if (kWeights != PairWeights::distance && list.upper[i] == 0 && list.share[i] == 0)
                continue;
            double level_i = list.level[i];
            if (!narrow) {
                level_i = 1;
                for (int64_t j = block.end; j < list.n; ++j)
                    list.level[j] = std::exp(sigma * (list.score[j] - list.score[i]));
            }
            total += add_row_by_place<kWeights, kGap>(list, i, block.end, level_i);
        }
    }
    return total;
}

// The kinds of pair loop, each compiled once per instruction set. Returns the sum over pairs of
// w_ij rho_ij without the scale.
RANKWISE_CLONES inline double add_all_pairs(const LambdaQuery& in, ScoredList& list,
                                            GainLayout& layout) {
    const bool gap = scales_by_gap(in.options, list);
    const bool narrow = fill_levels(in.options.sigma, list);
    double total = 0;
    for (const TiedBlock& block : list.blocks) {
        if (block.begin >= list.n_upper) break;
        total += add_tied_pairs(in, list, block, gap ? block.within / kSmallestGap : block.within);
    }
    total /= 2;
    switch (in.options.weights) {
        case PairWeights::own:
            return total + (gap ? add_pairs_by_place<PairWeights::own, true>(in, list, narrow)
                                : add_pairs_by_place<PairWeights::own, false>(in, list, narrow));
        case PairWeights::distance:
            return total +
                   (gap ? add_pairs_by_place<PairWeights::distance, true>(in, list, narrow)
                        : add_pairs_by_place<PairWeights::distance, false>(in, list, narrow));
        case PairWeights::change:
            break;
    }
    if (narrow && in.options.form == SwapForm::discount)
        return total + (gap ? add_pairs_by_gain<true>(in, list, layout)
                            : add_pairs_by_gain<false>(in, list, layout));
    return total + (gap ? add_pairs_by_place<PairWeights::change, true>(in, list, narrow)
                        : add_pairs_by_place<PairWeights::change, false>(in, list, narrow));
}

}  // namespace rankwise
