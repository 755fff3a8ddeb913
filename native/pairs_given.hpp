// Losses of pairs that are given one by one, with a target: the chance that the winner is better.
//
// A pair weighs its own weight times target w_winner + (1 - target) w_loser, w the weights of the
// documents, so a sure pair counts with its winner's weight and an even one with the mean.
#pragma once

#include "losses.hpp"

namespace rankwise {

// The loss of one pair and its two derivatives in the margin s_winner - s_loser.
struct PairTerms {
    double loss, slope, bend;
};

// Columns of pairs sorted by query; weight and target may be null (all one).
struct PairColumns {
    const int64_t *winner, *loser;
    const double *weight, *target;
    int64_t n;
};

// One pair: places inside its query, target, and the weight of pair and documents together.
struct GivenPair {
    int32_t winner, loser;
    double target, weight;
};

// The pairs query after query; those of query q are first[q] to first[q + 1] - 1.
inline std::vector<GivenPair> weighed(const int64_t* offsets, int64_t n_queries,
                                      const double* weight, const PairColumns& pairs,
                                      std::vector<int64_t>& first) {
    const Weights documents(weight, offsets[n_queries]);
    std::vector<GivenPair> out;
    out.reserve(pairs.n);
    first.assign(1, 0);
    for (int64_t q = 0; q < n_queries; ++q) {
        for (auto p = static_cast<int64_t>(out.size());
             p < pairs.n && pairs.winner[p] < offsets[q + 1]; ++p) {
            const int64_t i = pairs.winner[p], j = pairs.loser[p];
            const double t = pairs.target ? pairs.target[p] : 1.0;
            const double own = pairs.weight ? pairs.weight[p] : 1.0;
            out.push_back({static_cast<int32_t>(i - offsets[q]),
                           static_cast<int32_t>(j - offsets[q]), t,
                           own * (t * documents[i] + (1 - t) * documents[j])});
        }
        first.push_back(static_cast<int64_t>(out.size()));
    }
    return out;
}

template <class PairLoss>
class GivenPairsLoss final : public PairLoss::Base {
  public:
    GivenPairsLoss(const int64_t* offsets, int64_t n_queries, const double* weight,
                   const PairColumns& pairs, PairLoss pair_loss)
        : PairLoss::Base(offsets, n_queries), pair_loss_(pair_loss), bend_(pairs.n) {
        pairs_ = weighed(offsets, n_queries, weight, pairs, first_);
    }
    int64_t work() const override { return static_cast<int64_t>(pairs_.size()) * 20; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + this->size(q), 0.0);
        std::fill(curvature, curvature + this->size(q), 0.0);
        double total = 0;
        for (int64_t p = first_[q]; p < first_[q + 1]; ++p) {
            const GivenPair& pair = pairs_[p];
            const PairTerms terms = pair_loss_(s[pair.winner] - s[pair.loser], pair.target);
            const double slope = pair.weight * terms.slope;
            bend_[p] = pair.weight * terms.bend;
            total += pair.weight * terms.loss;
            gradient[pair.winner] += slope;
            gradient[pair.loser] -= slope;
            curvature[pair.winner] += bend_[p];
            curvature[pair.loser] += bend_[p];
        }
        if (value) *value = total;
    }
    void product(int64_t q, const double* v, double* out) const {
        std::fill(out, out + this->size(q), 0.0);
        for (int64_t p = first_[q]; p < first_[q + 1]; ++p) {
            const GivenPair& pair = pairs_[p];
            const double flow = bend_[p] * (v[pair.winner] - v[pair.loser]);
            out[pair.winner] += flow;
            out[pair.loser] -= flow;
        }
    }

  private:
    PairLoss pair_loss_;
    std::vector<int64_t> first_;
    std::vector<GivenPair> pairs_;
    std::vector<double> bend_;
};

// target log(1 + exp(-sigma m)) + (1 - target) log(1 + exp(sigma m))
struct LogisticPair {
    using Base = ConvexLoss;
    double sigma;
    PairTerms operator()(double margin, double target) const {
        const double x = sigma * margin, small = std::exp(-std::abs(x));
        const double above = (x < 0 ? small : 1.0) / (1 + small);
        const double below = (x < 0 ? 1.0 : small) / (1 + small);
        const double log_sum = std::log1p(small);
        const double loss =
            target * (std::max(-x, 0.0) + log_sum) + (1 - target) * (std::max(x, 0.0) + log_sum);
        return {loss, sigma * ((1 - target) * above - target * below),
                sigma * sigma * above * below};
    }
};

// target max(0, 1 - m)^2 + (1 - target) max(0, 1 + m)^2
struct SquaredHingePair {
    using Base = ConvexLoss;
    PairTerms operator()(double margin, double target) const {
        const double down = std::max(1 - margin, 0.0), up = std::max(1 + margin, 0.0);
        return {target * down * down + (1 - target) * up * up,
                2 * ((1 - target) * up - target * down),
                2 * (target * (margin < 1) + (1 - target) * (margin > -1))};
    }
};

// target max(0, 1 - m) + (1 - target) max(0, 1 + m). The second derivative is 0 wherever there is
// one; the curvature given is the weight of the active sides.
struct HingePair {
    using Base = QueryLoss;
    PairTerms operator()(double margin, double target) const {
        const double down = target * (margin < 1), up = (1 - target) * (margin > -1);
        return {down * (1 - margin) + up * (1 + margin), up - down, down + up};
    }
};

// target exp(-m) + (1 - target) exp(m), margins beyond 600 counted as 600.
struct ExponentialPair {
    using Base = ConvexLoss;
    PairTerms operator()(double margin, double target) const {
        const double e = std::exp(std::clamp(margin, -600.0, 600.0));
        const double down = target / e, up = (1 - target) * e;
        return {down + up, up - down, down + up};
    }
};

// 1 - sqrt(target p) - sqrt((1 - target) (1 - p)), p = 1 / (1 + exp(-sigma m)). The curvature is
// at least that at an even pair, see FidelityTerms.
struct FidelityPair {
    using Base = QueryLoss;
    double sigma;
    PairTerms operator()(double margin, double target) const {
        const double x = sigma * margin, small = std::exp(-std::abs(x));
        const double p = (x < 0 ? small : 1.0) / (1 + small);
        const double r = (x < 0 ? 1.0 : small) / (1 + small);
        const double win = std::sqrt(target * p), lose = std::sqrt((1 - target) * r);
        // 1 - win - lose without cancellation: half the squared distance of two unit vectors.
        const double a = std::sqrt(target) - std::sqrt(p);
        const double b = std::sqrt(1 - target) - std::sqrt(r);
        return {0.5 * (a * a + b * b), 0.5 * sigma * (lose * p - win * r),
                0.25 * sigma * sigma *
                    (win * r * std::max(3 * p - 1, 0.5) + lose * p * std::max(3 * r - 1, 0.5))};
    }
};

}  // namespace rankwise
