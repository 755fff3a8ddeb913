// Monotone retargeting: the vector of a list's own order that a generalised linear model fits best.
//
// For labels y and scores s of a query, with mean map g of the divergence D,
//
//     value = (1/n) min over z, b of  sum_i w_i D(z_i || g(s_i + b)),
//
// z in the order of the labels and restricted in scale, w of mean 1 times the query's mean weight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "isotonic.hpp"
#include "parallel.hpp"

namespace rankwise {

enum class Divergence { squared, kl, generalized, logistic };
enum class Restriction { simplex, margin };

struct Retargeting {
    Divergence divergence;
    Restriction restriction;
    double margin;  // between levels; NaN: chosen per query
    bool offset;    // a constant per query is free
};

struct RetargetLists {
    const double *label, *score, *weight;  // weight may be null
    const int64_t* offsets;
    int64_t n_queries;
};

struct RetargetOut {
    double *value, *gradient, *curvature, *target;  // target: z, NaN where there is none
};

// One query while it is solved: documents by ascending (label, score).
struct RetargetQuery {
    std::vector<int64_t> row;
    std::vector<double> s, w, c, t, z, mass, pull;
    std::vector<int64_t> level, first;  // level of a document; first document of a level
    Blocks blocks;
    int64_t n = 0, n_levels = 0;
    double mean_weight = 1.0;
};

inline double softplus(double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline double sigmoid(double x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

// A zero of a rising function between lo and hi, where it has different signs: secants, with
// bisection where they do not halve the bracket in three steps.
template <class F>
double rising_zero(F&& f, double lo, double hi, double at_lo, double at_hi) {
    int side = 0;
    double width = hi - lo;
    for (int step = 1; step < 200; ++step) {
        double x = lo - at_lo * (hi - lo) / (at_hi - at_lo);
        if (step % 3 == 0) {
            if (hi - lo > width / 2) x = lo + (hi - lo) / 2;
            width = hi - lo;
        }
        if (!(x > lo && x < hi)) x = lo + (hi - lo) / 2;
        if (!(x > lo && x < hi)) break;
        const double y = f(x);
        if (std::abs(y) <= 1e-15) return x;
        if (y < 0) {
            lo = x, at_lo = y;
            if (side < 0) at_hi /= 2;
            side = -1;
        } else {
            hi = x, at_hi = y;
            if (side > 0) at_lo /= 2;
            side = 1;
        }
        if (hi - lo <= 1e-15 * (1 + std::abs(lo) + std::abs(hi))) break;
    }
    return lo + (hi - lo) / 2;
}

// The same on the whole line, for a function whose slope is not far from 1.
template <class F>
double rising_zero(F&& f, double start) {
    const double y = f(start);
    if (std::abs(y) <= 1e-15) return start;
    double near = start, at_near = y, reach = std::min(1.02 * std::abs(y) + 1e-12, 1e6);
    for (int step = 0; step < 60; ++step) {
        const double far = y < 0 ? start + reach : start - reach;
        const double at_far = f(far);
        if ((at_far < 0) != (y < 0)) {
            if (y < 0) return rising_zero(f, near, far, at_near, at_far);
            return rising_zero(f, far, near, at_far, at_near);
        }
        near = far, at_near = at_far;
        reach *= 2;
    }
    return near;
}

// --- margins in the mean: z = u + c with u in order -------------------------------------------

// A block of documents a..b-1 with common u solves sum w (g^-1(u + c_i) - theta_i) = 0; x is the
// value z of its lowest level, so that values next to 0 keep their digits.
class MarginFit {
  public:
    MarginFit(RetargetQuery& q, bool logistic) : q_(q), logistic_(logistic) {
        q.mass.assign(q.n + 1, 0.0);
        q.pull.assign(q.n + 1, 0.0);
        for (int64_t i = 0; i < q.n; ++i) {
            q.mass[i + 1] = q.mass[i] + q.w[i];
            q.pull[i + 1] = q.pull[i] + q.w[i] * q.s[i];
        }
    }

    // z for the natural parameters s + shift; returns the weighted sum of z.
    double solve(double shift) {
        begin_.clear();
        low_.clear();
        for (int64_t i = 0; i < q_.n; ++i) {
            int64_t a = i;
            double x = block(a, i + 1, shift);
            while (!begin_.empty() && low_.back() - q_.c[begin_.back()] > x - q_.c[a]) {
                a = begin_.back();
                begin_.pop_back();
                low_.pop_back();
                x = block(a, i + 1, shift);
            }
            begin_.push_back(a);
            low_.push_back(x);
        }
        double total = 0;
        for (size_t k = 0; k < begin_.size(); ++k) {
            const int64_t a = begin_[k], b = k + 1 < begin_.size() ? begin_[k + 1] : q_.n;
            for (int64_t i = a; i < b; ++i) {
                q_.z[i] = low_[k] + (q_.c[i] - q_.c[a]);
                if (logistic_) q_.z[i] = std::min(q_.z[i], 1 - 1e-16);
                total += q_.w[i] * q_.z[i];
            }
        }
        return total;
    }

  private:
    double block(int64_t a, int64_t b, double shift) const {
        const double mass = q_.mass[b] - q_.mass[a];
        const double pull = q_.pull[b] - q_.pull[a] + shift * mass;
        const double level = mean_of(pull / mass), spread = q_.c[b - 1] - q_.c[a];
        if (spread == 0) return level;
        double hi = level, lo = std::max(level - spread, 0.0);
        if (logistic_) hi = std::min(hi, 1 - spread);
        if (!(hi > lo)) return hi > 0 ? hi : 1e-300;
        double x = lo + (hi - lo) / 2;
        for (int step = 0; step < 200; ++step) {
            double f = -pull, slope = 0;
            for (int64_t l = q_.level[a]; l <= q_.level[b - 1]; ++l) {
                const double w =
                    q_.mass[std::min(b, q_.first[l + 1])] - q_.mass[std::max(a, q_.first[l])];
                const double z = x + (q_.c[q_.first[l]] - q_.c[a]);
                f += w * (logistic_ ? std::log(z) - std::log1p(-z) : std::log(z));
                slope += w / (logistic_ ? z * (1 - z) : z);
            }
            (f < 0 ? lo : hi) = x;
            double next = x - f / slope;
            if (!(next > lo && next < hi)) next = lo > 0 ? lo + (hi - lo) / 2 : hi / 16;
            const bool done = std::abs(next - x) <= 1e-15 * x || !(next > 0);
            if (next > 0) x = next;
            if (done) break;
        }
        return x;
    }

    double mean_of(double theta) const {
        const double x = logistic_ ? sigmoid(theta) : std::exp(std::min(theta, 700.0));
        return std::max(x, 1e-300);
    }

    RetargetQuery& q_;
    bool logistic_;
    std::vector<int64_t> begin_;
    std::vector<double> low_;
};

// --- one query ---------------------------------------------------------------------------------

inline bool load_query(const RetargetLists& in, int64_t number, RetargetQuery& q) {
    q.row.clear();
    double mass = 0;
    for (int64_t i = in.offsets[number]; i < in.offsets[number + 1]; ++i) {
        const double w = in.weight != nullptr ? in.weight[i] : 1.0;
        if (in.label[i] != in.label[i] || !(w > 0)) continue;
        q.row.push_back(i);
        mass += w;
    }
    q.n = static_cast<int64_t>(q.row.size());
    if (q.n < 2) return false;
    std::sort(q.row.begin(), q.row.end(), [&](int64_t i, int64_t j) {
        if (in.label[i] != in.label[j]) return in.label[i] < in.label[j];
        if (in.score[i] != in.score[j]) return in.score[i] < in.score[j];
        return i < j;
    });
    if (in.label[q.row.front()] == in.label[q.row.back()]) return false;
    for (auto* column : {&q.s, &q.w, &q.c, &q.t, &q.z}) column->resize(q.n);
    q.level.resize(q.n);
    q.first.clear();
    q.mean_weight = mass / static_cast<double>(q.n);
    for (int64_t k = 0; k < q.n; ++k) {
        const int64_t i = q.row[k];
        if (k == 0 || in.label[i] != in.label[q.row[k - 1]]) q.first.push_back(k);
        q.s[k] = in.score[i];
        q.w[k] = in.weight != nullptr ? in.weight[i] / q.mean_weight : 1.0;
        q.level[k] = static_cast<int64_t>(q.first.size()) - 1;
    }
    q.n_levels = static_cast<int64_t>(q.first.size());
    q.first.push_back(q.n);
    return true;
}

inline void set_margins(const Retargeting& how, RetargetQuery& q) {
    double most = HUGE_VAL;
    if (how.restriction == Restriction::simplex) {
        double total = 0;
        for (int64_t k = 0; k < q.n; ++k) total += q.w[k] * static_cast<double>(q.level[k]);
        most = 1 / total;
    } else if (how.divergence == Divergence::logistic) {
        most = 1 / static_cast<double>(q.n_levels - 1);
    }
    double margin = how.margin;
    if (margin != margin) margin = most < HUGE_VAL ? most / 2 : 1.0;
    if (!(margin < most))
        throw std::invalid_argument(
            "Retargeted: margin must leave room for the levels of every query, got " +
            std::to_string(margin) + " where it must be below " + std::to_string(most) +
            "; leave it None to have it chosen");
    for (int64_t k = 0; k < q.n; ++k) q.c[k] = margin * static_cast<double>(q.level[k]);
}

// log of the weighted sum of exponentials
inline double log_sum_exp(const std::vector<double>& x, const std::vector<double>& w, int64_t n) {
    const double top = *std::max_element(x.begin(), x.begin() + n);
    double total = 0;
    for (int64_t k = 0; k < n; ++k) total += w[k] * std::exp(x[k] - top);
    return top + std::log(total);
}

inline double sigmoid_shift(const std::vector<double>& x, const std::vector<double>& w, int64_t n) {
    return rising_zero(
        [&](double b) {
            double total = 0;
            for (int64_t k = 0; k < n; ++k) total += w[k] * sigmoid(x[k] + b);
            return std::log(total);
        },
        -std::log(static_cast<double>(n) - 0.999) - x[n / 2]);
}

// The nearest point of the simplex w z = size to rising values t; z may be t.
inline void onto_simplex(const std::vector<double>& t, const std::vector<double>& w, int64_t n,
                         double size, std::vector<double>& z) {
    double total = -size, mass = 0, cut = 0;
    for (int64_t k = n - 1; k >= 0; --k) {
        if (mass > 0 && t[k] <= total / mass) break;
        total += w[k] * t[k];
        mass += w[k];
        cut = total / mass;
    }
    for (int64_t k = 0; k < n; ++k) z[k] = std::max(t[k] - cut, 0.0);
}

// Finds the target z; returns the constant that makes natural parameters of s.
inline double solve_query(const Retargeting& how, RetargetQuery& q) {
    const int64_t n = q.n;
    const bool simplex = how.restriction == Restriction::simplex;
    const bool logistic = how.divergence == Divergence::logistic;
    if (how.divergence == Divergence::squared) {
        double total = simplex ? 1.0 : 0.0, free = 1.0;
        for (int64_t k = 0; k < n; ++k) {
            total += q.w[k] * (simplex ? -q.s[k] : q.c[k] - q.s[k]);
            free -= q.w[k] * q.c[k];
        }
        const double shift = how.offset ? total / static_cast<double>(n) : 0.0;
        for (int64_t k = 0; k < n; ++k) q.t[k] = q.s[k] + shift - q.c[k];
        fit_in_order(q.t.data(), q.w.data(), n, q.z.data(), q.blocks);
        if (simplex) onto_simplex(q.z, q.w, n, free, q.z);
        for (int64_t k = 0; k < n; ++k) q.z[k] += q.c[k];
        return shift;
    }
    // The constant that gives the means of s the sum 1, where targets have it.
    const bool softmax = how.divergence == Divergence::kl ||
                         (how.divergence == Divergence::generalized && simplex && how.offset);
    double shift = 0;
    if (softmax) shift = -log_sum_exp(q.s, q.w, n);
    if (logistic && simplex && how.offset) shift = sigmoid_shift(q.s, q.w, n);
    if (q.c[n - 1] > 0) {  // margins; off the simplex only with the logistic divergence
        MarginFit fit(q, logistic);
        if (simplex) {
            fit.solve(rising_zero([&](double b) { return std::log(fit.solve(b)); }, shift));
            return shift;
        }
        if (how.offset)
            shift = rising_zero(
                [&](double b) {
                    double total = 0;
                    for (int64_t k = 0; k < n; ++k) total += q.w[k] * sigmoid(q.s[k] + b);
                    return std::log(total / fit.solve(b));
                },
                -q.s[n / 2]);
        fit.solve(shift);
        return shift;
    }
    fit_in_order(q.s.data(), q.w.data(), n, q.t.data(), q.blocks);
    const double lift = logistic ? sigmoid_shift(q.t, q.w, n) : -log_sum_exp(q.t, q.w, n);
    for (int64_t k = 0; k < n; ++k)
        q.z[k] = logistic ? sigmoid(q.t[k] + lift) : std::exp(q.t[k] + lift);
    return shift;
}

// x log(x / exp(l)), 0 at 0
inline double x_log(double x, double l) { return x > 0 ? x * (std::log(x) - l) : 0.0; }

inline double solve_and_store(const Retargeting& how, RetargetQuery& q, const RetargetOut& out) {
    set_margins(how, q);
    const double shift = solve_query(how, q), share = q.mean_weight / static_cast<double>(q.n);
    double total = 0;
    for (int64_t k = 0; k < q.n; ++k) {
        const double theta = q.s[k] + shift, z = q.z[k];
        double mean = theta, bend = 1, d = 0;
        if (how.divergence == Divergence::squared) {
            d = (z - theta) * (z - theta) / 2;
        } else if (how.divergence == Divergence::logistic) {
            mean = sigmoid(theta);
            bend = mean * (1 - mean);
            d = x_log(z, 0) + x_log(1 - z, 0) - z * theta + softplus(theta);
        } else {
            mean = bend = std::exp(theta);
            d = x_log(z, theta) - z + mean;
        }
        total += q.w[k] * d;
        out.gradient[q.row[k]] = share * q.w[k] * (mean - z);
        out.curvature[q.row[k]] = share * q.w[k] * bend;
        out.target[q.row[k]] = z;
    }
    return std::max(share * total, 0.0);
}

inline void retarget(const Retargeting& how, const RetargetLists& in, const RetargetOut& out,
                     int n_threads) {
    const int64_t n = in.offsets[in.n_queries];
    for (int64_t i = 0; i < n; ++i) {
        out.gradient[i] = out.curvature[i] = 0;
        out.target[i] = std::nan("");
    }
    parallel_for(in.n_queries, n * 60, n_threads, [&](int64_t number) {
        static thread_local RetargetQuery q;
        out.value[number] = load_query(in, number, q) ? solve_and_store(how, q, out) : 0.0;
    });
}

}  // namespace rankwise
