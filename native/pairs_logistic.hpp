// RankNet: sum over pairs of w log(1 + exp(-sigma (s_winner - s_loser))).
//
// With e = exp(sigma s) the chance that a pair is ordered wrongly is e_loser / (e_winner +
// e_loser), so a pair costs a division and no exponential. Scores are taken relative to the middle
// of their range, which keeps e finite while the range is below 1400 / sigma; wider lists compute e
// anew for each winner.
#pragma once

#include "lanes.hpp"
#include "pairs.hpp"
#include "simd.hpp"

namespace rankwise {

// One query in label order. Columns are padded by eight places that change nothing: e = 0 and a
// score below every other.
struct LogisticColumns {
    Levels levels;
    bool wide;        // e must be computed for each winner
    const double* s;  // sigma times the score
    double* e;
    const double* w;
};

constexpr double kWidest = 700.0;

inline double bounded_exp(double x) { return std::exp(std::clamp(x, -kWidest, kWidest)); }

// log(1 + r) for 0 <= r <= 1 with full relative accuracy: 2 atanh of the ratio below, centred at
// r = 0 or at r = sqrt(2) - 1.
RANKWISE_INLINE HalfLanes log_one_plus(const HalfLanes& r) {
    const HalfLanes zero = {}, one = zero + 1.0;
    const HalfMask high = r > 0.41421356237309503;
    const HalfLanes c = high ? zero + 1.4142135623730951 : one;
    const HalfLanes log_c = high ? zero + 0.34657359027997270 : zero;
    const HalfLanes top = high ? (one + r) - c : r;
    const HalfLanes z = top / ((one + r) + c), z2 = z * z;
    HalfLanes series = zero + 1.0 / 21;
    for (int odd = 19; odd >= 1; odd -= 2) series = series * z2 + 1.0 / odd;
    return log_c + 2.0 * z * series;
}

// log(1 + exp(s_loser - s_winner)) of four pairs; e holds the exponentials of the same scores.
RANKWISE_INLINE HalfLanes pair_loss(const HalfLanes& e_i, const HalfLanes& e_j, double s_i,
                                    const HalfLanes& s_j) {
    const HalfLanes zero = {}, lead = s_j - s_i;
    const HalfMask ahead = e_j > e_i;
    const HalfLanes big = ahead ? e_j : e_i, small = ahead ? e_i : e_j;
    return (lead > 0.0 ? lead : zero) + log_one_plus(small / big);
}

inline double begin_winner(const LogisticColumns& c, int32_t i, int32_t first_loser) {
    if (!c.wide) return c.e[i];
    for (int32_t j = first_loser; j < c.levels.n(); ++j) c.e[j] = bounded_exp(c.s[j] - c.s[i]);
    return 1.0;
}

template <bool WithValue>
RANKWISE_INLINE double logistic_forces(const LogisticColumns& c, double* force, double* weight) {
    double value = 0;
    for (int32_t level = 0; level + 1 < c.levels.count; ++level) {
        const int32_t losers = c.levels.starts[level + 1], n = c.levels.n();
        for (int32_t i = c.levels.starts[level]; i < losers; ++i) {
            const double s_i = c.s[i], w = c.w[i];
            const HalfLanes e_i = HalfLanes{} + begin_winner(c, i, losers);
            HalfLanes chance[2] = {}, spread[2] = {}, loss[2] = {};
            for (int32_t j = losers; j < n; j += 8)
                for (int32_t half = 0; half < 2; ++half) {
                    const int32_t at = j + 4 * half;
                    HalfLanes e_j, f_j, h_j, s_j;
                    load(c.e + at, e_j);
                    const HalfLanes inverse = 1.0 / (e_i + e_j);
                    const HalfLanes wrong = e_j * inverse, both = wrong * (e_i * inverse);
                    chance[half] += wrong;
                    spread[half] += both;
                    load(force + at, f_j);
                    load(weight + at, h_j);
                    store(f_j - w * wrong, force + at);
                    store(h_j + w * both, weight + at);
                    if (WithValue) {
                        load(c.s + at, s_j);
                        loss[half] += pair_loss(e_i, e_j, s_i, s_j);
                    }
                }
            force[i] += w * sum(chance[0] + chance[1]);
            weight[i] += w * sum(spread[0] + spread[1]);
            if (WithValue) value += w * sum(loss[0] + loss[1]);
        }
    }
    return value;
}

RANKWISE_CLONES static double logistic_query(const LogisticColumns& c, bool with_value,
                                             double* force, double* weight) {
    if (with_value) return logistic_forces<true>(c, force, weight);
    return logistic_forces<false>(c, force, weight);
}

RANKWISE_CLONES static void logistic_product(const LogisticColumns& c, const double* v,
                                             double* out) {
    for (int32_t level = 0; level + 1 < c.levels.count; ++level) {
        const int32_t losers = c.levels.starts[level + 1], n = c.levels.n();
        for (int32_t i = c.levels.starts[level]; i < losers; ++i) {
            const double e_i = begin_winner(c, i, losers), w = c.w[i], v_i = v[i];
            HalfLanes total[2] = {};
            for (int32_t j = losers; j < n; j += 8)
                for (int32_t half = 0; half < 2; ++half) {
                    const int32_t at = j + 4 * half;
                    HalfLanes e_j, v_j, o_j;
                    load(c.e + at, e_j);
                    load(v + at, v_j);
                    load(out + at, o_j);
                    const HalfLanes inverse = 1.0 / (e_i + e_j);
                    const HalfLanes flow = (e_j * inverse) * (e_i * inverse) * (v_i - v_j);
                    total[half] += flow;
                    store(o_j - w * flow, out + at);
                }
            out[i] += w * sum(total[0] + total[1]);
        }
    }
}

class RankNetLoss final : public ConvexLoss {
  public:
    RankNetLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight,
                double sigma)
        : ConvexLoss(offsets, n_queries),
          levels_(y, offsets, n_queries),
          weight_(weight, n_docs()),
          sigma_(sigma),
          scores_(n_docs()) {
        for (int64_t q = 0; q < n_queries; ++q) pairs_ += levels_.n_pairs(q);
    }
    int64_t work() const override { return pairs_ * 2 + n_docs() * 20; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const Levels levels = levels_.of(q);
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        for (int32_t x = 0; x < levels.n(); ++x)
            scores_[begin(q) + x] = sigma_ * s[levels.order[x]];
        const LogisticColumns c = columns(q);
        double *force = zeros(3, q), *spread = zeros(4, q);
        const double total = logistic_query(c, value != nullptr, force, spread);
        for (int32_t x = 0; x < levels.n(); ++x) {
            gradient[levels.order[x]] = -sigma_ * force[x];
            curvature[levels.order[x]] = sigma_ * sigma_ * spread[x];
        }
        if (value) *value = total;
    }
    void product(int64_t q, const double* v, double* out) const override {
        const Levels levels = levels_.of(q);
        std::fill(out, out + size(q), 0.0);
        const LogisticColumns c = columns(q);
        double *sorted = zeros(3, q), *flow = zeros(4, q);
        for (int32_t x = 0; x < levels.n(); ++x) sorted[x] = v[levels.order[x]];
        logistic_product(c, sorted, flow);
        for (int32_t x = 0; x < levels.n(); ++x) out[levels.order[x]] = sigma_ * sigma_ * flow[x];
    }

  private:
    double* zeros(size_t column, int64_t q) const {
        double* values = scratch(column, size(q) + 8);
        std::fill(values, values + size(q) + 8, 0.0);
        return values;
    }
    LogisticColumns columns(int64_t q) const {
        const Levels levels = levels_.of(q);
        const int32_t n = levels.n();
        double *s = scratch(0, n + 8), *e = zeros(1, q), *w = scratch(2, n + 8);
        const double* kept = scores_.data() + begin(q);
        double low = INFINITY, high = -INFINITY;
        for (int32_t x = 0; x < n; ++x) {
            low = std::min(low, kept[x]);
            high = std::max(high, kept[x]);
            w[x] = weight_[begin(q) + levels.order[x]];
        }
        const double middle = low + (high - low) / 2;
        const bool wide = !(high - low <= 2 * kWidest);
        for (int32_t x = 0; x < n; ++x) {
            s[x] = kept[x] - middle;
            if (!wide) e[x] = std::exp(s[x]);
        }
        std::fill(s + n, s + n + 8, -1e300);
        return {levels, wide, s, e, w};
    }

    LabelLevels levels_;
    Weights weight_;
    double sigma_;
    int64_t pairs_ = 0;
    std::vector<double> scores_;
};

}  // namespace rankwise
