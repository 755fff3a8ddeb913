// Losses of the chance that a pair is ordered rightly, p = 1 / (1 + exp(-sigma (s_winner -
// s_loser))): RankNet's, -log p, and FRank's, 1 - sqrt(p), summed over pairs with weight w.
//
// With e = exp(sigma s) the chance that a pair is ordered wrongly is e_loser / (e_winner +
// e_loser), so a pair costs a division and no exponential. Scores are taken relative to the middle
// of their range, which keeps e finite while the range is below 1400 / sigma; wider lists compute e
// anew for each winner.
#pragma once

#include "lanes.hpp"
#include "pairs.hpp"
#include "simd.hpp"
#include "vecmath.hpp"

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

// log(1 + exp(s_loser - s_winner)) of four pairs; e holds the exponentials of the same scores.
RANKWISE_INLINE HalfLanes pair_loss(const HalfLanes& e_i, const HalfLanes& e_j, double s_i,
                                    const HalfLanes& s_j) {
    const HalfLanes zero = {}, lead = s_j - s_i;
    const HalfMask ahead = e_j > e_i;
    const HalfLanes big = ahead ? e_j : e_i, small = ahead ? e_i : e_j;
    HalfLanes rest;
    log_one_plus(small / big, rest);
    return (lead > 0.0 ? lead : zero) + rest;
}

inline double begin_winner(const LogisticColumns& c, int32_t i, int32_t first_loser) {
    if (!c.wide) return c.e[i];
    for (int32_t j = first_loser; j < c.levels.n(); ++j) c.e[j] = bounded_exp(c.s[j] - c.s[i]);
    return 1.0;
}

// What a pair adds, from the chances that it is ordered wrongly and rightly: minus the slope and
// the curvature in the margin, both for sigma = 1, and the loss.
struct LogisticTerms {
    using Base = ConvexLoss;
    HalfLanes force, bend;
    RANKWISE_INLINE LogisticTerms(const HalfLanes& wrong, const HalfLanes& right)
        : force(wrong), bend(wrong * right) {}
    RANKWISE_INLINE HalfLanes loss(const HalfLanes& e_i, const HalfLanes& e_j, double s_i,
                                   const HalfLanes& s_j) const {
        return pair_loss(e_i, e_j, s_i, s_j);
    }
};

// The second derivative, sqrt(p) (1 - p) (3 p - 1) / 4, turns negative below p = 1/3. There, and
// up to p = 1/2 where it meets it, the curvature given is sqrt(p) (1 - p) / 8: never below the
// second derivative, and never so small that a Newton step runs away.
struct FidelityTerms {
    using Base = QueryLoss;
    HalfLanes force, bend, root, wrong;
    RANKWISE_INLINE FidelityTerms(const HalfLanes& wrong_, const HalfLanes& right) : wrong(wrong_) {
        const HalfLanes half = HalfLanes{} + 0.5, excess = 3.0 * right - 1.0;
        for (int lane = 0; lane < 4; ++lane) root[lane] = std::sqrt(right[lane]);
        force = 0.5 * root * wrong;
        bend = 0.5 * force * (excess > half ? excess : half);
    }
    RANKWISE_INLINE HalfLanes loss(const HalfLanes&, const HalfLanes&, double,
                                   const HalfLanes&) const {
        return wrong / (1.0 + root);
    }
};

template <class Terms, bool WithValue>
RANKWISE_INLINE double sigmoid_forces(const LogisticColumns& c, double* force, double* weight) {
    double value = 0;
    for (int32_t level = 0; level + 1 < c.levels.count; ++level) {
        const int32_t losers = c.levels.starts[level + 1], n = c.levels.n();
        for (int32_t i = c.levels.starts[level]; i < losers; ++i) {
            const double s_i = c.s[i], w = c.w[i];
            const HalfLanes e_i = HalfLanes{} + begin_winner(c, i, losers);
            HalfLanes pull[2] = {}, spread[2] = {}, loss[2] = {};
            for (int32_t j = losers; j < n; j += 8)
                for (int32_t half = 0; half < 2; ++half) {
                    const int32_t at = j + 4 * half;
                    HalfLanes e_j, f_j, h_j, s_j;
                    load(c.e + at, e_j);
                    const HalfLanes inverse = 1.0 / (e_i + e_j);
                    const Terms terms(e_j * inverse, e_i * inverse);
                    pull[half] += terms.force;
                    spread[half] += terms.bend;
                    load(force + at, f_j);
                    load(weight + at, h_j);
                    store(f_j - w * terms.force, force + at);
                    store(h_j + w * terms.bend, weight + at);
                    if (WithValue) {
                        load(c.s + at, s_j);
                        loss[half] += terms.loss(e_i, e_j, s_i, s_j);
                    }
                }
            force[i] += w * sum(pull[0] + pull[1]);
            weight[i] += w * sum(spread[0] + spread[1]);
            if (WithValue) value += w * sum(loss[0] + loss[1]);
        }
    }
    return value;
}

RANKWISE_CLONES static double sigmoid_query(const LogisticColumns& c, bool with_value,
                                            double* force, double* weight, const LogisticTerms*) {
    if (with_value) return sigmoid_forces<LogisticTerms, true>(c, force, weight);
    return sigmoid_forces<LogisticTerms, false>(c, force, weight);
}
RANKWISE_CLONES static double sigmoid_query(const LogisticColumns& c, bool with_value,
                                            double* force, double* weight, const FidelityTerms*) {
    if (with_value) return sigmoid_forces<FidelityTerms, true>(c, force, weight);
    return sigmoid_forces<FidelityTerms, false>(c, force, weight);
}

// 1 for the places before `end`, 0 for those from it on.
RANKWISE_INLINE HalfLanes before(int32_t at, int32_t end) {
    const HalfMask place = HalfMask{0, 1, 2, 3} + at;
    const HalfLanes zero = {};
    return place < end ? zero + 1.0 : zero;
}

// Pairs of documents with equal labels: RankNet's loss with the target 1/2, weighted by the mean of
// both weights. Value, force and weight as above.
template <bool WithValue>
RANKWISE_INLINE double even_forces(const LogisticColumns& c, double* force, double* weight) {
    double value = 0;
    for (int32_t level = 0; level < c.levels.count; ++level) {
        const int32_t end = c.levels.starts[level + 1];
        for (int32_t i = c.levels.starts[level]; i + 1 < end; ++i) {
            const double s_i = c.s[i], w_i = 0.5 * c.w[i];
            const HalfLanes e_i = HalfLanes{} + begin_winner(c, i, i + 1);
            HalfLanes pull = {}, spread = {}, loss = {};
            for (int32_t at = i + 1; at < end; at += 4) {
                HalfLanes e_j, f_j, h_j, s_j, w_j;
                load(c.e + at, e_j), load(c.w + at, w_j), load(c.s + at, s_j);
                load(force + at, f_j), load(weight + at, h_j);
                const HalfLanes w = before(at, end) * (w_i + 0.5 * w_j);
                const HalfLanes inverse = 1.0 / (e_i + e_j);
                const HalfLanes both = w * ((e_j * inverse) * (e_i * inverse));
                const HalfLanes net = 0.5 * w * ((e_j - e_i) * inverse);
                pull += net, spread += both;
                store(f_j - net, force + at), store(h_j + both, weight + at);
                if (!WithValue) continue;
                // log(1 + exp(-m)) / 2 + log(1 + exp(m)) / 2 = log(1 + exp(-m)) + m / 2
                const HalfLanes gap = before(at, end) * (s_i - s_j);
                loss += w * pair_loss(e_i, e_j, s_i, s_i - gap) + 0.5 * w * gap;
            }
            force[i] += sum(pull);
            weight[i] += sum(spread);
            value += sum(loss);
        }
    }
    return value;
}

RANKWISE_CLONES static double logistic_even(const LogisticColumns& c, bool with_value,
                                            double* force, double* weight) {
    if (with_value) return even_forces<true>(c, force, weight);
    return even_forces<false>(c, force, weight);
}

RANKWISE_CLONES static void logistic_even_product(const LogisticColumns& c, const double* v,
                                                  double* out) {
    for (int32_t level = 0; level < c.levels.count; ++level) {
        const int32_t end = c.levels.starts[level + 1];
        for (int32_t i = c.levels.starts[level]; i + 1 < end; ++i) {
            const double e_i = begin_winner(c, i, i + 1), w_i = 0.5 * c.w[i], v_i = v[i];
            HalfLanes total = {};
            for (int32_t at = i + 1; at < end; at += 4) {
                HalfLanes e_j, v_j, o_j, w_j;
                load(c.e + at, e_j), load(c.w + at, w_j), load(v + at, v_j), load(out + at, o_j);
                const HalfLanes inverse = 1.0 / (e_i + e_j);
                const HalfLanes w = before(at, end) * (w_i + 0.5 * w_j);
                const HalfLanes flow = w * ((e_j * inverse) * (e_i * inverse) * (v_i - v_j));
                total += flow;
                store(o_j - flow, out + at);
            }
            out[i] += sum(total);
        }
    }
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

template <class Terms>
class SigmoidLoss : public Terms::Base {
  public:
    // `even`: documents with equal labels form pairs with the target 1/2.
    SigmoidLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight,
                double sigma, bool even = false)
        : Terms::Base(offsets, n_queries),
          levels_(y, offsets, n_queries),
          weight_(weight, this->n_docs()),
          sigma_(sigma),
          even_(even),
          scores_(this->n_docs()) {
        for (int64_t q = 0; q < n_queries; ++q) {
            const int64_t n = levels_.of(q).n();
            pairs_ += even ? n * n / 2 : levels_.n_pairs(q);
        }
    }
    int64_t work() const override { return pairs_ * 2 + this->n_docs() * 20; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const Levels levels = levels_.of(q);
        std::fill(gradient, gradient + this->size(q), 0.0);
        std::fill(curvature, curvature + this->size(q), 0.0);
        for (int32_t x = 0; x < levels.n(); ++x)
            scores_[this->begin(q) + x] = sigma_ * s[levels.order[x]];
        const LogisticColumns c = columns(q);
        double *force = zeros(3, q), *spread = zeros(4, q);
        double total =
            sigmoid_query(c, value != nullptr, force, spread, static_cast<const Terms*>(nullptr));
        if (even_) total += logistic_even(c, value != nullptr, force, spread);
        for (int32_t x = 0; x < levels.n(); ++x) {
            gradient[levels.order[x]] = -sigma_ * force[x];
            curvature[levels.order[x]] = sigma_ * sigma_ * spread[x];
        }
        if (value) *value = total;
    }

  protected:
    double* zeros(size_t column, int64_t q) const {
        double* values = scratch(column, this->size(q) + 8);
        std::fill(values, values + this->size(q) + 8, 0.0);
        return values;
    }
    LogisticColumns columns(int64_t q) const {
        const Levels levels = levels_.of(q);
        const int32_t n = levels.n();
        double *s = scratch(0, n + 8), *e = zeros(1, q), *w = scratch(2, n + 8);
        const double* kept = scores_.data() + this->begin(q);
        double low = INFINITY, high = -INFINITY;
        for (int32_t x = 0; x < n; ++x) {
            low = std::min(low, kept[x]);
            high = std::max(high, kept[x]);
            w[x] = weight_[this->begin(q) + levels.order[x]];
        }
        const double middle = low + (high - low) / 2;
        const bool wide = !(high - low <= 2 * kWidest);
        for (int32_t x = 0; x < n; ++x) {
            s[x] = kept[x] - middle;
            if (!wide) e[x] = std::exp(s[x]);
        }
        std::fill(s + n, s + n + 8, -1e300);
        std::fill(w + n, w + n + 8, 0.0);
        return {levels, wide, s, e, w};
    }

    LabelLevels levels_;
    Weights weight_;
    double sigma_;
    bool even_;
    int64_t pairs_ = 0;
    std::vector<double> scores_;
};

using FidelityLoss = SigmoidLoss<FidelityTerms>;

class RankNetLoss final : public SigmoidLoss<LogisticTerms> {
  public:
    using SigmoidLoss::SigmoidLoss;
    void product(int64_t q, const double* v, double* out) const override {
        const Levels levels = levels_.of(q);
        std::fill(out, out + size(q), 0.0);
        const LogisticColumns c = columns(q);
        double *sorted = zeros(3, q), *flow = zeros(4, q);
        for (int32_t x = 0; x < levels.n(); ++x) sorted[x] = v[levels.order[x]];
        logistic_product(c, sorted, flow);
        if (even_) logistic_even_product(c, sorted, flow);
        for (int32_t x = 0; x < levels.n(); ++x) out[levels.order[x]] = sigma_ * sigma_ * flow[x];
    }
};

}  // namespace rankwise
