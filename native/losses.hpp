// Ranking losses, one query at a time: labels are fixed when the loss is made, scores come and go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "linalg.hpp"
#include "parallel.hpp"

namespace rankwise {

// A loss sees one query, so queries can be worked on in any order and by any thread. A document
// without a label (NaN) takes no part: its gradient and curvature are zero.
class QueryLoss {
  public:
    QueryLoss(const int64_t* offsets, int64_t n_queries)
        : offsets_(offsets, offsets + n_queries + 1) {}
    virtual ~QueryLoss() = default;

    int64_t n_queries() const { return static_cast<int64_t>(offsets_.size()) - 1; }
    int64_t n_docs() const { return offsets_.back(); }
    int64_t begin(int64_t q) const { return offsets_[q]; }
    int64_t size(int64_t q) const { return offsets_[q + 1] - offsets_[q]; }
    // A rough number of steps of one evaluation of all queries.
    virtual int64_t work() const { return n_docs() * 20; }

    // Gradient and curvature of query q at its scores s, and its value where `value` is not null.
    virtual void evaluate(int64_t q, const double* s, double* value, double* gradient,
                          double* curvature) = 0;

  protected:
    std::vector<int64_t> offsets_;
};

// A convex loss: its curvature is the Hessian's diagonal, and products with the Hessian are known.
class ConvexLoss : public QueryLoss {
  public:
    using QueryLoss::QueryLoss;
    // out = Hessian of query q, at the scores last given to evaluate, times v.
    virtual void product(int64_t q, const double* v, double* out) const = 0;
};

// Document weights, all one where none are given.
class Weights {
  public:
    Weights(const double* weight, int64_t n) {
        if (weight) values_.assign(weight, weight + n);
    }
    double operator[](int64_t i) const { return values_.empty() ? 1.0 : values_[i]; }

  private:
    std::vector<double> values_;
};

// All queries: values (or null), gradient and curvature.
inline void evaluate(QueryLoss& loss, const double* s, double* values, double* gradient,
                     double* curvature, int n_threads) {
    parallel_for(loss.n_queries(), loss.work(), n_threads, [&](int64_t q) {
        const int64_t at = loss.begin(q);
        loss.evaluate(q, s + at, values ? values + q : nullptr, gradient + at, curvature + at);
    });
}

inline void product(const ConvexLoss& loss, const double* v, double* out, int n_threads) {
    parallel_for(loss.n_queries(), loss.work(), n_threads,
                 [&](int64_t q) { loss.product(q, v + loss.begin(q), out + loss.begin(q)); });
}

// One pass over the rows for a linear model: while the rows of a query are still in cache, its
// scores are computed, handed to `per_query(q, scores, z)`, and sum z x is added up. Returns the
// sum of z. Blocks of queries are cut by the data alone and added in order.
template <class PerQuery>
double linear_pass(const QueryLoss& loss, const Rows& X, const double* w, double shift, double* out,
                   int n_threads, PerQuery&& per_query) {
    const int64_t blocks = std::min(X.n_blocks(), std::max<int64_t>(loss.n_queries(), 1));
    const int64_t d = X.n_columns;
    std::vector<double> parts(static_cast<size_t>(blocks * d), 0.0);
    std::vector<double> sums(blocks, 0.0);
    const bool zero = std::all_of(w, w + d, [](double v) { return v == 0; });
    parallel_for(blocks, pass_work(X) + loss.work() / 16, n_threads, [&](int64_t b) {
        std::vector<double> s, z;
        const int64_t last = loss.n_queries() * (b + 1) / blocks;
        for (int64_t q = loss.n_queries() * b / blocks; q < last; ++q) {
            const int64_t begin = loss.begin(q), n = loss.size(q);
            s.resize(n), z.resize(n);
            if (zero)
                std::fill(s.begin(), s.end(), 0.0);
            else
                X.quick_scores(begin, begin + n, w, s.data());
            for (double& score : s) score += shift;
            per_query(q, s.data(), z.data());
            X.add_transposed(begin, begin + n, z.data(), parts.data() + b * d);
            for (const double value : z) sums[b] += value;
        }
    });
    add_up(parts, blocks, d, out);
    double total = 0;
    for (const double part : sums) total += part;
    return total;
}

}  // namespace rankwise
