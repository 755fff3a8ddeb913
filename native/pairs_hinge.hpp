// RankSVM's losses over pairs, in O(n log n): the squared hinge, sum of w max(0, t)^2 with
// t = 1 - (s_winner - s_loser), and the hinge with its corner rounded off.
//
// A pair is active at a margin m when s_winner < s_loser + m. For each document only the number of
// active partners and the sum of their scores matter. Where a query has few labels, the documents
// of each label are sorted by score; the active partners at a level are then a prefix (the winners
// over a loser) or a suffix (the losers under a winner) of it, found by one merge and kept. Where
// it has many, documents are swept in score order through a Fenwick tree over the labels.
#pragma once

#include <numeric>

#include "pairs.hpp"
#include "pairs_given.hpp"

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

// Documents in the order of their scores, and the sums over each one's active partners.
class SortedPairs {
  public:
    SortedPairs(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight)
        : offsets_(offsets, offsets + n_queries + 1),
          levels_(y, offsets, n_queries),
          weight_(weight, offsets_.back()),
          order_(offsets_.back()),
          sorted_(offsets_.back()) {
        for (int64_t q = 0; q < n_queries; ++q) {
            const Levels l = levels_.of(q);
            const bool few = l.count > 1 && l.count <= kFewLevels;
            first_bound_.push_back(first_bound_.back() + (few ? l.n() * (l.count - 1) : 0));
            std::copy_n(l.order, l.n(), order_.data() + begin(q));
        }
    }
    // Where active partners end or begin, for one margin: what `find` fills and `sums` reads.
    using Bounds = std::vector<int32_t>;
    Bounds bounds() const { return Bounds(first_bound_.back()); }

    Levels levels(int64_t q) const { return levels_.of(q); }
    // Place -> document, counted inside the query; by level and score (few levels) or by score.
    const int32_t* order(int64_t q) const { return order_.data() + begin(q); }

    // The centred scores by place, in scratch column 0.
    const double* centred_scores(int64_t q) const {
        double* x = scratch(0, levels_.of(q).n());
        std::copy_n(sorted_.data() + begin(q), levels_.of(q).n(), x);
        centre(x, levels_.of(q).n());
        return x;
    }
    // Other numbers of the documents by place, centred as well; in scratch column 0.
    const double* by_place(int64_t q, const double* v) const {
        const int32_t n = levels_.of(q).n();
        double* x = scratch(0, n);
        for (int32_t i = 0; i < n; ++i) x[i] = v[order(q)[i]];
        centre(x, n);
        return x;
    }

    // Empties the results of a query and, where it has a pair, sorts its documents.
    Levels start(int64_t q, const double* s, double* value, double* gradient, double* curvature) {
        const int64_t size = offsets_[q + 1] - begin(q);
        std::fill(gradient, gradient + size, 0.0);
        std::fill(curvature, curvature + size, 0.0);
        if (value) *value = 0;
        const Levels l = levels_.of(q);
        if (l.count >= 2) sort(q, s);
        return l;
    }

    // By score and, where scores are equal, by document, so that no earlier order matters.
    void sort(int64_t q, const double* s) {
        const Levels l = levels_.of(q);
        int32_t* order = order_.data() + begin(q);
        double* x = sorted_.data() + begin(q);
        static thread_local std::vector<std::pair<double, int32_t>> keys;
        keys.resize(l.n());
        // From the last order, which is mostly nearly the new one.
        for (int32_t i = 0; i < l.n(); ++i) keys[i] = {s[order[i]], order[i]};
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

    // After `sort`: the bounds of a query with few levels.
    void find(int64_t q, double margin, Bounds& bounds) const {
        const Levels l = levels_.of(q);
        if (l.count > kFewLevels) return;
        const double* x = sorted_.data() + begin(q);
        const auto bound = [&](int32_t i, int32_t level, int32_t other) -> int32_t& {
            return bounds[first_bound_[q] + i * (l.count - 1) + other - (other > level)];
        };
        for (int32_t low = 1; low < l.count; ++low)
            for (int32_t high = 0; high < low; ++high) {
                int32_t end = l.starts[high];
                for (int32_t i = l.starts[low]; i < l.starts[low + 1]; ++i) {
                    while (end < l.starts[high + 1] && x[end] < x[i] + margin) ++end;
                    bound(i, low, high) = end;
                }
                int32_t start = l.starts[low];
                for (int32_t i = l.starts[high]; i < l.starts[high + 1]; ++i) {
                    while (start < l.starts[low + 1] && !(x[i] < x[start] + margin)) ++start;
                    bound(i, high, low) = start;
                }
            }
    }

    // Sums over the partners active at the margin, of values given by place; in scratch columns
    // column to column + 3.
    ActiveSums sums(int64_t q, const double* value, double margin, const Bounds& bounds,
                    size_t column) const {
        const Levels l = levels_.of(q);
        const int32_t n = l.n();
        const ActiveSums out = {scratch(column, n), scratch(column + 1, n), scratch(column + 2, n),
                                scratch(column + 3, n)};
        if (l.count <= kFewLevels)
            sums_few(q, l, value, bounds, out);
        else
            sums_many(q, l, value, margin, out);
        return out;
    }

  private:
    int64_t begin(int64_t q) const { return offsets_[q]; }

    // Only differences of scores count; small numbers leave more digits to the sums of many.
    static void centre(double* x, int32_t n) {
        const double mean = std::accumulate(x, x + n, 0.0) / n;
        for (int32_t i = 0; i < n; ++i) x[i] -= mean;
    }

    void sums_few(int64_t q, const Levels& l, const double* value, const Bounds& bounds,
                  const ActiveSums& out) const {
        const int32_t n = l.n();
        // Running totals over places: of weights, of weighted and of plain values.
        double *weights = scratch(9, n + 1), *weighted = scratch(10, n + 1);
        double* plain = scratch(11, n + 1);
        weights[0] = weighted[0] = plain[0] = 0;
        for (int32_t i = 0; i < n; ++i) {
            const double w = weight_[begin(q) + order_[begin(q) + i]];
            weights[i + 1] = weights[i] + w;
            weighted[i + 1] = weighted[i] + w * value[i];
            plain[i + 1] = plain[i] + value[i];
        }
        const int32_t* limit = bounds.data() + first_bound_[q];
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

    void sums_many(int64_t q, const Levels& l, const double* value, double margin,
                   const ActiveSums& out) const {
        const int32_t n = l.n(), k = l.count;
        const double* x = sorted_.data() + begin(q);
        const int32_t* order = order_.data() + begin(q);
        static thread_local std::vector<int32_t> level_of;
        level_of.resize(offsets_[q + 1] - begin(q));
        for (int32_t level = 0; level < k; ++level)
            for (int32_t i = l.starts[level]; i < l.starts[level + 1]; ++i)
                level_of[l.order[i]] = level;
        LevelTree winners(k), losers(k);
        for (int32_t i = 0, next = 0; i < n; ++i) {
            for (; next < n && x[next] < x[i] + margin; ++next) {
                const double w = weight_[begin(q) + order[next]];
                winners.insert(level_of[order[next]], w, w * value[next]);
            }
            winners.before(level_of[order[i]], out.weight_above[i], out.sum_above[i]);
        }
        for (int32_t i = n - 1, next = n - 1; i >= 0; --i) {
            for (; next >= 0 && x[i] < x[next] + margin; --next)
                losers.insert(k - 1 - level_of[order[next]], 1.0, value[next]);
            losers.before(k - 1 - level_of[order[i]], out.weight_below[i], out.sum_below[i]);
            const double w = weight_[begin(q) + order[i]];
            out.weight_below[i] *= w;
            out.sum_below[i] *= w;
        }
    }

    std::vector<int64_t> offsets_;
    LabelLevels levels_;
    Weights weight_;
    std::vector<int64_t> first_bound_ = {0};
    std::vector<int32_t> order_;
    std::vector<double> sorted_;
};

class SquaredHingeLoss final : public ConvexLoss {
  public:
    SquaredHingeLoss(const double* y, const int64_t* offsets, int64_t n_queries,
                     const double* weight)
        : ConvexLoss(offsets, n_queries),
          pairs_(y, offsets, n_queries, weight),
          bounds_(pairs_.bounds()),
          degree_(n_docs()) {}

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const Levels l = pairs_.start(q, s, value, gradient, curvature);
        if (l.count < 2) return;
        pairs_.find(q, 1, bounds_);
        const double* x = pairs_.centred_scores(q);
        const ActiveSums active = pairs_.sums(q, x, 1, bounds_, 1);
        const int32_t* order = pairs_.order(q);
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
        const Levels l = pairs_.levels(q);
        if (l.count < 2) return;
        const int32_t* order = pairs_.order(q);
        const double* degree = degree_.data() + begin(q);
        const double* moved = pairs_.by_place(q, v);
        const ActiveSums active = pairs_.sums(q, moved, 1, bounds_, 1);
        for (int32_t i = 0; i < l.n(); ++i)
            out[order[i]] = 2 * (degree[i] * moved[i] - active.sum_above[i] - active.sum_below[i]);
    }

  private:
    SortedPairs pairs_;
    SortedPairs::Bounds bounds_;
    std::vector<double> degree_;
};

// The hinge itself. It has no second derivative; the curvature given is the weight of the active
// pairs, which makes a Newton step of the size of the margin.
class HingeLoss final : public QueryLoss {
  public:
    HingeLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight)
        : QueryLoss(offsets, n_queries),
          pairs_(y, offsets, n_queries, weight),
          bounds_(pairs_.bounds()) {}

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const Levels l = pairs_.start(q, s, value, gradient, curvature);
        if (l.count < 2) return;
        pairs_.find(q, 1, bounds_);
        const double* x = pairs_.centred_scores(q);
        const ActiveSums active = pairs_.sums(q, x, 1, bounds_, 1);
        const int32_t* order = pairs_.order(q);
        double total = 0;
        for (int32_t i = 0; i < l.n(); ++i) {
            const double net = active.weight_above[i] - active.weight_below[i];
            gradient[order[i]] = net;
            curvature[order[i]] = active.weight_above[i] + active.weight_below[i];
            total += x[i] * net + active.weight_below[i];
        }
        if (value) *value = std::max(total, 0.0);
    }

  private:
    SortedPairs pairs_;
    SortedPairs::Bounds bounds_;
};

// The hinge with a parabola of width mu in place of its corner: for t = 1 - (s_winner - s_loser),
// 0 where t <= 0, t^2 / (2 mu) up to t = mu, t - mu / 2 beyond.
//
// Its slope a = h'(t), between 0 and 1, is a feasible point of the hinge's dual problem. What the
// hinge itself loses against that point, t - a t, is not zero only inside the parabola: the sum of
// it over the pairs (`slack`) and the gradient give a duality gap without any cancellation.
class SmoothHinge : public ConvexLoss {
  public:
    SmoothHinge(const int64_t* offsets, int64_t n_queries)
        : ConvexLoss(offsets, n_queries), hinge_(n_queries, 0.0), slack_(n_queries, 0.0) {}
    void set_width(double mu) { mu_ = mu; }
    double width() const { return mu_; }
    // At the scores last given to evaluate.
    double hinge() const { return std::accumulate(hinge_.begin(), hinge_.end(), 0.0); }
    double slack() const { return std::accumulate(slack_.begin(), slack_.end(), 0.0); }

  protected:
    double mu_ = 1;
    std::vector<double> hinge_, slack_;
};

class SmoothHingeLoss final : public SmoothHinge {
  public:
    SmoothHingeLoss(const double* y, const int64_t* offsets, int64_t n_queries,
                    const double* weight)
        : SmoothHinge(offsets, n_queries),
          pairs_(y, offsets, n_queries, weight),
          outer_(pairs_.bounds()),
          inner_(pairs_.bounds()),
          degree_(n_docs()) {}

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const Levels l = pairs_.start(q, s, value, gradient, curvature);
        if (l.count < 2) return;
        pairs_.find(q, 1, outer_);
        pairs_.find(q, 1 - mu_, inner_);
        const double* x = pairs_.centred_scores(q);
        const ActiveSums all = pairs_.sums(q, x, 1, outer_, 1);
        const ActiveSums far = pairs_.sums(q, x, 1 - mu_, inner_, 5);
        const int32_t* order = pairs_.order(q);
        double* degree = degree_.data() + begin(q);
        // Sums over pairs: t beyond the parabola, their weights; t and t^2 inside.
        double beyond = 0, count = 0, inside = 0, squares = 0;
        for (int32_t i = 0; i < l.n(); ++i) {
            const double above = all.weight_above[i] - far.weight_above[i];
            const double below = all.weight_below[i] - far.weight_below[i];
            const double t_above = above * (1 + x[i]) - (all.sum_above[i] - far.sum_above[i]);
            const double t_below = below * (1 - x[i]) + (all.sum_below[i] - far.sum_below[i]);
            degree[i] = (above + below) / mu_;
            gradient[order[i]] =
                far.weight_above[i] - far.weight_below[i] + (t_above - t_below) / mu_;
            curvature[order[i]] = degree[i];
            beyond += far.weight_below[i] * (1 - x[i]) + far.sum_below[i];
            count += far.weight_below[i];
            inside += t_below;
            squares += t_below + x[i] * (t_above - t_below);
        }
        squares = std::max(squares, 0.0);
        hinge_[q] = beyond + inside;
        slack_[q] = std::max(inside - squares / mu_, 0.0);
        if (value) *value = std::max(beyond - 0.5 * mu_ * count + squares / (2 * mu_), 0.0);
    }

    void product(int64_t q, const double* v, double* out) const override {
        std::fill(out, out + size(q), 0.0);
        const Levels l = pairs_.levels(q);
        if (l.count < 2) return;
        const int32_t* order = pairs_.order(q);
        const double* degree = degree_.data() + begin(q);
        const double* moved = pairs_.by_place(q, v);
        const ActiveSums all = pairs_.sums(q, moved, 1, outer_, 1);
        const ActiveSums far = pairs_.sums(q, moved, 1 - mu_, inner_, 5);
        for (int32_t i = 0; i < l.n(); ++i) {
            const double sum =
                (all.sum_above[i] - far.sum_above[i]) + (all.sum_below[i] - far.sum_below[i]);
            out[order[i]] = degree[i] * moved[i] - sum / mu_;
        }
    }

  private:
    SortedPairs pairs_;
    SortedPairs::Bounds outer_, inner_;
    std::vector<double> degree_;
};

// The same over pairs that are given. One with a target t counts t times as it is and 1 - t times
// the other way round.
class SmoothHingePairs final : public SmoothHinge {
  public:
    SmoothHingePairs(const int64_t* offsets, int64_t n_queries, const double* weight,
                     const PairColumns& pairs)
        : SmoothHinge(offsets, n_queries) {
        const std::vector<GivenPair> given = weighed(offsets, n_queries, weight, pairs, first_);
        int64_t p = 0;
        for (int64_t q = 0; q < n_queries; ++q) {
            const int64_t end = first_[q + 1];
            first_[q] = static_cast<int64_t>(pairs_.size());
            for (; p < end; ++p) {
                const auto& [a, b, t, w] = given[p];
                if (t > 0) pairs_.push_back({a, b, t * w, 0});
                if (t < 1) pairs_.push_back({b, a, (1 - t) * w, 0});
            }
        }
        first_.back() = static_cast<int64_t>(pairs_.size());
    }
    int64_t work() const override { return static_cast<int64_t>(pairs_.size()) * 10; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        double total = 0;
        hinge_[q] = slack_[q] = 0;
        for (int64_t p = first_[q]; p < first_[q + 1]; ++p) {
            Pair& pair = pairs_[p];
            const double t = std::max(1 - (s[pair.winner] - s[pair.loser]), 0.0);
            const double a = std::min(t / mu_, 1.0), w = pair.weight;
            pair.bend = t > 0 && t < mu_ ? w / mu_ : 0.0;
            total += w * (t < mu_ ? 0.5 * a * t : t - 0.5 * mu_);
            hinge_[q] += w * t;
            slack_[q] += w * t * (1 - a);
            gradient[pair.winner] -= w * a;
            gradient[pair.loser] += w * a;
            curvature[pair.winner] += pair.bend;
            curvature[pair.loser] += pair.bend;
        }
        if (value) *value = total;
    }

    void product(int64_t q, const double* v, double* out) const override {
        std::fill(out, out + size(q), 0.0);
        for (int64_t p = first_[q]; p < first_[q + 1]; ++p) {
            const Pair& pair = pairs_[p];
            const double flow = pair.bend * (v[pair.winner] - v[pair.loser]);
            out[pair.winner] += flow;
            out[pair.loser] -= flow;
        }
    }

  private:
    struct Pair {
        int32_t winner, loser;
        double weight, bend;
    };
    std::vector<int64_t> first_;
    std::vector<Pair> pairs_;
};

}  // namespace rankwise
