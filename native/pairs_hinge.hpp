// RankSVM's squared hinge: sum over pairs of w max(0, 1 - (s_winner - s_loser))^2, in O(n log n).
//
// A pair is active when s_winner < s_loser + 1. For each document only the number of active
// partners and the sum of their scores matter. Where a query has few labels, the documents of each
// label are sorted by score; the active partners at a level are then a prefix (the winners over a
// loser) or a suffix (the losers under a winner) of it, found by one merge and kept. Where it has
// many, documents are swept in score order through a Fenwick tree over the labels.
#pragma once

#include <numeric>

#include "pairs.hpp"

namespace rankwise {

constexpr int32_t kFewLevels = 8;

// For each place of a query: the weight of its active partners and the weighted sum of their
// values, over winners (`above`) and losers (`below`).
struct ActiveSums {
    double *weight_above, *sum_above, *weight_below, *sum_below;
};

// Sums of weights and of weighted values over a range of label levels.
class LevelTree {
  public:
    explicit LevelTree(int32_t n) : weight_(n + 1, 0.0), value_(n + 1, 0.0) {}
    void insert(int32_t level, double weight, double value) {
        for (int32_t i = level + 1; i < static_cast<int32_t>(weight_.size()); i += i & -i) {
            weight_[i] += weight;
            value_[i] += value;
        }
    }
    // Sums over levels 0 to level - 1.
    void before(int32_t level, double& weight, double& value) const {
        weight = value = 0;
        for (int32_t i = level; i > 0; i -= i & -i) {
            weight += weight_[i];
            value += value_[i];
        }
    }

  private:
    std::vector<double> weight_, value_;
};

class SquaredHingeLoss final : public ConvexLoss {
  public:
    SquaredHingeLoss(const double* y, const int64_t* offsets, int64_t n_queries,
                     const double* weight)
        : ConvexLoss(offsets, n_queries),
          levels_(y, offsets, n_queries),
          weight_(weight, n_docs()),
          order_(n_docs()),
          sorted_(n_docs()),
          degree_(n_docs()) {
        for (int64_t q = 0; q < n_queries; ++q) {
            const Levels l = levels_.of(q);
            const bool few = l.count > 1 && l.count <= kFewLevels;
            first_bound_.push_back(first_bound_.back() + (few ? l.n() * (l.count - 1) : 0));
        }
        bounds_.resize(first_bound_.back());
    }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        sort(q, l, s);
        if (l.count <= kFewLevels) find_bounds(q, l);
        double* x = scratch(0, l.n());
        std::copy_n(sorted_.data() + begin(q), l.n(), x);
        centre(x, l.n());
        const ActiveSums active = sums(q, l, x);
        const int32_t* order = order_.data() + begin(q);
        double* degree = degree_.data() + begin(q);
        double total = 0;
        for (int32_t i = 0; i < l.n(); ++i) {
            degree[i] = active.weight_above[i] + active.weight_below[i];
            const double net = active.weight_below[i] - active.weight_above[i];
            const double half = degree[i] * x[i] - active.sum_above[i] - active.sum_below[i] - net;
            gradient[order[i]] = 2 * half;
            curvature[order[i]] = 2 * degree[i];
            total += x[i] * (half - net) + active.weight_below[i];
        }
        if (value) *value = std::max(total, 0.0);
    }

    void product(int64_t q, const double* v, double* out) const override {
        std::fill(out, out + size(q), 0.0);
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        const int32_t* order = order_.data() + begin(q);
        const double* degree = degree_.data() + begin(q);
        double* moved = scratch(0, l.n());
        for (int32_t i = 0; i < l.n(); ++i) moved[i] = v[order[i]];
        centre(moved, l.n());
        const ActiveSums active = sums(q, l, moved);
        for (int32_t i = 0; i < l.n(); ++i)
            out[order[i]] = 2 * (degree[i] * moved[i] - active.sum_above[i] - active.sum_below[i]);
    }

  private:
    // Only differences count; small numbers leave more digits to the sums of many.
    static void centre(double* x, int32_t n) {
        const double mean = std::accumulate(x, x + n, 0.0) / n;
        for (int32_t i = 0; i < n; ++i) x[i] -= mean;
    }

    // Documents by level and score (few levels) or by score alone (many), and their scores.
    void sort(int64_t q, const Levels& l, const double* s) {
        int32_t* order = order_.data() + begin(q);
        double* x = sorted_.data() + begin(q);
        static thread_local std::vector<std::pair<double, int32_t>> keys;
        keys.resize(l.n());
        for (int32_t i = 0; i < l.n(); ++i) keys[i] = {s[l.order[i]], l.order[i]};
        if (l.count <= kFewLevels)
            for (int32_t b = 0; b < l.count; ++b)
                std::sort(keys.begin() + l.starts[b], keys.begin() + l.starts[b + 1]);
        else
            std::sort(keys.begin(), keys.end());
        for (int32_t i = 0; i < l.n(); ++i) {
            x[i] = keys[i].first;
            order[i] = keys[i].second;
        }
    }

    // For the document at place i and another level: where its active partners end (a level
    // of winners) or begin (a level of losers).
    int32_t* bound(int64_t q, const Levels& l, int32_t i, int32_t level, int32_t other) {
        return bounds_.data() + first_bound_[q] + i * (l.count - 1) + other - (other > level);
    }
    void find_bounds(int64_t q, const Levels& l) {
        const double* x = sorted_.data() + begin(q);
        for (int32_t low = 1; low < l.count; ++low)
            for (int32_t high = 0; high < low; ++high) {
                int32_t end = l.starts[high];
                for (int32_t i = l.starts[low]; i < l.starts[low + 1]; ++i) {
                    while (end < l.starts[high + 1] && x[end] < x[i] + 1) ++end;
                    *bound(q, l, i, low, high) = end;
                }
                int32_t start = l.starts[low];
                for (int32_t i = l.starts[high]; i < l.starts[high + 1]; ++i) {
                    while (start < l.starts[low + 1] && !(x[i] < x[start] + 1)) ++start;
                    *bound(q, l, i, high, low) = start;
                }
            }
    }

    ActiveSums sums(int64_t q, const Levels& l, const double* value) const {
        const int32_t n = l.n();
        const ActiveSums out = {scratch(1, n), scratch(2, n), scratch(3, n), scratch(4, n)};
        if (l.count <= kFewLevels)
            sums_few(q, l, value, out);
        else
            sums_many(q, l, value, out);
        return out;
    }

    void sums_few(int64_t q, const Levels& l, const double* value, const ActiveSums& out) const {
        const int32_t n = l.n();
        // Running totals over places: of weights, of weighted and of plain values.
        double *weights = scratch(5, n + 1), *weighted = scratch(6, n + 1);
        double* plain = scratch(7, n + 1);
        weights[0] = weighted[0] = plain[0] = 0;
        for (int32_t i = 0; i < n; ++i) {
            const double w = weight_[begin(q) + order_[begin(q) + i]];
            weights[i + 1] = weights[i] + w;
            weighted[i + 1] = weighted[i] + w * value[i];
            plain[i + 1] = plain[i] + value[i];
        }
        const int32_t* limit = bounds_.data() + first_bound_[q];
        for (int32_t level = 0; level < l.count; ++level)
            for (int32_t i = l.starts[level]; i < l.starts[level + 1]; ++i) {
                double above = 0, sum_above = 0, below = 0, sum_below = 0;
                for (int32_t high = 0; high < level; ++high, ++limit) {
                    above += weights[*limit] - weights[l.starts[high]];
                    sum_above += weighted[*limit] - weighted[l.starts[high]];
                }
                for (int32_t low = level + 1; low < l.count; ++low, ++limit) {
                    below += l.starts[low + 1] - *limit;
                    sum_below += plain[l.starts[low + 1]] - plain[*limit];
                }
                const double w = weight_[begin(q) + order_[begin(q) + i]];
                out.weight_above[i] = above;
                out.sum_above[i] = sum_above;
                out.weight_below[i] = w * below;
                out.sum_below[i] = w * sum_below;
            }
    }

    void sums_many(int64_t q, const Levels& l, const double* value, const ActiveSums& out) const {
        const int32_t n = l.n(), k = l.count;
        const double* x = sorted_.data() + begin(q);
        const int32_t* order = order_.data() + begin(q);
        static thread_local std::vector<int32_t> level_of;
        level_of.resize(size(q));
        for (int32_t level = 0; level < k; ++level)
            for (int32_t i = l.starts[level]; i < l.starts[level + 1]; ++i)
                level_of[l.order[i]] = level;
        LevelTree winners(k), losers(k);
        for (int32_t i = 0, next = 0; i < n; ++i) {
            for (; next < n && x[next] < x[i] + 1; ++next) {
                const double w = weight_[begin(q) + order[next]];
                winners.insert(level_of[order[next]], w, w * value[next]);
            }
            winners.before(level_of[order[i]], out.weight_above[i], out.sum_above[i]);
        }
        for (int32_t i = n - 1, next = n - 1; i >= 0; --i) {
            for (; next >= 0 && x[i] < x[next] + 1; --next)
                losers.insert(k - 1 - level_of[order[next]], 1.0, value[next]);
            losers.before(k - 1 - level_of[order[i]], out.weight_below[i], out.sum_below[i]);
            const double w = weight_[begin(q) + order[i]];
            out.weight_below[i] *= w;
            out.sum_below[i] *= w;
        }
    }

    LabelLevels levels_;
    Weights weight_;
    std::vector<int64_t> first_bound_ = {0};
    std::vector<int32_t> order_, bounds_;
    std::vector<double> sorted_, degree_;
};

}  // namespace rankwise
