// Ordered classes with thresholds between them: a document of level l costs cost(s - theta_l) for
// the threshold over it and cost(theta_(l-1) - s) for the one under it, where they exist.
//
// The best thresholds take several passes over the scores, so documents are sorted by level once:
// each level has its two thresholds, and the inner loops are contiguous. With e = exp(s) and
// t = exp(theta) the logistic cost takes a division and no exponential. Sums are over fixed blocks,
// whatever the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "vecmath.hpp"

namespace rankwise {

// A cost and its two derivatives.
struct SideTerms {
    double loss, slope, bend;
};

inline SideTerms softplus(double x) {
    const double small = std::exp(-std::abs(x));
    const double up = (x < 0 ? small : 1.0) / (1 + small);
    const double down = (x < 0 ? 1.0 : small) / (1 + small);
    return {std::max(x, 0.0) + std::log1p(small), up, up * down};
}

inline SideTerms squared_margin(double x) {
    const double lack = std::max(1 + x, 0.0);
    return {lack * lack, 2 * lack, x > -1 ? 2.0 : 0.0};
}

// Sums over the documents of one level: slopes and bends of the side under the upper threshold
// (`low`) and of the side over the lower one (`high`).
struct LevelSums {
    double low_slope = 0, low_bend = 0, high_slope = 0, high_bend = 0;
    void add(const LevelSums& other) {
        low_slope += other.low_slope, low_bend += other.low_bend;
        high_slope += other.high_slope, high_bend += other.high_bend;
    }
};

// Sums of w up and w up (1 - up) with up = e / (e + t), and of w down and w down (1 - down) with
// down = u / (e + u), for exponentials e of scores and t, u of the thresholds over and under them.
RANKWISE_CLONES static void logistic_sums(const double* e, const double* w, int64_t n, double t,
                                          double u, LevelSums& out) {
    HalfLanes sums[4] = {};
    const HalfLanes one = HalfLanes{} + 1.0;
    for (int64_t i = 0; i + 4 <= n; i += 4) {
        HalfLanes score, weight;
        load(e + i, score);
        load(w + i, weight);
        const HalfLanes over = one / (score + t), up = weight * (score * over);
        const HalfLanes under = one / (score + u), down = weight * (u * under);
        sums[0] += up;
        sums[1] += up * (t * over);
        sums[2] += down;
        sums[3] += down * (score * under);
    }
    double* parts[4] = {&out.low_slope, &out.low_bend, &out.high_slope, &out.high_bend};
    for (int part = 0; part < 4; ++part) *parts[part] += sum(sums[part]);
    for (int64_t i = n / 4 * 4; i < n; ++i) {
        const double over = 1 / (e[i] + t), under = 1 / (e[i] + u);
        out.low_slope += w[i] * (e[i] * over);
        out.low_bend += w[i] * (e[i] * over) * (t * over);
        out.high_slope += w[i] * (u * under);
        out.high_bend += w[i] * (u * under) * (e[i] * under);
    }
}

RANKWISE_CLONES static void margin_sums(const double* s, const double* w, int64_t n, double theta,
                                        double lower, LevelSums& out) {
    HalfLanes sums[4] = {};
    const HalfLanes zero = {}, two = zero + 2.0;
    for (int64_t i = 0; i + 4 <= n; i += 4) {
        HalfLanes score, weight;
        load(s + i, score);
        load(w + i, weight);
        const HalfLanes lack = (score - theta) + 1.0, excess = (lower - score) + 1.0;
        sums[0] += weight * (lack > 0.0 ? two * lack : zero);
        sums[1] += weight * (lack > 0.0 ? two : zero);
        sums[2] += weight * (excess > 0.0 ? two * excess : zero);
        sums[3] += weight * (excess > 0.0 ? two : zero);
    }
    double* parts[4] = {&out.low_slope, &out.low_bend, &out.high_slope, &out.high_bend};
    for (int part = 0; part < 4; ++part) *parts[part] += sum(sums[part]);
    for (int64_t i = n / 4 * 4; i < n; ++i) {
        const SideTerms low = squared_margin(s[i] - theta), high = squared_margin(lower - s[i]);
        out.low_slope += w[i] * low.slope, out.low_bend += w[i] * low.bend;
        out.high_slope += w[i] * high.slope, out.high_bend += w[i] * high.bend;
    }
}

// e = exp(s - top) for scores of at most top.
RANKWISE_CLONES static void exponentials(const double* s, int64_t n, double top, double* e) {
    const HalfLanes scale = HalfLanes{} + 1.4426950408889634;
    for (int64_t i = 0; i + 4 <= n; i += 4) {
        HalfLanes score, power;
        load(s + i, score);
        power_of_two<double>((score - top) * scale, power);
        store(power, e + i);
    }
    for (int64_t i = n / 4 * 4; i < n; ++i) e[i] = std::exp(s[i] - top);
}

// One document's terms at both thresholds; the caller leaves out a side that does not exist.
struct SideColumns {
    double *slope, *low, *high, *loss;
};

// The same terms of each document: w (up - down), the two bends, and the loss where asked for.
RANKWISE_CLONES static void logistic_terms(const double* e, const double* w, int64_t n, double t,
                                           double u, bool losses, const SideColumns& out) {
    const HalfLanes one = HalfLanes{} + 1.0, zero = {};
    const HalfLanes below = zero + (t > 0 ? 1.0 : 0.0), above = zero + (u > 0 ? 1.0 : 0.0);
    for (int64_t i = 0; i < n; i += 4) {
        double rest[2][4] = {};
        const bool whole = i + 4 <= n;
        for (int64_t lane = i; !whole && lane < n; ++lane)
            rest[0][lane - i] = e[lane], rest[1][lane - i] = w[lane];
        HalfLanes score, weight;
        load(whole ? e + i : rest[0], score);
        load(whole ? w + i : rest[1], weight);
        const HalfLanes over = one / (score + t), up = below * (score * over);
        const HalfLanes under = one / (score + u), down = above * (u * under);
        const HalfLanes columns[3] = {weight * (up - down), weight * (up * (t * over)),
                                      weight * (down * (score * under))};
        HalfLanes loss = zero;
        if (losses) {
            const HalfLanes high = zero + t, low = zero + u;
            // log(1 + e / t) = log(max / t) + log(1 + min / max), and so under the threshold.
            const HalfLanes big = score > high ? score : high, small = score > high ? high : score;
            const HalfLanes top = score > low ? score : low, least = score > low ? low : score;
            HalfLanes over_loss, under_loss;
            log_one_plus(small / big, over_loss);
            log_one_plus(least / top, under_loss);
            loss = below * over_loss + above * under_loss;
        }
        double* to[4] = {out.slope + i, out.low + i, out.high + i, out.loss + i};
        for (int column = 0; column < (losses ? 4 : 3); ++column) {
            const HalfLanes values = column < 3 ? columns[column] : loss;
            if (whole)
                store(values, to[column]);
            else
                for (int64_t lane = 0; lane < n - i; ++lane) to[column][lane] = values[lane];
        }
    }
}

class OrdinalSides {
  public:
    // level: 0 to n_thresholds, or -1 for a document that takes no part.
    OrdinalSides(const int32_t* level, int64_t n, const double* weight, int64_t n_thresholds,
                 bool margin)
        : margin_(margin), n_docs_(n), k_(n_thresholds), first_(n_thresholds + 2, 0) {
        for (int64_t i = 0; i < n; ++i)
            if (level[i] >= 0) ++first_[level[i] + 1];
        for (int64_t l = 0; l <= k_; ++l) first_[l + 1] += first_[l];
        doc_.resize(first_.back());
        std::vector<int64_t> next(first_.begin(), first_.end() - 1);
        for (int64_t i = 0; i < n; ++i)
            if (level[i] >= 0) doc_[next[level[i]]++] = i;
        for (const int64_t i : doc_) w_.push_back(weight ? weight[i] : 1.0);
        s_.resize(doc_.size());
        e_.resize(margin ? 0 : doc_.size());
        low_.resize(doc_.size());
        high_.resize(doc_.size());
        for (int64_t l = 0; l <= k_; ++l)
            for (int64_t i = first_[l]; i < first_[l + 1]; i += kBlock)
                blocks_.push_back({i, std::min(i + kBlock, first_[l + 1]), l});
    }
    int64_t n_docs() const { return n_docs_; }
    int64_t n_thresholds() const { return k_; }

    void set_scores(const double* s, int n_threads) {
        double low = HUGE_VAL;
        top_ = -HUGE_VAL;
        for (const int64_t i : doc_) low = std::min(low, s[i]), top_ = std::max(top_, s[i]);
        near_ = !margin_ && top_ - low < kWidest;
        over_blocks(n_threads, [&](size_t b) {
            const auto [begin, end, level] = blocks_[b];
            for (int64_t i = begin; i < end; ++i) s_[i] = s[doc_[i]];
            if (near_) exponentials(s_.data() + begin, end - begin, top_, e_.data() + begin);
        });
    }

    // One entry per level.
    std::vector<LevelSums> sums(const double* theta, int n_threads) const {
        std::vector<LevelSums> parts(blocks_.size()), out(k_ + 1);
        const bool near = all_near(theta);
        over_blocks(n_threads, [&](size_t b) {
            const auto [begin, end, level] = blocks_[b];
            // The lowest and the highest level have one threshold only; the other is far away.
            const double upper = level < k_ ? theta[level] : kFar;
            const double lower = level > 0 ? theta[level - 1] : -kFar;
            const double* w = w_.data() + begin;
            if (margin_)
                margin_sums(s_.data() + begin, w, end - begin, upper, lower, parts[b]);
            else if (near)
                logistic_sums(e_.data() + begin, w, end - begin,
                              level < k_ ? std::exp(upper - top_) : kFar,
                              level > 0 ? std::exp(lower - top_) : 0.0, parts[b]);
            else
                for (int64_t i = begin; i < end; ++i) {
                    const SideTerms low = softplus(s_[i] - upper), high = softplus(lower - s_[i]);
                    parts[b].add({w_[i] * low.slope, w_[i] * low.bend, w_[i] * high.slope,
                                  w_[i] * high.bend});
                }
        });
        for (size_t b = 0; b < blocks_.size(); ++b) out[blocks_[b].level].add(parts[b]);
        for (int64_t l = 0; l <= k_; ++l) {
            if (l == k_) out[l].low_slope = out[l].low_bend = 0;
            if (l == 0) out[l].high_slope = out[l].high_bend = 0;
        }
        return out;
    }

    // Loss (or null), gradient and curvature of each document at the thresholds, with what the
    // thresholds give way: `inverse` (k x k) is the inverse of their Hessian. extra[l] is what a
    // document of level l costs besides. Keeps the bends for `product`.
    void evaluate(const double* theta, const double* inverse, const double* extra, double* loss,
                  double* gradient, double* curvature, int n_threads) {
        const bool near = all_near(theta);
        over_blocks(n_threads, [&](size_t b) {
            const auto [begin, end, level] = blocks_[b];
            std::vector<double> slope(end - begin), own(loss ? end - begin : 0);
            terms(blocks_[b], theta, near,
                  {slope.data(), low_.data() + begin, high_.data() + begin, own.data()}, loss);
            const int64_t up = std::min(level, k_ - 1), down = std::max<int64_t>(level - 1, 0);
            const double above = inverse[up * k_ + up], below = inverse[down * k_ + down],
                         both = inverse[up * k_ + down];
            for (int64_t i = begin; i < end; ++i) {
                const double a = low_[i], c = high_[i];
                const double give = a * a * above + c * c * below + 2 * a * c * both;
                gradient[doc_[i]] = slope[i - begin];
                curvature[doc_[i]] = std::max(a + c - give, 0.0);
                if (loss) loss[doc_[i]] = own[i - begin] + w_[i] * extra[level];
            }
        });
    }

    // out = Hessian at the point last evaluated, times v.
    void product(const double* v, const double* inverse, double* out, int n_threads) const {
        std::vector<double> pulls(blocks_.size() * 2, 0.0), pull(k_, 0.0), give(k_, 0.0);
        over_blocks(n_threads, [&](size_t b) {
            for (int64_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                pulls[2 * b] += low_[i] * v[doc_[i]];
                pulls[2 * b + 1] += high_[i] * v[doc_[i]];
            }
        });
        for (size_t b = 0; b < blocks_.size(); ++b) {
            const int64_t level = blocks_[b].level;
            if (level < k_) pull[level] += pulls[2 * b];
            if (level > 0) pull[level - 1] += pulls[2 * b + 1];
        }
        for (int64_t a = 0; a < k_; ++a)
            for (int64_t b = 0; b < k_; ++b) give[a] += inverse[a * k_ + b] * pull[b];
        over_blocks(n_threads, [&](size_t b) {
            const auto [begin, end, level] = blocks_[b];
            const double upper = level < k_ ? give[level] : 0.0;
            const double lower = level > 0 ? give[level - 1] : 0.0;
            for (int64_t i = begin; i < end; ++i) {
                const double moved = v[doc_[i]];
                out[doc_[i]] = low_[i] * (moved - upper) + high_[i] * (moved - lower);
            }
        });
    }

  private:
    struct Block {
        int64_t begin, end, level;
    };
    static constexpr int64_t kBlock = 16384;
    static constexpr double kWidest = 600.0, kFar = 1e300;

    // Whether exponentials of scores and thresholds, relative to the highest score, are numbers.
    bool all_near(const double* theta) const {
        return near_ && std::all_of(theta, theta + k_, [this](double threshold) {
                   return std::abs(threshold - top_) < kWidest;
               });
    }

    // The weighted terms of the documents of a block.
    void terms(const Block& block, const double* theta, bool near, const SideColumns& out,
               bool losses) const {
        const auto [begin, end, level] = block;
        const double upper = level < k_ ? theta[level] : 0,
                     lower = level > 0 ? theta[level - 1] : 0;
        if (near) {
            const double t = level < k_ ? std::exp(upper - top_) : 0.0;
            const double u = level > 0 ? std::exp(lower - top_) : 0.0;
            logistic_terms(e_.data() + begin, w_.data() + begin, end - begin, t, u, losses, out);
            // What the logarithms leave out: the distance on the wrong side.
            for (int64_t i = begin; losses && i < end; ++i) {
                const double over = level < k_ ? std::max(s_[i] - upper, 0.0) : 0.0;
                const double under = level > 0 ? std::max(lower - s_[i], 0.0) : 0.0;
                out.loss[i - begin] = w_[i] * (out.loss[i - begin] + over + under);
            }
            return;
        }
        for (int64_t i = begin; i < end; ++i) {
            SideTerms low = {0, 0, 0}, high = {0, 0, 0};
            if (level < k_) low = side(s_[i] - upper);
            if (level > 0) high = side(lower - s_[i]);
            out.slope[i - begin] = w_[i] * (low.slope - high.slope);
            out.low[i - begin] = w_[i] * low.bend;
            out.high[i - begin] = w_[i] * high.bend;
            if (losses) out.loss[i - begin] = w_[i] * (low.loss + high.loss);
        }
    }
    SideTerms side(double x) const { return margin_ ? squared_margin(x) : softplus(x); }
    template <class Body>
    void over_blocks(int n_threads, Body&& body) const {
        parallel_for(static_cast<int64_t>(blocks_.size()), static_cast<int64_t>(doc_.size()) * 8,
                     n_threads, [&](int64_t b) { body(static_cast<size_t>(b)); });
    }

    bool margin_, near_ = true;
    int64_t n_docs_, k_;
    double top_ = 0;                    // the highest score
    std::vector<int64_t> first_, doc_;  // documents by level, levels ascending
    std::vector<double> w_, s_, e_, low_, high_;
    std::vector<Block> blocks_;
};

}  // namespace rankwise
