// Smooth stand-ins for a ranking metric: ApproxNDCG and BoltzRank.
#pragma once

#include "pairs_logistic.hpp"

namespace rankwise {

// ApproxNDCG: the rank of a document is replaced by
//
//   r_i = 1 + sum over j of 1 / (1 + exp(alpha (s_i - s_j)))
//
// and the loss is what DCG loses by it: [ideal sum of gains - sum of g_i D(r_i)] / ideal DCG with
// D(r) = 1 / log2(1 + r). The gains given are weighted; `scale` is 1 / ideal DCG without weights.
//
// The second derivative in a document's own score has terms of both signs. M_i, the sum over j of
// alpha b_ij (c_i + c_j) with b = alpha times the slope of the sigmoid and c = dloss/dr, is never
// below it; the curvature given is the second derivative, but at least M_i / 4.
class ApproxNdcgLoss final : public QueryLoss {
  public:
    ApproxNdcgLoss(const double* gain, const int64_t* offsets, int64_t n_queries,
                   const double* scale, double alpha)
        : QueryLoss(offsets, n_queries),
          gain_(gain, gain + n_docs()),
          scale_(scale, scale + n_queries),
          alpha_(alpha) {
        std::vector<double> sorted;
        for (int64_t q = 0; q < n_queries; ++q) {
            sorted.clear();
            for (int64_t i = begin(q); i < begin(q) + size(q); ++i)
                if (gain_[i] >= 0) sorted.push_back(gain_[i]);
            std::sort(sorted.begin(), sorted.end(), std::greater<double>());
            double best = 0;
            for (size_t r = 0; r < sorted.size(); ++r)
                best += sorted[r] / std::log2(2.0 + static_cast<double>(r));
            best_.push_back(best);
            work_ += size(q) * size(q);
        }
    }
    int64_t work() const override { return work_ * 3 + n_docs() * 40; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        if (!(scale_[q] > 0) || !(best_[q] > 0)) return;
        const Columns c = columns(q, s);
        if (c.n < 2) return;
        ranks(c);
        double reached = 0;
        for (int32_t x = 0; x < c.n; ++x) reached += slopes(c, x, scale_[q]);
        pull(c);
        for (int32_t x = 0; x < c.n; ++x) {
            const double own = c.bend[x] + c.second[x] * c.spread[x] * c.spread[x];
            gradient[c.row[x]] = c.force[x];
            curvature[c.row[x]] = std::max(own, 0.25 * c.bound[x]);
        }
        if (value) *value = std::max((best_[q] - reached) * scale_[q], 0.0);
    }

  private:
    // The judged documents of one query; columns padded by eight places that change nothing.
    struct Columns {
        int32_t n;
        bool wide;
        int32_t* row;
        double *s, *e, *gain, *rank, *first, *second, *force, *spread, *bend, *bound;
        double alpha;
    };

    Columns columns(int64_t q, const double* s) const {
        static thread_local std::vector<double> kept;
        static thread_local std::vector<int32_t> rows;
        const int64_t stride = size(q) + 8;
        kept.assign(10 * stride, 0.0);
        rows.resize(stride);
        Columns c{};
        c.row = rows.data();
        c.alpha = alpha_;
        double** all[] = {&c.s,      &c.e,     &c.gain,   &c.rank, &c.first,
                          &c.second, &c.force, &c.spread, &c.bend, &c.bound};
        for (int k = 0; k < 10; ++k) *all[k] = kept.data() + k * stride;
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < size(q); ++i) {
            if (!(gain_[begin(q) + i] >= 0)) continue;
            c.row[c.n] = static_cast<int32_t>(i);
            c.gain[c.n] = gain_[begin(q) + i];
            c.s[c.n] = alpha_ * s[i];
            low = std::min(low, c.s[c.n]);
            high = std::max(high, c.s[c.n]);
            ++c.n;
        }
        c.wide = !(high - low <= 2 * kWidest);
        const double middle = low + (high - low) / 2;
        for (int32_t x = 0; x < c.n; ++x) {
            c.s[x] -= middle;
            c.e[x] = c.wide ? 0.0 : std::exp(c.s[x]);
        }
        return c;
    }

    static double begin_document(const Columns& c, int32_t i) {
        if (!c.wide) return c.e[i];
        for (int32_t j = i + 1; j < c.n; ++j) c.e[j] = bounded_exp(c.s[j] - c.s[i]);
        return 1.0;
    }

    RANKWISE_CLONES static void ranks(const Columns& c) {
        for (int32_t i = 0; i < c.n; ++i) {
            const HalfLanes e_i = HalfLanes{} + begin_document(c, i);
            HalfLanes before = {};
            for (int32_t j = i + 1; j < c.n; j += 4) {
                HalfLanes e_j, r_j;
                load(c.e + j, e_j), load(c.rank + j, r_j);
                const HalfLanes inverse = 1.0 / (e_i + e_j);
                before += e_j * inverse;
                store(r_j + e_i * inverse, c.rank + j);
            }
            c.rank[i] += 1 + sum(before);
        }
    }

    // Slope and bend of the loss in the rank of a document; returns g D(r).
    static double slopes(const Columns& c, int32_t x, double scale) {
        const double up = 1 + c.rank[x], log_up = std::log(up);
        const double discount = 0.69314718055994531 / log_up;
        c.first[x] = scale * c.gain[x] * discount / (up * log_up);
        c.second[x] = -scale * c.gain[x] * discount * (log_up + 2) / (up * up * log_up * log_up);
        return c.gain[x] * discount;
    }

    RANKWISE_CLONES static void pull(const Columns& c) {
        for (int32_t i = 0; i < c.n; ++i) {
            const HalfLanes e_i = HalfLanes{} + begin_document(c, i);
            const double c_i = c.first[i], d_i = c.second[i], alpha = c.alpha;
            HalfLanes force = {}, spread = {}, bend = {}, bound = {};
            for (int32_t j = i + 1; j < c.n; j += 4) {
                HalfLanes e_j, c_j, d_j, f_j, p_j, h_j, m_j;
                load(c.e + j, e_j), load(c.first + j, c_j), load(c.second + j, d_j);
                load(c.force + j, f_j), load(c.spread + j, p_j);
                load(c.bend + j, h_j), load(c.bound + j, m_j);
                const HalfLanes inverse = 1.0 / (e_i + e_j);
                const HalfLanes over = e_j * inverse, under = e_i * inverse;
                const HalfLanes b = alpha * (over * under);
                const HalfLanes flow = b * (c_j - c_i);
                const HalfLanes turn = alpha * b * (under - over) * (c_i - c_j);
                const HalfLanes most = alpha * b * (c_i + c_j), square = b * b;
                force += flow, spread += b, bound += most;
                bend += d_j * square + turn;
                store(f_j - flow, c.force + j), store(p_j + b, c.spread + j);
                store(h_j + d_i * square + turn, c.bend + j), store(m_j + most, c.bound + j);
            }
            c.force[i] += sum(force);
            c.spread[i] += sum(spread);
            c.bend[i] += sum(bend);
            c.bound[i] += sum(bound);
        }
    }

    std::vector<double> gain_, scale_, best_;
    double alpha_;
    int64_t work_ = 0;
};

// BoltzRank on a fixed sample of rankings m of each query. A ranking has the chance
//
//   P_m = exp(F_m) / sum,   F_m = 2 sigma / (n (n - 1)) sum over i ranked before j of s_i - s_j,
//
// and the loss is w [metric_weight sum of P_m (best - M_m) + (1 - metric_weight) KL(Q, P)], M the
// metric of the rankings, Q the chances when labels are scores. F is linear in the places, so
// derivatives are moments of the places under P.
//
// The second derivative of the metric's part has both signs; the curvature given is the second
// derivative, but at least a quarter of the variance that bounds it.
class BoltzRankLoss final : public QueryLoss {
  public:
    // `place`: for each query its n_samples rankings one after the other, each the place from 0 of
    // every document, -1 for absent ones. `lost`: best - M, one number per query and ranking.
    BoltzRankLoss(const double* y, const int64_t* offsets, int64_t n_queries, const double* weight,
                  const int32_t* place, const double* lost, int64_t n_samples, double metric_weight,
                  double sigma)
        : QueryLoss(offsets, n_queries),
          samples_(n_samples),
          place_(place, place + n_samples * n_docs()),
          lost_(lost, lost + n_samples * n_queries),
          target_(n_samples * n_queries),
          metric_weight_(metric_weight),
          sigma_(sigma) {
        const Weights weights(weight, n_docs());
        std::vector<double> clean;
        for (int64_t q = 0; q < n_queries; ++q) {
            double total = 0, n = 0;
            clean.assign(size(q), 0.0);
            for (int64_t i = 0; i < size(q); ++i)
                if (!std::isnan(y[begin(q) + i])) {
                    clean[i] = y[begin(q) + i];
                    total += weights[begin(q) + i];
                    ++n;
                }
            factor_.push_back(n > 1 ? total / n : 0.0);
            slope_.push_back(n > 1 ? -4 * sigma_ / (n * (n - 1)) : 0.0);
            chances(q, clean.data(), target_.data() + q * samples_);
        }
    }
    int64_t work() const override { return n_docs() * samples_ * 3; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        const int64_t n = size(q);
        double *mean = scratch(0, n), *variance = scratch(1, n), *bend = scratch(2, n);
        double *p = scratch(3, samples_), *push = scratch(4, samples_);
        double* centre = scratch(5, samples_);
        std::fill(mean, mean + n, 0.0);
        std::fill(variance, variance + n, 0.0);
        std::fill(bend, bend + n, 0.0);
        std::fill(gradient, gradient + n, 0.0);
        chances(q, s, p);
        const double *lost = lost_.data() + q * samples_, *target = target_.data() + q * samples_;
        double expected = 0, divergence = 0, most = 0;
        for (int64_t m = 0; m < samples_; ++m) {
            expected += p[m] * lost[m];
            most = std::max(most, lost[m]);
            if (target[m] > 0)
                divergence += target[m] * std::log(target[m] / std::max(p[m], 1e-300));
        }
        const double share = metric_weight_, other = 1 - metric_weight_;
        for (int64_t m = 0; m < samples_; ++m) {
            centre[m] = p[m] * (lost[m] - expected);
            push[m] = share * centre[m] + other * (p[m] - target[m]);
        }
        moments(place_.data() + begin(q) * samples_, n, samples_, p, push, centre,
                {mean, variance, bend, gradient});
        const double slope = slope_[q], factor = factor_[q];
        for (int64_t i = 0; i < n; ++i) {
            if (place_[begin(q) * samples_ + i] < 0) {
                gradient[i] = curvature[i] = 0;
                continue;
            }
            gradient[i] *= factor * slope;
            const double exact = other * variance[i] + share * bend[i];
            const double least = 0.25 * (other + share * most) * variance[i];
            curvature[i] = factor * slope * slope * std::max(exact, least);
        }
        if (value) *value = factor * std::max(share * expected + other * divergence, 0.0);
    }

  private:
    struct Moments {
        double *mean, *variance, *bend, *pushed;
    };
    // Sums over rankings: of p times the place, of p times its squared distance from that mean, of
    // the same times `centre`, and of `push` times the place.
    RANKWISE_CLONES static void moments(const int32_t* place, int64_t n, int64_t samples,
                                        const double* p, const double* push, const double* centre,
                                        const Moments& out) {
        for (int64_t m = 0; m < samples; ++m)
            for (int64_t i = 0; i < n; ++i) out.mean[i] += p[m] * place[m * n + i];
        for (int64_t m = 0; m < samples; ++m)
            for (int64_t i = 0; i < n; ++i) {
                const double away = place[m * n + i] - out.mean[i], square = away * away;
                out.variance[i] += p[m] * square;
                out.bend[i] += centre[m] * square;
                out.pushed[i] += push[m] * away;
            }
    }
    RANKWISE_CLONES static void dots(const int32_t* place, int64_t n, int64_t samples,
                                     const double* s, double* out) {
        for (int64_t m = 0; m < samples; ++m) {
            HalfLanes total = {};
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) {
                HalfLanes s_i;
                load(s + i, s_i);
                const int32_t* at = place + m * n + i;
                const HalfLanes places = {double(at[0]), double(at[1]), double(at[2]),
                                          double(at[3])};
                total += places * s_i;
            }
            double rest = 0;
            for (; i < n; ++i) rest += place[m * n + i] * s[i];
            out[m] = sum(total) + rest;
        }
    }
    // p = chances of the rankings at scores s.
    void chances(int64_t q, const double* s, double* p) const {
        const int64_t n = size(q);
        const int32_t* place = place_.data() + begin(q) * samples_;
        double* centred = scratch(6, n);
        double mean = 0, count = 0;
        for (int64_t i = 0; i < n; ++i)
            if (place[i] >= 0) mean += s[i], ++count;
        for (int64_t i = 0; i < n; ++i) centred[i] = place[i] >= 0 ? s[i] - mean / count : 0.0;
        dots(place, n, samples_, centred, p);
        double top = -INFINITY, total = 0;
        for (int64_t m = 0; m < samples_; ++m) p[m] *= slope_[q], top = std::max(top, p[m]);
        for (int64_t m = 0; m < samples_; ++m) total += p[m] = std::exp(p[m] - top);
        for (int64_t m = 0; m < samples_; ++m) p[m] /= total;
    }

    int64_t samples_;
    std::vector<int32_t> place_;
    std::vector<double> lost_, target_, factor_, slope_;
    double metric_weight_, sigma_;
};

}  // namespace rankwise
