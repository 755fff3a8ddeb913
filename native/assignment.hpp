// The most violated ranking of a query, exactly: the linear assignment
//
//   minimise over rankings pi   sum_i a_i b_pi(i) - c_i f_pi(i)
//
// for places weighted by a and c, neither rising, gains b and scores f. Documents of one gain (a
// level) stand by falling score, so what is left is which places each level gets:
//
//   one level, or a = l c + m   a sort, by f or by f - l b
//   two levels                  the best merge in a band (staircase.hpp)
//   more                        a greedy merge, mended along negative cycles of the residual graph.
//                               Of its arcs only those from the nearest document of each level on
//                               either side of a place matter; prices on them that no sweep lowers
//                               prove the ranking best.
//
// Where a and c are both 0 from place k on, only the k best-scored documents of each level count.
#pragma once

#include <cmath>
#include <numeric>

#include "staircase.hpp"

namespace rankwise {

class Assignment {
  public:
    // ranking[i] is the document of place i; documents equal in gain and score stand in order.
    // Returns the cost. Scores and gains are finite.
    double solve(const double* f, const double* b, int64_t n, const double* a, const double* c,
                 int64_t* ranking) {
        if (n == 0) return 0;
        order_.resize(n);
        std::iota(order_.begin(), order_.end(), int64_t{0});
        std::sort(order_.begin(), order_.end(), [&](int64_t i, int64_t j) {
            return b[i] != b[j] ? b[i] < b[j] : f[i] != f[j] ? f[i] > f[j] : i < j;
        });
        a_ = a, c_ = c;
        gain_.clear(), begin_.clear(), end_.clear();
        for (int64_t i = 0; i < n; ++i) {
            if (i == 0 || b[order_[i]] != b[order_[i - 1]]) {
                gain_.push_back(b[order_[i]]), begin_.push_back(i), end_.push_back(i);
            }
            ++end_.back();
        }
        score_.resize(n);
        for (int64_t i = 0; i < n; ++i) score_[i] = f[order_[i]];
        double slope = 0;
        if (gain_.size() == 1 || proportional(n, slope)) {
            // Not by difference of scores and gains inside a level, where rounding could tie them.
            places_ = n;
            merge([&](int64_t, size_t l, double s) { return s - slope * gain_[l]; });
        } else {
            shorten(n);
            if (gain_.size() == 2)
                merge_best(0, 1);
            else
                mend();
        }
        std::vector<int64_t>& head = head_;
        head.assign(begin_.begin(), begin_.end());
        taken_.assign(n, 0);
        for (int64_t i = 0; i < places_; ++i) {
            const int64_t at = head[level_[i]]++;
            ranking[i] = order_[at], taken_[at] = 1;
        }
        // What is left stands where neither weight counts.
        int64_t i = places_;
        for (int64_t at = 0; at < n; ++at)
            if (!taken_[at]) ranking[i++] = order_[at];
        double cost = 0;
        for (i = 0; i < n; ++i) cost += a[i] * b[ranking[i]] - c[i] * f[ranking[i]];
        return cost;
    }

  private:
    // Whether a = slope c + constant over all places.
    bool proportional(int64_t n, double& slope) const {
        const double fall = c_[0] - c_[n - 1], drop = a_[0] - a_[n - 1];
        if (!(fall > 0)) return false;
        slope = drop / fall;
        const double least = 1e-14 * (std::abs(a_[0]) + std::abs(slope * c_[0]));
        for (int64_t i = 1; i < n; ++i)
            if (std::abs(a_[0] - a_[i] - slope * (c_[0] - c_[i])) > least) return false;
        return true;
    }

    // Leaves out the documents that can only stand where both weights are 0.
    void shorten(int64_t n) {
        int64_t k = n;
        while (k > 0 && a_[k - 1] == 0 && c_[k - 1] == 0) --k;
        places_ = 0;
        for (size_t l = 0; l < gain_.size(); ++l) {
            end_[l] = std::min(end_[l], begin_[l] + std::max<int64_t>(k, 1));
            places_ += end_[l] - begin_[l];
        }
    }

    // Takes, place by place, the head of the level whose value is largest; of equals the lowest.
    template <class Value>
    void merge(Value&& value) {
        head_.assign(begin_.begin(), begin_.end());
        level_.resize(places_);
        for (int64_t i = 0; i < places_; ++i) {
            size_t best = gain_.size();
            double most = 0;
            for (size_t l = 0; l < gain_.size(); ++l) {
                if (head_[l] == end_[l]) continue;
                const double v = value(i, l, score_[head_[l]]);
                if (best == gain_.size() || v > most) best = l, most = v;
            }
            level_[i] = static_cast<int32_t>(best);
            ++head_[best];
        }
    }

    // The best merge of two levels on the places that they hold (of all places, if none yet).
    void merge_best(int32_t low, int32_t high) {
        const int64_t nx = end_[high] - begin_[high], ny = end_[low] - begin_[low];
        const bool whole = gain_.size() == 2;
        held_.clear();
        if (whole) {
            level_.resize(places_);
            held_.resize(places_);
            std::iota(held_.begin(), held_.end(), int64_t{0});
        } else {
            for (int64_t i = 0; i < places_; ++i)
                if (level_[i] == low || level_[i] == high) held_.push_back(i);
        }
        measure_.resize(held_.size()), place_.resize(held_.size()), chosen_.resize(held_.size());
        for (size_t i = 0; i < held_.size(); ++i)
            measure_[i] = a_[held_[i]], place_[i] = c_[held_[i]];
        staircase_.solve(measure_.data(), place_.data(), gain_[high] - gain_[low], gain_[high],
                         gain_[low], score_.data() + begin_[high], nx, score_.data() + begin_[low],
                         ny, chosen_.data());
        for (size_t i = 0; i < held_.size(); ++i) level_[held_[i]] = chosen_[i] ? high : low;
    }

    void mend() {
        const double steep =
            c_[0] > c_[places_ - 1] ? (a_[0] - a_[places_ - 1]) / (c_[0] - c_[places_ - 1]) : 0.0;
        const auto greedy = [&](int64_t i, size_t l, double s) {
            if (i + 1 == places_) return 0.0;
            return (c_[i] - c_[i + 1]) * s - (a_[i] - a_[i + 1]) * gain_[l];
        };
        merge(greedy);
        double best = spread();
        kept_ = level_;
        merge([&](int64_t, size_t, double s) { return s; });
        if (const double cost = spread(); cost < best) best = cost, kept_ = level_;
        merge([&](int64_t, size_t l, double s) { return s - steep * gain_[l]; });
        if (spread() >= best) level_ = kept_;
        price_.assign(places_, 0.0);
        int64_t cap = 20;
        if (repair(cap)) return;
        for (int round = 0; round < 4 && gain_.size() <= kFewLevelsToMerge; ++round) {
            for (size_t low = 0; low + 1 < gain_.size(); ++low)
                for (size_t high = low + 1; high < gain_.size(); ++high)
                    merge_best(static_cast<int32_t>(low), static_cast<int32_t>(high));
            if (repair(cap *= 2)) return;
        }
        repair(std::numeric_limits<int64_t>::max());
    }

    // Gives every place its document; the cost.
    double spread() {
        head_.assign(begin_.begin(), begin_.end());
        at_score_.resize(places_);
        double cost = 0;
        for (int64_t i = 0; i < places_; ++i) {
            at_score_[i] = score_[head_[level_[i]]++];
            cost += a_[i] * gain_[level_[i]] - c_[i] * at_score_[i];
        }
        return cost;
    }

    // Moves documents along negative cycles until prices prove that there is none: true, or false
    // after `cap` double sweeps.
    bool repair(int64_t cap) {
        const double most = *std::max_element(gain_.begin(), gain_.end());
        double largest = 0;
        for (size_t l = 0; l < gain_.size(); ++l) {
            if (begin_[l] == end_[l]) continue;
            largest = std::max(largest, std::abs(score_[begin_[l]]));
            largest = std::max(largest, std::abs(score_[end_[l] - 1]));
        }
        const double eps = std::max(1e-13, 4 * static_cast<double>(places_) * 0x1p-53) *
                           (std::abs(c_[0]) * largest + std::abs(a_[0]) * std::abs(most));
        double cost = spread();
        while (true) {
            parent_.assign(places_, -1);
            bool cycled = false;
            while (!cycled) {
                if (cap-- <= 0) return false;
                bool changed = sweep(0, places_, 1, eps);
                changed |= sweep(places_ - 1, -1, -1, eps);
                if (!changed) return true;
                cycled = rotate();
            }
            const double now = spread();
            // Where rounding is all that is left to gain.
            if (!(now < cost)) return true;
            cost = now;
        }
    }

    bool sweep(int64_t first, int64_t last, int64_t step, double eps) {
        const size_t levels = gain_.size();
        known_.clear();
        from_.assign(levels, -1), reach_.resize(levels), reach_score_.resize(levels);
        bool changed = false;
        for (int64_t j = first; j != last; j += step) {
            double best = price_[j] - eps;
            int64_t parent = -1;
            for (const int32_t m : known_) {
                const double u = reach_[m] + a_[j] * gain_[m] - c_[j] * reach_score_[m];
                if (u < best) best = u, parent = from_[m];
            }
            if (parent >= 0) price_[j] = best, parent_[j] = parent, changed = true;
            const int32_t l = level_[j];
            if (from_[l] < 0) known_.push_back(l);
            reach_[l] = price_[j] - (a_[j] * gain_[l] - c_[j] * at_score_[j]);
            reach_score_[l] = at_score_[j], from_[l] = j;
        }
        return changed;
    }

    // Turns every cycle of parents; whether there was one.
    bool rotate() {
        colour_.assign(places_, 0);
        bool any = false;
        for (int64_t i = 0; i < places_; ++i) {
            int64_t j = i;
            const int64_t mine = i + 1;
            while (j >= 0 && colour_[j] == 0) colour_[j] = mine, j = parent_[j];
            if (j < 0 || colour_[j] != mine) continue;
            any = true;
            const int32_t first = level_[j];
            int64_t at = j;
            for (; parent_[at] != j; at = parent_[at]) level_[at] = level_[parent_[at]];
            level_[at] = first;
        }
        return any;
    }

    static constexpr size_t kFewLevelsToMerge = 8;

    const double *a_ = nullptr, *c_ = nullptr;
    int64_t places_ = 0;
    std::vector<int64_t> order_, begin_, end_, head_, held_, parent_, colour_, from_;
    std::vector<int32_t> level_, kept_, known_;
    std::vector<double> gain_, score_, at_score_, price_, reach_, reach_score_, measure_, place_;
    std::vector<uint8_t> taken_, chosen_;
    Staircase staircase_;
};

}  // namespace rankwise
