// Lambda gradients: RankNet's pair forces, each weighted by what a swap changes in a metric.
//
// A pair of documents of one query with gains g_i > g_j pulls i up and j down with the force
//     w_ij rho_ij,   w_ij = scale * change(i, j),   rho_ij = 1 / (1 + exp(sigma (s_i - s_j))).
// What a swap changes is in lambdas_changes.hpp, the sorted list in lambdas_list.hpp; this file
// holds the kernel: it is made once for the labels and called once per round with the scores. The
// pass over the pairs is in lambdas_pairs.hpp, drawing pairs of long lists in lambdas_sampled.hpp.
//
// The kernel keeps the order of the last call, from which sorting starts; results do not depend on
// it. Documents of a query are held in a canonical order, by gain and weight, which tied scores
// keep: sums are formed in one order however rows are stored, to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "lambdas_changes.hpp"
#include "lambdas_pairs.hpp"
#include "lambdas_sampled.hpp"
#include "parallel.hpp"

namespace rankwise {

class LambdaKernel {
  public:
    // gain: NaN is unjudged, holds a place but takes part in no pair. weight: the winner's counts;
    // may be null. value: by place, never rising, at least 0. scale: per query; 0 leaves it out.
    // distance: for PairWeights::distance, by the distance of two places, from 0.
    LambdaKernel(const LambdaOptions& options, const double* gain, const double* weight,
                 std::vector<int64_t> offsets, std::vector<double> value, std::vector<double> scale,
                 std::vector<double> distance)
        : options_(options),
          offsets_(std::move(offsets)),
          value_(std::move(value)),
          scale_(std::move(scale)),
          distance_(std::move(distance)),
          tail_(distance_.size() + 1, 0.0),
          weighted_(weight != nullptr) {
        for (size_t d = distance_.size(); d-- > 0;) tail_[d] = tail_[d + 1] + distance_[d];
        const auto n = static_cast<size_t>(offsets_.back());
        gain_.resize(n), row_.resize(n), last_.resize(n), gain_rank_.resize(n);
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
            thread_local GainLayout layout;
            const LambdaQuery in = query(q);
            const double total =
                draws_pairs(in, list) ? add_drawn_pairs(in, list) : add_all_pairs(in, list, layout);
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
        rank_gains(start, size);
    }

    void rank_gains(int64_t start, int64_t size) {
        std::vector<double> gains(gain_.begin() + start, gain_.begin() + start + size);
        gains.erase(std::remove_if(gains.begin(), gains.end(), [](double g) { return g != g; }),
                    gains.end());
        std::sort(gains.begin(), gains.end());
        gains.erase(std::unique(gains.begin(), gains.end()), gains.end());
        for (int64_t i = start; i < start + size; ++i)
            gain_rank_[i] = static_cast<int32_t>(
                std::lower_bound(gains.begin(), gains.end(), gain_[i]) - gains.begin());
    }

    LambdaQuery query(int64_t q) const {
        const int64_t size = offsets_[q + 1] - offsets_[q];
        const double* value = value_.data() + (options_.per_document ? offsets_[q] : 0);
        int64_t reach = size;
        if (options_.truncation > 0) reach = std::min(reach, options_.truncation);
        // The table never rises: places at its end that are worth nothing need no pair.
        // A change by distance counts there all the same.
        if (options_.weights != PairWeights::distance)
            reach =
                std::partition_point(value, value + reach, [](double v) { return v > 0; }) - value;
        return {options_, value,    gain_rank_.data() + offsets_[q], distance_.data(), tail_.data(),
                reach,    weighted_};
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
        find_changes(query(q), list);
        for (auto* column : {&list.gain, &list.score, &list.lower, &list.weight})
            std::fill_n(column->begin() + list.n, 8, 0.0);
        std::fill_n(list.level.begin() + list.n, 8, 1.0);
        std::fill_n(list.force.begin(), list.n + 8, 0.0);
        std::fill_n(list.mass.begin(), list.n + 8, 0.0);
        std::fill_n(list.extra.begin(), list.n + 8, 0.0);
        return true;
    }

    static void find_changes(const LambdaQuery& in, ScoredList& list) {
        const bool own = in.options.weights == PairWeights::own;
        switch (in.options.form) {
            case SwapForm::discount:
                discount_changes(in.value, in.reach, list);
                if (own)
                    for (TiedBlock& block : list.blocks)
                        block.within = own_discount_within(in.value, block, in.reach);
                break;
            case SwapForm::ap:
                ap_changes(in.value, in.reach, list);
                break;
            case SwapForm::first:
                first_changes(in.value, in.reach, list);
                break;
            case SwapForm::cascade:
                cascade_changes(in.value, in.reach, list);
                break;
            case SwapForm::constant:
                constant_changes(in.options.constant, own, in.reach, list);
                break;
        }
        if (in.options.weights == PairWeights::distance)
            for (TiedBlock& block : list.blocks) block.within += distance_within(in, block);
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

    // Calls body(winner, loser, weight) for every pair with a weight, one by one; twice for a pair
    // in which each document wins with its own.
    template <class Body>
    void for_pairs(int64_t q, ScoredList& list, Body&& body) {
        const LambdaQuery in = query(q);
        if (options_.weights == PairWeights::own) return for_own_pairs(list, body);
        const auto both = [&](int64_t i, int64_t j, double change) {
            const double gap = list.gain[i] - list.gain[j];
            if (gap != 0 && change != 0)
                body(gap > 0 ? i : j, gap > 0 ? j : i, std::abs(gap) * change);
        };
        CascadeScratch products;
        for (size_t b = 0; b < list.blocks.size(); ++b) {
            const TiedBlock& block = list.blocks[b];
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
                if (options_.weights == PairWeights::distance) fill_distances(in, list, b);
                for (int64_t j = block.end; j < list.n; ++j)
                    both(i, j, list.upper[i] - list.share[i] * list.lower[j] + list.extra[j]);
            }
        }
    }

    template <class Body>
    static void for_own_pairs(const ScoredList& list, Body&& body) {
        for (const TiedBlock& block : list.blocks)
            for (int64_t i = block.begin; i < std::min(block.end, list.n_upper); ++i) {
                for (int64_t j = i + 1; j < block.end; ++j) {
                    body(i, j, list.gain[i] * block.within);
                    body(j, i, list.gain[j] * block.within);
                }
                for (int64_t j = block.end; j < list.n; ++j) {
                    body(i, j, list.gain[i] * list.upper[i]);
                    body(j, i, list.gain[j] * list.share[i] * list.lower[j]);
                }
            }
    }

    LambdaOptions options_;
    std::vector<int64_t> offsets_, row_;
    std::vector<double> gain_, weight_, value_, scale_, distance_, tail_;
    std::vector<int32_t> last_;  // documents of each query as the last call ranked them
    std::vector<int32_t> gain_rank_;
    bool weighted_;
    std::mutex busy_;
};

}  // namespace rankwise
