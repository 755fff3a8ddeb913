// Lambda gradients: RankNet's pair forces, each weighted by what a swap changes in a metric.
//
// A pair of documents of one query with gains g_i > g_j pulls i up and j down with the force
//     w_ij rho_ij,   w_ij = scale * change(i, j),   rho_ij = 1 / (1 + exp(sigma (s_i - s_j))).
// What a swap changes is in lambdas_changes.hpp, the sorted list in lambdas_list.hpp; this file
// passes over the pairs. Three things make that cheap:
//   * rho_ij = E_j / (E_i + E_j) with E = exp(sigma s): one exponential per document, none per
//     pair;
//   * documents sorted by score, so that "upper" documents meet contiguous runs of "lower" ones,
//     several at a time, without a branch;
//   * pairs inside a tied block have rho = 1/2: a sort and two prefix sums replace them, and the
//     first round of boosting, where every score is 0, is O(n log n).
//
// The kernel is made once for the labels and called once per round with the scores. It keeps the
// order of the last call, from which sorting starts; results do not depend on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "lambdas_changes.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

struct LambdaOptions {
    SwapForm form = SwapForm::discount;
    double sigma = 1;
    int64_t truncation = 0;       // pairs need a document in the first `truncation` places
    bool stable = false;          // equal scores keep their row order, no tied blocks
    bool scale_by_gap = false;    // divide w_ij by .01 + |s_i - s_j| where a query's scores differ
    bool scale_by_query = false;  // multiply by log2(1 + S) / S, S the sum of the query's forces
    bool per_document = false;    // the table by place has one entry per document, not per place
};

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

// --- pairs of different blocks -----------------------------------------------------------------

constexpr double kSmallestGap = 0.01;

// A query whose scores are all equal has no gaps to divide by.
inline bool scales_by_gap(const LambdaOptions& in, const ScoredList& list) {
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
                                                     double level_i) {
    const int64_t n = list.n;
    const double *level = list.level.data(), *gain = list.gain.data(), *lower = list.lower.data();
    const double *score = list.score.data(), *weight = list.weight.data();
    double *force = list.force.data(), *mass = list.mass.data();
    const double gain_i = gain[i], score_i = score[i], weight_i = weight[i];
    const double upper = list.upper[i], share = list.share[i];
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

// What the pair loop of one query works on.
struct LambdaQuery {
    const LambdaOptions& options;
    const double* value;  // by place
    int64_t reach;        // places that can be the upper one of a pair
    bool weighted;
};

// exp(sigma s) around the middle of the scores stays normal while they spread over less than this.
constexpr double kSpread = 1400;

template <bool kWeighted, bool kGap>
inline __attribute__((always_inline)) double add_pairs(const LambdaQuery& in, ScoredList& list) {
    const double sigma = in.options.sigma;
    const double high = list.score[0], low = list.score[list.n - 1];
    const bool wide = !(sigma * (high - low) < kSpread);
    const double middle = low + (high - low) / 2;
    if (!wide)
        for (int64_t i = 0; i < list.n; ++i)
            list.level[i] = std::exp(sigma * (list.score[i] - middle));
    double total = 0;
    for (const TiedBlock& block : list.blocks) {
        if (block.begin >= list.n_upper) break;
        const double within = kGap ? block.within / kSmallestGap : block.within;
        if (in.options.form == SwapForm::cascade)
            total += add_cascade_changes(in.value, in.reach, list, block, within) / 2;
        else
            total += add_equal_changes(list, block, within) / 2;
        for (int64_t i = block.begin; i < block.end; ++i) {
            if (list.upper[i] == 0 && list.share[i] == 0) continue;
            double level_i = list.level[i];
            if (wide) {
                level_i = 1;
                for (int64_t j = block.end; j < list.n; ++j)
                    list.level[j] = std::exp(sigma * (list.score[j] - list.score[i]));
            }
            total += add_row<kWeighted, kGap>(list, i, block.end, level_i);
        }
    }
    return total;
}

// The four kinds of pair loop; one clone of each per instruction set. Returns the sum over pairs
// of w_ij rho_ij without the scale.
RANKWISE_CLONES inline double add_all_pairs(const LambdaQuery& in, ScoredList& list) {
    const bool gap = scales_by_gap(in.options, list);
    if (in.weighted)
        return gap ? add_pairs<true, true>(in, list) : add_pairs<true, false>(in, list);
    return gap ? add_pairs<false, true>(in, list) : add_pairs<false, false>(in, list);
}

// --- the kernel --------------------------------------------------------------------------------

using SwapChanges = void (*)(const double*, int64_t, ScoredList&);

inline SwapChanges changes_of(SwapForm form) {
    constexpr SwapChanges functions[] = {discount_changes, ap_changes, first_changes,
                                         cascade_changes};
    return functions[static_cast<int>(form)];
}

class LambdaKernel {
  public:
    // gain: NaN is unjudged, holds a place but takes part in no pair. weight: the winner's counts;
    // may be null. value: by place, never rising, at least 0. scale: per query; 0 leaves it out.
    LambdaKernel(const LambdaOptions& options, const double* gain, const double* weight,
                 std::vector<int64_t> offsets, std::vector<double> value, std::vector<double> scale)
        : options_(options),
          offsets_(std::move(offsets)),
          value_(std::move(value)),
          scale_(std::move(scale)),
          weighted_(weight != nullptr) {
        const auto n = static_cast<size_t>(offsets_.back());
        gain_.resize(n), row_.resize(n), last_.resize(n);
        if (weighted_) weight_.resize(n);
        for (int64_t q = 0; q < n_queries(); ++q) set_canonical_order(q, gain, weight);
    }

    int64_t n_queries() const { return static_cast<int64_t>(offsets_.size()) - 1; }
    int64_t n_docs() const { return offsets_.back(); }

    // Gradient and curvature of the weighted pair loss of every document; the gradient is minus
    // the force.
    void gradients(const double* score, double* gradient, double* curvature, int n_threads) {
        std::fill_n(gradient, n_docs(), 0.0);
        std::fill_n(curvature, n_docs(), 0.0);
        for_lists(score, 50, n_threads, [&](int64_t q, ScoredList& list) {
            const double total = add_all_pairs(query(q), list);
            const double sigma = options_.sigma;
            double scale = sigma * scale_[q];
            const double sum = 2 * scale * total;
            if (options_.scale_by_query && sum > 0) scale *= std::log2(1 + sum) / sum;
            const int64_t* row = row_.data() + offsets_[q];
            for (int64_t i = 0; i < list.n; ++i) {
                gradient[row[list.doc[i]]] = -scale * list.force[i];
                // Equal places may differ by rounding: no curvature below 0.
                curvature[row[list.doc[i]]] = sigma * scale * std::max(list.mass[i], 0.0);
            }
        });
    }

    // The loss of each query: the sum over pairs of w_ij log(1 + exp(-sigma (s_i - s_j))).
    void values(const double* score, double* value, int n_threads) {
        std::fill_n(value, n_queries(), 0.0);
        for_lists(score, 500, n_threads, [&](int64_t q, ScoredList& list) {
            double sum = 0;
            const bool by_gap = scales_by_gap(options_, list);
            for_pairs(q, list, [&](int64_t winner, int64_t loser, double change) {
                const double d = list.score[winner] - list.score[loser];
                const double margin = options_.sigma * d;
                double w = change * list.weight[winner];
                if (by_gap) w /= kSmallestGap + std::abs(d);
                sum += w * (std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0));
            });
            value[q] = sum * scale_[q];
        });
    }

    // What a swap of rows i and j changes in the metric, of the kernel's only query, in row order.
    void changes(const double* score, double* matrix) {
        std::fill_n(matrix, n_docs() * n_docs(), 0.0);
        for_lists(score, 50, 1, [&](int64_t q, ScoredList& list) {
            for_pairs(q, list, [&](int64_t winner, int64_t loser, double change) {
                const int64_t i = row_[list.doc[winner]], j = row_[list.doc[loser]];
                matrix[i * n_docs() + j] = matrix[j * n_docs() + i] = change * scale_[q];
            });
        });
    }

  private:
    // Rows of a query as they are stored mean nothing under average ties: they are put in the
    // order of their gains and weights, so that equal rows are all that is left to chance.
    void set_canonical_order(int64_t q, const double* gain, const double* weight) {
        const int64_t start = offsets_[q], size = offsets_[q + 1] - start;
        int64_t* row = row_.data() + start;
        std::iota(row, row + size, start);
        const auto key = [&](int64_t i) { return gain[i] == gain[i] ? gain[i] : -1.0; };
        if (!options_.stable)
            std::stable_sort(row, row + size, [&](int64_t a, int64_t b) {
                if (key(a) != key(b)) return key(a) > key(b);
                return weight && weight[a] > weight[b];
            });
        for (int64_t i = 0; i < size; ++i) {
            gain_[start + i] = gain[row[i]];
            if (weighted_) weight_[start + i] = weight[row[i]];
            last_[start + i] = static_cast<int32_t>(i);
        }
    }

    LambdaQuery query(int64_t q) const {
        const int64_t size = offsets_[q + 1] - offsets_[q];
        const double* value = value_.data() + (options_.per_document ? offsets_[q] : 0);
        int64_t reach = size;
        if (options_.truncation > 0) reach = std::min(reach, options_.truncation);
        // The table never rises: places at its end that are worth nothing need no pair.
        reach = std::partition_point(value, value + reach, [](double v) { return v > 0; }) - value;
        return {options_, value, reach, weighted_};
    }

    // Calls body(q, list) for every query with a pair, its list sorted and its changes known.
    template <class Body>
    void for_lists(const double* score, int64_t work, int n_threads, Body&& body) {
        const std::lock_guard<std::mutex> lock(busy_);
        parallel_for(n_queries(), n_docs() * work, n_threads, [&](int64_t q) {
            thread_local ScoredList list;
            if (load(q, score, list)) body(q, list);
        });
    }

    bool load(int64_t q, const double* score, ScoredList& list) {
        const int64_t start = offsets_[q], size = offsets_[q + 1] - start;
        if (size < 2 || scale_[q] == 0) return false;
        list.scratch.resize(static_cast<size_t>(size));
        for (int64_t i = 0; i < size; ++i) list.scratch[i] = score[row_[start + i]];
        sort_query(list.scratch.data(), size, last_.data() + start, list);
        list.resize(size);
        fill_columns(start, size, list);
        if (list.n < 2) return false;
        list.n_upper = 0;
        const LambdaQuery in = query(q);
        changes_of(options_.form)(in.value, in.reach, list);
        for (auto* column : {&list.gain, &list.score, &list.lower, &list.weight})
            std::fill_n(column->begin() + list.n, 8, 0.0);
        std::fill_n(list.level.begin() + list.n, 8, 1.0);
        std::fill_n(list.force.begin(), list.n + 8, 0.0);
        std::fill_n(list.mass.begin(), list.n + 8, 0.0);
        return true;
    }

    void fill_columns(int64_t start, int64_t size, ScoredList& list) const {
        list.size = size;
        list.blocks.clear();
        int64_t n = 0;
        for (int64_t first = 0, last; first < size; first = last) {
            const double score = list.ranking[first].score;
            for (last = first + 1;
                 !options_.stable && last < size && list.ranking[last].score == score;)
                ++last;
            TiedBlock block{first, last, n, n};
            for (int64_t p = first; p < last; ++p) {
                const int64_t i = list.ranking[p].doc;
                const double gain = gain_[start + i];
                if (gain != gain) continue;
                list.doc[n] = i;
                list.gain[n] = gain;
                list.score[n] = score;
                list.weight[n] = weighted_ ? weight_[start + i] : 1.0;
                ++n;
            }
            block.end = n;
            list.blocks.push_back(block);
        }
        list.n = n;
    }

    // Calls body(winner, loser, change) for every pair with different gains, one by one.
    template <class Body>
    void for_pairs(int64_t q, ScoredList& list, Body&& body) {
        const LambdaQuery in = query(q);
        const auto both = [&](int64_t i, int64_t j, double change) {
            const double gap = list.gain[i] - list.gain[j];
            if (gap != 0 && change != 0)
                body(gap > 0 ? i : j, gap > 0 ? j : i, std::abs(gap) * change);
        };
        CascadeScratch products;
        for (const TiedBlock& block : list.blocks) {
            const bool tied = block.size() > 1 && block.reached(in.reach) > 0;
            const bool cascade = tied && options_.form == SwapForm::cascade;
            if (cascade) block_products(list, block, products.all);
            for (int64_t i = block.begin; i < block.end; ++i) {
                if (cascade) products.all.without(1 - list.gain[i], products.one);
                for (int64_t j = i + 1; tied && j < block.end; ++j) {
                    if (list.gain[i] == list.gain[j]) continue;
                    double change = block.within;
                    if (cascade) {
                        products.one.without(1 - list.gain[j], products.two);
                        change *= cascade_within(in.value + block.first, block.size(),
                                                 block.reached(in.reach), products.two);
                    }
                    both(i, j, change);
                }
                if (i >= list.n_upper) continue;
                for (int64_t j = block.end; j < list.n; ++j)
                    both(i, j, list.upper[i] - list.share[i] * list.lower[j]);
            }
        }
    }

    LambdaOptions options_;
    std::vector<int64_t> offsets_, row_;
    std::vector<double> gain_, weight_, value_, scale_;
    std::vector<int32_t> last_;
    bool weighted_;
    std::mutex busy_;
};

}  // namespace rankwise
