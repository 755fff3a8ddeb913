// RankBoost's loss: sum over pairs of w exp(-(s_winner - s_loser)), in O(n) for sorted labels.
//
// The exponential of a difference factorises, so the losers of a winner matter by one sum. Scores
// are taken relative to the middle of their range and at most 300 from it, which keeps every
// number finite.
#pragma once

#include "pairs.hpp"

namespace rankwise {

class ExponentialLoss final : public ConvexLoss {
  public:
    ExponentialLoss(const double* y, const int64_t* offsets, int64_t n_queries,
                    const double* weight)
        : ConvexLoss(offsets, n_queries),
          levels_(y, offsets, n_queries),
          weight_(weight, n_docs()),
          up_(n_docs()),
          down_(n_docs()) {}
    int64_t work() const override { return n_docs() * 20; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        exponentials(q, l, s);
        const double *up = up_.data() + begin(q), *down = down_.data() + begin(q);
        double* won = scratch(0, l.n());
        double total = 0;
        below(
            l, [up](int32_t x) { return up[x]; },
            [&](int32_t x, double losers) {
                won[x] = down[x] * losers;
                total += won[x];
            });
        above(
            l, [down](int32_t x) { return down[x]; },
            [&](int32_t x, double winners) {
                const double lost = up[x] * winners;
                gradient[l.order[x]] = lost - won[x];
                curvature[l.order[x]] = lost + won[x];
            });
        if (value) *value = total;
    }

    void product(int64_t q, const double* v, double* out) const override {
        std::fill(out, out + size(q), 0.0);
        const Levels l = levels_.of(q);
        if (l.count < 2) return;
        const double *up = up_.data() + begin(q), *down = down_.data() + begin(q);
        const int32_t* order = l.order;
        below(
            l, [up](int32_t x) { return up[x]; },
            [&](int32_t x, double losers) { out[order[x]] += down[x] * losers * v[order[x]]; });
        below(
            l, [&](int32_t x) { return up[x] * v[order[x]]; },
            [&](int32_t x, double losers) { out[order[x]] -= down[x] * losers; });
        above(
            l, [down](int32_t x) { return down[x]; },
            [&](int32_t x, double winners) { out[order[x]] += up[x] * winners * v[order[x]]; });
        above(
            l, [&](int32_t x) { return down[x] * v[order[x]]; },
            [&](int32_t x, double winners) { out[order[x]] -= up[x] * winners; });
    }

  private:
    // exp(s), and w exp(-s), of the documents in label order.
    void exponentials(int64_t q, const Levels& l, const double* s) {
        double low = INFINITY, high = -INFINITY;
        for (int32_t x = 0; x < l.n(); ++x) {
            low = std::min(low, s[l.order[x]]);
            high = std::max(high, s[l.order[x]]);
        }
        const double middle = low + (high - low) / 2;
        for (int32_t x = 0; x < l.n(); ++x) {
            const double e = std::exp(std::clamp(s[l.order[x]] - middle, -300.0, 300.0));
            up_[begin(q) + x] = e;
            down_[begin(q) + x] = weight_[begin(q) + l.order[x]] / e;
        }
    }
    // Calls use(x, sum of term over the documents with lower labels than x) for every place x.
    template <class Term, class Use>
    static void below(const Levels& l, Term&& term, Use&& use) {
        double sum = 0;
        for (int32_t level = l.count - 1; level >= 0; --level) {
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) use(x, sum);
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) sum += term(x);
        }
    }
    // The same over the documents with higher labels.
    template <class Term, class Use>
    static void above(const Levels& l, Term&& term, Use&& use) {
        double sum = 0;
        for (int32_t level = 0; level < l.count; ++level) {
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) use(x, sum);
            for (int32_t x = l.starts[level]; x < l.starts[level + 1]; ++x) sum += term(x);
        }
    }

    LabelLevels levels_;
    Weights weight_;
    std::vector<double> up_, down_;
};

}  // namespace rankwise
