// Kendall's tau and its weighted form in O(n log n), query by query: sort by x, then count (or
// weigh) the exchanges that a merge sort by y makes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lists.hpp"
#include "parallel.hpp"

namespace rankwise::lists {

struct PairCounts {
    int64_t discordant = 0, tied_x = 0, tied_y = 0, tied_both = 0;
};

inline int64_t pairs_of(int64_t n) { return n * (n - 1) / 2; }

// Pairs i < j with y[i] > y[j]; sorts y. `spare` has room for as many.
inline int64_t exchanges(double* y, double* spare, int64_t n) {
    constexpr int64_t kBlock = 16;
    int64_t count = 0;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
        const int64_t end = std::min(begin + kBlock, n);
        for (int64_t i = begin + 1; i < end; ++i) {
            const double value = y[i];
            int64_t j = i;
            for (; j > begin && y[j - 1] > value; --j) y[j] = y[j - 1];
            y[j] = value;
            count += i - j;
        }
    }
    double *from = y, *to = spare;
    for (int64_t width = kBlock; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            const int64_t middle = std::min(begin + width, n), end = std::min(middle + width, n);
            int64_t a = begin, b = middle, out = begin;
            while (a < middle && b < end) {  // no branch depends on the comparison
                const double left = from[a], right = from[b];
                const bool take = right < left;
                to[out++] = take ? right : left;
                count += take ? middle - a : 0;
                a += !take;
                b += take;
            }
            std::copy(from + a, from + middle, to + out);
            std::copy(from + b, from + end, to + out + (middle - a));
        }
        std::swap(from, to);
    }
    if (from != y) std::copy(from, from + n, y);
    return count;
}

struct TauScratch {
    std::vector<Keyed> entries, spare;
    std::vector<double> y, room, weight, weight_room;
};

// Entries by ascending x, equal x by ascending y.
inline void sort_pairs(const double* x, const double* y, int64_t n, TauScratch& s) {
    s.entries.resize(n);
    for (int64_t i = 0; i < n; ++i) s.entries[i] = {~descending_key(x[i]), i};
    sort_keyed(s.entries, s.spare);
    for (int64_t first = 0; first < n;) {
        int64_t last = first + 1;
        while (last < n && s.entries[last].key == s.entries[first].key) ++last;
        if (last - first > 1)
            std::sort(s.entries.begin() + first, s.entries.begin() + last,
                      [&](const Keyed& a, const Keyed& b) {
                          return y[a.index] != y[b.index] ? y[a.index] < y[b.index]
                                                          : a.index < b.index;
                      });
        first = last;
    }
}

// Calls run(first, last) for runs of positions that `same(p)` joins to their predecessor.
template <class Same, class Run>
void tied_runs(int64_t n, Same&& same, Run&& run) {
    for (int64_t first = 0; first < n;) {
        int64_t last = first + 1;
        while (last < n && same(last)) ++last;
        if (last - first > 1) run(first, last);
        first = last;
    }
}

inline PairCounts count_pairs(const double* x, const double* y, int64_t n, TauScratch& s) {
    PairCounts c;
    sort_pairs(x, y, n, s);
    s.y.resize(n);
    s.room.resize(n);
    for (int64_t p = 0; p < n; ++p) s.y[p] = y[s.entries[p].index];
    const auto same_x = [&](int64_t p) { return s.entries[p].key == s.entries[p - 1].key; };
    tied_runs(n, same_x, [&](int64_t a, int64_t b) { c.tied_x += pairs_of(b - a); });
    tied_runs(
        n, [&](int64_t p) { return same_x(p) && s.y[p] == s.y[p - 1]; },
        [&](int64_t a, int64_t b) { c.tied_both += pairs_of(b - a); });
    c.discordant = exchanges(s.y.data(), s.room.data(), n);
    tied_runs(
        n, [&](int64_t p) { return s.y[p] == s.y[p - 1]; },
        [&](int64_t a, int64_t b) { c.tied_y += pairs_of(b - a); });
    return c;
}

inline void kendall_counts(const double* x, const double* y, const int64_t* offsets,
                           int64_t n_queries, int64_t* out, int n_threads) {
    parallel_for(n_queries, 20 * offsets[n_queries], n_threads, [&](int64_t q) {
        static thread_local TauScratch s;
        const int64_t begin = offsets[q];
        const PairCounts c = count_pairs(x + begin, y + begin, offsets[q + 1] - begin, s);
        int64_t* row = out + 4 * q;
        row[0] = c.discordant, row[1] = c.tied_x, row[2] = c.tied_y, row[3] = c.tied_both;
    });
}

// --- Weighted -----------------------------------------------------------------------------------

// The weight of all pairs i < j with y[i] > y[j], where a pair weighs w[i] + w[j]; sorts both.
inline double weigh_exchanges(double* y, double* w, double* y_room, double* w_room, int64_t n) {
    double total = 0.0;
    double *from = y, *to = y_room, *wf = w, *wt = w_room;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            const int64_t middle = std::min(begin + width, n), end = std::min(middle + width, n);
            double left_weight = 0.0;  // of what is left of the first run
            for (int64_t i = begin; i < middle; ++i) left_weight += wf[i];
            int64_t a = begin, b = middle, out = begin;
            while (a < middle && b < end) {
                const bool take = from[b] < from[a];
                const double weight = take ? wf[b] : wf[a];
                to[out] = take ? from[b] : from[a];
                wt[out++] = weight;
                total += take ? weight * static_cast<double>(middle - a) + left_weight : 0.0;
                left_weight -= take ? 0.0 : weight;
                a += !take;
                b += take;
            }
            std::copy(from + a, from + middle, to + out);
            std::copy(wf + a, wf + middle, wt + out);
            out += middle - a;
            std::copy(from + b, from + end, to + out);
            std::copy(wf + b, wf + end, wt + out);
        }
        std::swap(from, to);
        std::swap(wf, wt);
    }
    if (from != y) {
        std::copy(from, from + n, y);
        std::copy(wf, wf + n, w);
    }
    return total;
}

// Vigna's tau of one list: a pair weighs the sum of the weights of its two ranks, which are those
// by descending x (equal x by descending y), or of `element` where it is given.
inline double weighted_tau(const double* x, const double* y, int64_t n, const double* by_rank,
                           const double* element, TauScratch& s) {
    sort_pairs(x, y, n, s);
    s.y.resize(n), s.room.resize(n), s.weight.resize(n), s.weight_room.resize(n);
    double all = 0.0;
    for (int64_t p = 0; p < n; ++p) {
        const int64_t i = s.entries[p].index;
        s.y[p] = y[i];
        s.weight[p] = element != nullptr ? element[i] : by_rank[n - 1 - p];
        all += s.weight[p];
    }
    const auto tied = [&](auto&& same) {
        double total = 0.0;
        tied_runs(n, same, [&](int64_t a, int64_t b) {
            double sum = 0.0;
            for (int64_t p = a; p < b; ++p) sum += s.weight[p];
            total += sum * static_cast<double>(b - a - 1);
        });
        return total;
    };
    const auto same_x = [&](int64_t p) { return s.entries[p].key == s.entries[p - 1].key; };
    const double tied_x = tied(same_x);
    const double both = tied([&](int64_t p) { return same_x(p) && s.y[p] == s.y[p - 1]; });
    const double swapped =
        weigh_exchanges(s.y.data(), s.weight.data(), s.room.data(), s.weight_room.data(), n);
    const double tied_y = tied([&](int64_t p) { return s.y[p] == s.y[p - 1]; });
    const double pairs = all * static_cast<double>(n - 1);
    if (n < 2 || tied_x >= pairs || tied_y >= pairs)
        return std::numeric_limits<double>::quiet_NaN();
    const double tau = (pairs - (tied_x + tied_y - both) - 2.0 * swapped) /
                       std::sqrt(pairs - tied_x) / std::sqrt(pairs - tied_y);
    return std::min(1.0, std::max(-1.0, tau));
}

inline void weighted_taus(const double* x, const double* y, const int64_t* offsets,
                          int64_t n_queries, const double* by_rank, const double* element,
                          double* out, int n_threads) {
    parallel_for(n_queries, 40 * offsets[n_queries], n_threads, [&](int64_t q) {
        static thread_local TauScratch s;
        const int64_t begin = offsets[q];
        out[q] = weighted_tau(x + begin, y + begin, offsets[q + 1] - begin, by_rank,
                              element != nullptr ? element + begin : nullptr, s);
    });
}

}  // namespace rankwise::lists
