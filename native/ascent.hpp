// A metric along one line: the scores s + t x as t moves, for given t or for all of them.
//
// A metric depends on the order of the documents alone, so along the line it is constant between
// the points where two documents change places. Each document that matters to the metric (those
// with a label above 0) meets every other one at most once; sorted by t, these meetings move it up
// or down one rank at a time, and the metric is asked again after each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "metrics_ranking.hpp"
#include "metrics_values.hpp"
#include "parallel.hpp"

namespace rankwise {

struct Line {
    const Request* metric;
    Ties ties;
    bool full;  // every document matters, not only those with a label above 0
    bool pooled;
    const double* label;
    const double* score;   // s
    const double* column;  // x
    const int64_t* offsets;
    int64_t n_queries;

    int64_t n_docs() const { return offsets[n_queries]; }
};

// values (n_steps, n_queries): the metric at s + t x for each step t.
inline void metric_at_steps(const Line& line, const double* steps, int64_t n_steps, double* values,
                            int n_threads) {
    parallel_for(line.n_queries, line.n_docs() * n_steps * 4, n_threads, [&](int64_t q) {
        thread_local Ranking ranking;
        thread_local std::vector<double> moved;
        Ranker ranker(line.ties, line.full, line.pooled);
        const int64_t start = line.offsets[q], n = line.offsets[q + 1] - start;
        const double *s = line.score + start, *x = line.column + start;
        moved.resize(static_cast<size_t>(n));
        bool constant = true;
        for (int64_t i = 1; i < n; ++i) constant &= x[i] == x[0];
        for (int64_t k = 0; k < n_steps; ++k) {
            double& value = values[k * line.n_queries + q];
            if (k > 0 && constant) {  // no order depends on t
                value = values[q];
                continue;
            }
            for (int64_t i = 0; i < n; ++i) moved[i] = s[i] + (constant ? 0.0 : steps[k]) * x[i];
            ranker.rank(line.label + start, moved.data(), n, ranking);
            value = line.metric->function(*line.metric, ranking);
        }
    });
}

struct Break {
    double at;      // t
    double change;  // of the metric, weighted
};

// The metric of one query for every t.
class Sweep {
  public:
    Sweep(const Line& line) : line_(line), ranker_(line.ties, line.full, line.pooled) {}

    // Appends the places where query q's value changes; returns its value before the first.
    double run(int64_t q, double weight, std::vector<Break>& breaks) {
        start_ = line_.offsets[q], n_ = line_.offsets[q + 1] - start_;
        place_at_minus_infinity();
        const double first = value();
        if (!(first == first) || weight == 0) return first;
        collect_meetings();
        double last = first;
        const int64_t k = line_.metric->k;
        // Since the metric was last asked: have labels moved, and has a document been above the
        // cutoff? Kept from one place to the next, for rounding may tell apart what is one place.
        bool moved = false, high = false;
        for (size_t a = 0, b; a < meetings_.size(); a = b) {
            for (b = a; b < meetings_.size() && meetings_[b].at == meetings_[a].at; ++b) {
                const Meeting& meeting = meetings_[b];
                Entry& e = entries_[place_[meeting.slot]];
                moved |= meeting.differ;
                high |= k < 0 || e.before + std::min(meeting.step, 0) < k;
                e.before += meeting.step;
            }
            if (!moved || !high || !settle()) continue;
            moved = high = false;
            const double now = value();
            if (now != last) breaks.push_back({meetings_[a].at, weight * (now - last)});
            last = now;
        }
        return first;
    }

  private:
    struct Meeting {
        double at;
        int32_t slot;
        int32_t step : 8;  // of the slot's rank
        bool differ;       // in label: otherwise nothing changes when the two change places
    };

    double x(int64_t i) const { return line_.column[start_ + i]; }
    double s(int64_t i) const { return line_.score[start_ + i]; }
    double y(int64_t i) const { return line_.label[start_ + i]; }
    bool alike(int64_t i, int64_t j) const { return x(i) == x(j) && s(i) == s(j); }
    bool counts(int64_t i) const { return line_.full || y(i) > 0.0; }

    double value() { return line_.metric->function(*line_.metric, ranking_); }

    // Far to the left the smallest x is first; documents equal in x and s are tied for ever.
    void place_at_minus_infinity() {
        // Fills what does not depend on the order.
        ranker_.rank(line_.label + start_, line_.score + start_, n_, ranking_);
        order_.resize(static_cast<size_t>(n_));
        for (int64_t i = 0; i < n_; ++i) order_[i] = i;
        std::sort(order_.begin(), order_.end(), [&](int64_t i, int64_t j) {
            if (x(i) != x(j)) return x(i) < x(j);
            if (s(i) != s(j)) return s(i) > s(j);
            return i < j;
        });
        entries_.clear(), slots_.clear();
        for (int64_t a = 0, b; a < n_; a = b) {
            for (b = a + 1; b < n_ && alike(order_[a], order_[b]);) ++b;
            add_block(a, b);
        }
        place_.resize(slots_.size());
        at_.resize(slots_.size());
        for (size_t c = 0; c < slots_.size(); ++c) place_[c] = at_[c] = static_cast<int32_t>(c);
    }

    void add_block(int64_t begin, int64_t end) {
        const bool cut = line_.ties == Ties::worst || line_.ties == Ties::best;
        const auto from = order_.begin() + begin, to = order_.begin() + end;
        // Larger labels first, as the metrics read a block; lower ones where the rule says so.
        if (line_.ties != Ties::stable)
            std::stable_sort(from, to, [&](int64_t i, int64_t j) {
                const double y_i = tie_key(y(i)), y_j = tie_key(y(j));
                return line_.ties == Ties::worst ? y_i < y_j : y_i > y_j;
            });
        for (int64_t a = begin, b; a < end; a = b) {
            b = line_.ties == Ties::stable ? a + 1 : end;
            if (cut)
                for (b = a + 1; b < end && tie_key(y(order_[b])) == tie_key(y(order_[a]));) ++b;
            for (int64_t p = a; p < b; ++p) {
                if (!counts(order_[p])) continue;
                entries_.push_back({a, b - a, y(order_[p])});
                slots_.push_back(order_[p]);
            }
        }
    }

    void collect_meetings() {
        constexpr double far = std::numeric_limits<double>::max();
        meetings_.clear();
        for (size_t c = 0; c < slots_.size(); ++c) {
            const int64_t i = slots_[c];
            for (int64_t k = 0; k < n_; ++k) {
                const double gap = x(i) - x(k);
                if (gap == 0) continue;
                const double at = std::min(std::max((s(k) - s(i)) / gap, -far), far);
                meetings_.push_back({at, static_cast<int32_t>(c), gap > 0 ? -1 : 1,
                                     !(tie_key(y(i)) == tie_key(y(k)))});
            }
        }
        std::sort(meetings_.begin(), meetings_.end(), [](const Meeting& a, const Meeting& b) {
            return a.at < b.at || (a.at == b.at && a.slot < b.slot);
        });
    }

    // Puts the entries in order again. False while meetings that belong to one point, but were
    // told apart by rounding, leave more documents on a rank than it holds.
    bool settle() {
        const auto m = static_cast<int64_t>(entries_.size());
        const auto after = [](const Entry& a, const Entry& b) {
            return a.before > b.before ||
                   (a.before == b.before && tie_key(a.label) < tie_key(b.label));
        };
        for (int64_t p = 1; p < m; ++p) {
            if (!after(entries_[p - 1], entries_[p])) continue;
            const Entry moved = entries_[p];
            const int32_t slot = at_[p];
            int64_t to = p;
            for (; to > 0 && after(entries_[to - 1], moved); --to) {
                entries_[to] = entries_[to - 1];
                at_[to] = at_[to - 1];
                place_[at_[to]] = static_cast<int32_t>(to);
            }
            entries_[to] = moved, at_[to] = slot, place_[slot] = static_cast<int32_t>(to);
        }
        for (int64_t a = 0, b; a < m; a = b) {
            for (b = a + 1; b < m && entries_[b].before == entries_[a].before;) ++b;
            if (b - a > entries_[a].tied) return false;
        }
        return true;
    }

    const Line& line_;
    Ranker ranker_;
    Ranking ranking_;
    int64_t start_ = 0, n_ = 0;
    std::vector<Entry>& entries_ = ranking_.entries;  // by rank
    std::vector<int64_t> slots_, order_;              // document of each slot
    std::vector<int32_t> place_, at_;  // place of each slot among the entries, and back
    std::vector<Meeting> meetings_;
};

// All places where the weighted sum over queries changes, in order. `first` (one value per query)
// holds the values to the left of all.
inline std::vector<Break> metric_breaks(const Line& line, const double* weight, double* first,
                                        int n_threads) {
    constexpr int64_t chunk = 8;
    const int64_t n_chunks = (line.n_queries + chunk - 1) / chunk;
    std::vector<std::vector<Break>> parts(static_cast<size_t>(n_chunks));
    parallel_for(n_chunks, line.n_docs() * 100, n_threads, [&](int64_t c) {
        Sweep sweep(line);
        for (int64_t q = c * chunk; q < std::min(line.n_queries, (c + 1) * chunk); ++q)
            first[q] = sweep.run(q, weight[q], parts[c]);
    });
    std::vector<Break> breaks;
    for (const auto& part : parts) breaks.insert(breaks.end(), part.begin(), part.end());
    std::stable_sort(breaks.begin(), breaks.end(),
                     [](const Break& a, const Break& b) { return a.at < b.at; });
    return breaks;
}

}  // namespace rankwise
