// Losses of one document at a time: the score predicts the label.
#pragma once

#include "losses.hpp"

namespace rankwise {

// The loss of one document and its two derivatives in the score.
struct PointTerms {
    double loss, slope, bend;
};

// (s - y)^2 / 2
struct SquaredPoint {
    PointTerms operator()(double y, double s) const {
        return {0.5 * (s - y) * (s - y), s - y, 1.0};
    }
};

// Cross entropy of a target y in [0, 1] and the chance 1 / (1 + exp(-s)).
struct LogisticPoint {
    PointTerms operator()(double y, double s) const {
        const double small = std::exp(-std::abs(s)), log_sum = std::log1p(small);
        const double above = (s < 0 ? small : 1.0) / (1 + small);
        const double below = (s < 0 ? 1.0 : small) / (1 + small);
        return {y * std::max(-s, 0.0) + (1 - y) * std::max(s, 0.0) + log_sum,
                (1 - y) * above - y * below, above * below};
    }
};

// Half the deviance of a count y with mean exp(s): exp(s) - y s - y + y log y. The mean is capped
// so that values stay finite.
struct PoissonPoint {
    PointTerms operator()(double y, double s) const {
        const double mean = std::exp(std::min(s, 300.0));
        const double least = y > 0 ? y * (std::log(y) - 1) : 0.0;
        return {std::max(mean - y * s + least, 0.0), mean - y, mean};
    }
};

template <class Point>
class PointwiseLoss final : public ConvexLoss {
  public:
    PointwiseLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight)
        : ConvexLoss(offsets, n_queries),
          y_(y, y + n_docs()),
          weight_(weight, n_docs()),
          bend_(n_docs()) {}

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        double total = 0;
        const int64_t first = begin(q);
        for (int64_t i = 0; i < size(q); ++i) {
            const double w = std::isnan(y_[first + i]) ? 0.0 : weight_[first + i];
            PointTerms terms = {0, 0, 0};
            if (w != 0) terms = point_(y_[first + i], s[i]);
            gradient[i] = w * terms.slope;
            curvature[i] = bend_[first + i] = w * terms.bend;
            total += w * terms.loss;
        }
        if (value) *value = total;
    }
    void product(int64_t q, const double* v, double* out) const override {
        for (int64_t i = 0; i < size(q); ++i) out[i] = bend_[begin(q) + i] * v[i];
    }

  private:
    Point point_;
    std::vector<double> y_;
    Weights weight_;
    std::vector<double> bend_;
};

}  // namespace rankwise
