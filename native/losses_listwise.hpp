// Losses of a whole list: softmax cross entropy (ListNet), Plackett-Luce likelihood (ListMLE).
#pragma once

#include "pairs.hpp"

namespace rankwise {

// Cross entropy between a target distribution, weighted, and the softmax of the scores. The target
// is the softmax of a column, or the column divided by its sum; NaN marks absent documents.
class SoftmaxLoss final : public ConvexLoss {
  public:
    SoftmaxLoss(const double* column, const int64_t* offsets, int64_t n_queries,
                const double* weight, bool exponential)
        : ConvexLoss(offsets, n_queries), target_(n_docs()), mass_(n_queries, 0.0), p_(n_docs()) {
        const Weights weights(weight, n_docs());
        for (int64_t q = 0; q < n_queries; ++q) {
            double* t = target_.data() + begin(q);
            if (exponential)
                softmax(column + begin(q), column + begin(q), size(q), t);
            else
                shares(column + begin(q), size(q), t);
            for (int64_t i = 0; i < size(q); ++i) {
                // Absent documents are told from unlikely ones by the sign.
                if (std::isnan(column[begin(q) + i])) {
                    t[i] = -1;
                } else {
                    t[i] *= weights[begin(q) + i];
                    mass_[q] += t[i];
                }
            }
        }
    }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const double* t = target_.data() + begin(q);
        double* p = p_.data() + begin(q);
        const double log_sum = softmax(s, t, size(q), p);
        double total = 0;
        for (int64_t i = 0; i < size(q); ++i) {
            const bool absent = t[i] < 0;
            gradient[i] = absent ? 0 : mass_[q] * p[i] - t[i];
            curvature[i] = mass_[q] * p[i] * (1 - p[i]);
            if (t[i] > 0) total += t[i] * (log_sum - s[i]);
        }
        if (value) *value = total;
    }
    void product(int64_t q, const double* v, double* out) const override {
        const double* p = p_.data() + begin(q);
        double mean = 0;
        for (int64_t i = 0; i < size(q); ++i) mean += p[i] * v[i];
        for (int64_t i = 0; i < size(q); ++i) out[i] = mass_[q] * p[i] * (v[i] - mean);
    }

  private:
    // p = softmax of s where `mark` is neither NaN nor negative, 0 elsewhere; returns log sum exp.
    static double softmax(const double* s, const double* mark, int64_t n, double* p) {
        double top = -INFINITY, total = 0;
        for (int64_t i = 0; i < n; ++i)
            if (mark[i] >= 0) top = std::max(top, s[i]);
        for (int64_t i = 0; i < n; ++i) {
            p[i] = mark[i] >= 0 ? std::exp(s[i] - top) : 0.0;
            total += p[i];
        }
        for (int64_t i = 0; i < n && total > 0; ++i) p[i] /= total;
        return top + std::log(total);
    }
    // The column over its sum; all zero where nothing is positive. Large values are no trouble.
    static void shares(const double* column, int64_t n, double* t) {
        double top = 0, total = 0;
        for (int64_t i = 0; i < n; ++i)
            if (column[i] > top) top = column[i];
        for (int64_t i = 0; i < n; ++i) {
            t[i] = column[i] > 0 ? column[i] / top : 0.0;
            total += t[i];
        }
        for (int64_t i = 0; i < n && total > 0; ++i) t[i] /= total;
    }
    std::vector<double> target_, mass_, p_;
};

// Plackett-Luce likelihood of the order of labels, from the top down: each document above the
// lowest label is the choice among all documents whose label is not higher,
//
//   sum over i of a w_i log(sum over y_j <= y_i of exp(s_j - s_i)),
//
// a the mean of the position weights over the places its label takes.
class ListMleLoss final : public ConvexLoss {
  public:
    // `position` holds the weights of places 1 to `longest`, or is null for all one.
    ListMleLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight,
                const double* position)
        : ConvexLoss(offsets, n_queries),
          levels_(y, offsets, n_queries),
          weight_(weight, n_docs()),
          scores_(n_docs()) {
        for (int64_t q = 0; q < n_queries; ++q) {
            const Levels l = levels_.of(q);
            first_.push_back(static_cast<int64_t>(factor_.size()));
            for (int32_t level = 0; level < l.count; ++level) {
                double total = 0;
                for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x)
                    total += position ? position[x] : 1.0;
                const bool last = level + 1 == l.count;
                factor_.push_back(last ? 0.0 : total / (l.starts[level + 1] - l.starts[level]));
            }
        }
    }
    int64_t work() const override { return n_docs() * 40; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        double* kept = scores_.data() + begin(q);
        for (int32_t x = 0; x < l.n(); ++x) kept[x] = s[l.order[x]];
        const Masses masses = remaining(q, l);
        double total = 0;
        // Sums over the choices so far of their weight over Z and over Z^2, in units of the best
        // score that is left.
        double once = 0, twice = 0, unit = masses.top[0];
        for (int32_t level = 0; level < l.count; ++level) {
            const double top = masses.top[level], mass = masses.mass[level];
            const double shrink = std::exp(top - unit);
            once *= shrink, twice *= shrink * shrink;
            unit = top;
            const double factor = factor_[first_[q] + level];
            const double w = factor * masses.weight[level];
            once += w / mass, twice += w / mass / mass;
            const double log_mass = top + std::log(mass);
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) {
                const double e = std::exp(kept[x] - unit);
                const double own = factor * weight_[begin(q) + l.order[x]];
                gradient[l.order[x]] = e * once - own;
                curvature[l.order[x]] = std::max(e * once - e * e * twice, 0.0);
                if (own > 0) total += own * (log_mass - kept[x]);
            }
        }
        if (value) *value = total;
    }

    void product(int64_t q, const double* v, double* out) const override {
        std::fill(out, out + size(q), 0.0);
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        const double* kept = scores_.data() + begin(q);
        const Masses masses = remaining(q, l);
        double* flow = scratch(3, l.count);  // mean of v over the documents left at each level
        double sum = 0, unit = masses.top[l.count - 1];
        for (int32_t level = l.count - 1; level >= 0; --level) {
            sum *= std::exp(unit - masses.top[level]);
            unit = masses.top[level];
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x)
                sum += std::exp(kept[x] - unit) * v[l.order[x]];
            flow[level] = sum / masses.mass[level];
        }
        double once = 0, mean = 0;
        unit = masses.top[0];
        for (int32_t level = 0; level < l.count; ++level) {
            const double shrink = std::exp(masses.top[level] - unit);
            unit = masses.top[level];
            const double share =
                factor_[first_[q] + level] * masses.weight[level] / masses.mass[level];
            once = once * shrink + share;
            mean = mean * shrink + share * flow[level];
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x)
                out[l.order[x]] = std::exp(kept[x] - unit) * (v[l.order[x]] * once - mean);
        }
    }

  private:
    // Of the documents of a level and below: the best score, and the sum of exp(s - best); of the
    // level alone: the sum of weights.
    struct Masses {
        double *top, *mass, *weight;
    };
    Masses remaining(int64_t q, const Levels& l) const {
        const Masses m = {scratch(0, l.count), scratch(1, l.count), scratch(2, l.count)};
        const double* kept = scores_.data() + begin(q);
        double top = -INFINITY, mass = 0;
        for (int32_t level = l.count - 1; level >= 0; --level) {
            double best = top, weight = 0;
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x)
                best = std::max(best, kept[x]);
            if (mass > 0) mass *= std::exp(top - best);
            top = best;
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) {
                mass += std::exp(kept[x] - top);
                weight += weight_[begin(q) + l.order[x]];
            }
            m.top[level] = top, m.mass[level] = mass, m.weight[level] = weight;
        }
        return m;
    }

    LabelLevels levels_;
    Weights weight_;
    std::vector<int64_t> first_;
    std::vector<double> factor_, scores_;
};

}  // namespace rankwise
