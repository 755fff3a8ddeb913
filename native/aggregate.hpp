// Aggregation by positions and by scores: every list gives points to its items, points are joined.
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

enum class Points { borda, reciprocal, inverse_square };
// What the sum is multiplied by: nothing, the number of lists that hold the item, its logarithm.
enum class Hits { none, count, logarithm };
enum class Missing { skip, last, mean, zero, min };

// Sums of points over the first positions: the mean over a block of positions is a difference.
inline void accumulate_points(Points kind, double k, int64_t n, std::vector<double>& sums) {
    const auto have = static_cast<int64_t>(sums.size());
    if (have > n) return;
    sums.resize(n + 1);
    if (have == 0) sums[0] = 0.0;
    for (int64_t p = std::max<int64_t>(have, 1); p <= n; ++p) {
        const auto rank = static_cast<double>(p);
        sums[p] =
            sums[p - 1] + (kind == Points::reciprocal ? 1.0 / (k + rank) : 1.0 / (rank * rank));
    }
}

// Points of one position among n; a block of tied positions gets the mean.
struct Table {
    Points kind;
    double k;
    std::vector<double> sums;

    void reserve(int64_t n) {
        if (kind != Points::borda) accumulate_points(kind, k, n, sums);
    }
    double mean(int64_t first, int64_t last, int64_t n) const {
        if (kind == Points::borda)  // items below, a tied one counts half
            return static_cast<double>(n - 1) - 0.5 * static_cast<double>(first + last - 1);
        if (last == first + 1) {
            const auto rank = static_cast<double>(last);
            return kind == Points::reciprocal ? 1.0 / (k + rank) : 1.0 / (rank * rank);
        }
        return (sums[last] - sums[first]) / static_cast<double>(last - first);
    }
};

struct PositionalScratch {
    Order order;
    Table table;
    std::vector<double> points, held;
    std::vector<int64_t> hits;
};

// Sum over the lists of weight times points. Items that a list does not hold share its last places
// (`last`), get nothing (`skip`), or are judged by the mean over the lists that hold them (`mean`,
// for Borda: the share of the list's other items below).
inline void positional_query(const Lists& v, int64_t q, const double* weight, Ties ties,
                             Missing missing, Hits hits, double sigma, PositionalScratch& s,
                             double* out) {
    const int64_t n = v.n_items(q);
    std::fill(out, out + n, 0.0);
    s.held.assign(missing == Missing::mean ? n : 0, 0.0);
    s.hits.assign(hits == Hits::none ? 0 : n, 0);
    s.table.reserve(n);
    double shared = 0.0;  // what an item in no list gets
    for (int64_t l = 0; l < v.n_lists; ++l) {
        const int64_t size = v.size(q, l), begin = v.begin(q, l);
        if (size == 0) continue;
        const double w = weight[l];
        const int64_t places = missing == Missing::last ? n : size;
        // Missing items are given their share at the end; those present get the difference to it.
        const double share =
            missing == Missing::last && size < n ? w * s.table.mean(size, n, n) : 0.0;
        shared += share;
        s.order.sort(v.score + begin, size);
        const double scale =
            missing == Missing::mean ? (size > 1 ? w / static_cast<double>(size - 1) : 0.0) : w;
        each_place(s.order, size, ties, [&](int64_t e, int64_t first, int64_t last) {
            const int32_t i = v.item[begin + e];
            double points = scale * s.table.mean(first, last, places);
            if (missing == Missing::mean) {
                if (size == 1) points = 0.5 * w;
                s.held[i] += w;
            }
            out[i] += points - share;
            if (hits != Hits::none) ++s.hits[i];
        });
    }
    if (shared != 0.0)
        for (int64_t i = 0; i < n; ++i) out[i] += shared;
    if (missing == Missing::mean)
        for (int64_t i = 0; i < n; ++i) out[i] = s.held[i] > 0.0 ? out[i] / s.held[i] : 0.0;
    if (hits == Hits::none) return;
    for (int64_t i = 0; i < n; ++i) {
        const auto count = static_cast<double>(s.hits[i]);
        out[i] *= hits == Hits::count ? count : count > 0.0 ? std::log(count + sigma) : 0.0;
    }
}

inline void positional(const Lists& v, const double* weight, Points kind, double k, Ties ties,
                       Missing missing, Hits hits, double sigma, double* out, int n_threads) {
    parallel_for(v.n_queries, 4 * v.n_entries(), n_threads, [&](int64_t q) {
        static thread_local PositionalScratch s;
        if (s.table.kind != kind || s.table.k != k) s.table = Table{kind, k, {}};
        positional_query(v, q, weight, ties, missing, hits, sigma, s, out + v.offsets[q]);
    });
}

// --- Scores -------------------------------------------------------------------------------------

enum class Comb { sum, mnz, min, max, med, anz };

// One query by columns: values[i * n_lists + l], NaN where list l does not hold item i.
inline void comb_sums(const Lists& v, int64_t q, const double* weight, Comb kind, Missing missing,
                      std::vector<double>& held, double* out) {
    const int64_t n = v.n_items(q);
    std::fill(out, out + n, 0.0);
    held.assign(n, 0.0);
    double floors = 0.0, weights = 0.0;
    for (int64_t l = 0; l < v.n_lists; ++l) {
        const int64_t size = v.size(q, l), begin = v.begin(q, l);
        if (size == 0) continue;
        const double w = weight[l];
        const double* score = v.score + begin;
        const double floor = missing == Missing::min ? *std::min_element(score, score + size) : 0.0;
        floors += w * floor;
        weights += w;
        const double step = kind == Comb::mnz ? 1.0 : w;
        for (int64_t e = 0; e < size; ++e) {
            const int32_t i = v.item[begin + e];
            out[i] += w * (score[e] - floor);
            held[i] += step;
        }
    }
    if (missing == Missing::min)
        for (int64_t i = 0; i < n; ++i) out[i] += floors;
    if (kind == Comb::mnz)
        for (int64_t i = 0; i < n; ++i) out[i] *= held[i];
    if (kind == Comb::anz)
        for (int64_t i = 0; i < n; ++i) {
            const double by = missing == Missing::skip ? held[i] : weights;
            out[i] = by > 0.0 ? out[i] / by : -std::numeric_limits<double>::infinity();
        }
}

struct Weighed {
    double value, weight;
};

// The lower and upper weighted medians' mean: where half of the weight is reached.
inline double weighted_median(std::vector<Weighed>& values) {
    std::sort(values.begin(), values.end(),
              [](const Weighed& a, const Weighed& b) { return a.value < b.value; });
    double total = 0.0, below = 0.0;
    for (const Weighed& w : values) total += w.weight;
    if (!(total > 0.0)) return -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < values.size(); ++i) {
        below += values[i].weight;
        if (2.0 * below > total) return values[i].value;
        if (2.0 * below == total) {
            size_t next = i + 1;
            while (values[next].weight == 0.0) ++next;
            return 0.5 * (values[i].value + values[next].value);
        }
    }
    return values.back().value;
}

inline void comb_extremes(const Lists& v, int64_t q, const double* weight, Comb kind,
                          Missing missing, double* out) {
    const int64_t n = v.n_items(q);
    std::vector<std::vector<Weighed>> values(n);
    std::vector<bool> here(n);
    for (int64_t l = 0; l < v.n_lists; ++l) {
        const int64_t size = v.size(q, l), begin = v.begin(q, l);
        if (size == 0 || weight[l] == 0.0) continue;
        const double* score = v.score + begin;
        std::fill(here.begin(), here.end(), false);
        for (int64_t e = 0; e < size; ++e) {
            values[v.item[begin + e]].push_back({score[e], weight[l]});
            here[v.item[begin + e]] = true;
        }
        if (missing == Missing::skip) continue;
        const double fill = missing == Missing::min ? *std::min_element(score, score + size) : 0.0;
        for (int64_t i = 0; i < n; ++i)
            if (!here[i]) values[i].push_back({fill, weight[l]});
    }
    const auto less = [](const Weighed& a, const Weighed& b) { return a.value < b.value; };
    for (int64_t i = 0; i < n; ++i) {
        auto& x = values[i];
        if (x.empty())
            out[i] = -std::numeric_limits<double>::infinity();
        else if (kind == Comb::min)
            out[i] = std::min_element(x.begin(), x.end(), less)->value;
        else if (kind == Comb::max)
            out[i] = std::max_element(x.begin(), x.end(), less)->value;
        else
            out[i] = weighted_median(x);
    }
}

inline void comb(const Lists& v, const double* weight, Comb kind, Missing missing, double* out,
                 int n_threads) {
    parallel_for(v.n_queries, 4 * v.n_entries(), n_threads, [&](int64_t q) {
        static thread_local std::vector<double> held;
        double* place = out + v.offsets[q];
        if (kind == Comb::sum || kind == Comb::mnz || kind == Comb::anz)
            comb_sums(v, q, weight, kind, missing, held, place);
        else
            comb_extremes(v, q, weight, kind, missing, place);
    });
}

// --- Normalisation ------------------------------------------------------------------------------

enum class Norm { minmax, max, sum, zscore, rank, borda };

// Scores of one list on a common scale; `n` is the number of items of the query. Returns false for
// `max` without a positive score. A list of equal scores becomes 1 (minmax), 1/size (sum), 0
// (zscore).
inline bool normalise_list(const double* score, int64_t size, int64_t n, Norm kind, Order& order,
                           double* out) {
    if (size == 0) return true;
    const auto m = static_cast<double>(size);
    if (kind == Norm::rank || kind == Norm::borda) {
        const double total = kind == Norm::rank ? m : static_cast<double>(n);
        order.sort(score, size);
        each_place(order, size, Ties::average, [&](int64_t e, int64_t first, int64_t last) {
            out[e] = 1.0 - 0.5 * static_cast<double>(first + last - 1) / total;
        });
        return true;
    }
    const auto ends = std::minmax_element(score, score + size);
    const double low = *ends.first, high = *ends.second;
    double shift = 0.0, scale = 0.0, flat = 0.0;
    if (kind == Norm::minmax) {
        shift = low, scale = high - low, flat = 1.0;
    } else if (kind == Norm::max) {
        scale = high;
        if (!(high > 0.0)) return false;
    } else if (kind == Norm::sum) {
        shift = low, flat = 1.0 / m;
        for (int64_t e = 0; e < size; ++e) scale += score[e] - low;
    } else if (low < high) {
        double total = 0.0, squares = 0.0;
        for (int64_t e = 0; e < size; ++e) total += score[e];
        shift = total / m;
        for (int64_t e = 0; e < size; ++e) squares += (score[e] - shift) * (score[e] - shift);
        scale = std::sqrt(squares / m);
    }
    for (int64_t e = 0; e < size; ++e) out[e] = scale > 0.0 ? (score[e] - shift) / scale : flat;
    return true;
}

// The first list that cannot be normalised, or -1.
inline int64_t normalise(const Lists& v, Norm kind, double* out, int n_threads) {
    std::vector<int64_t> refused(v.n_queries, -1);
    parallel_for(v.n_queries, 4 * v.n_entries(), n_threads, [&](int64_t q) {
        static thread_local Order order;
        for (int64_t l = 0; l < v.n_lists; ++l) {
            const int64_t begin = v.begin(q, l);
            if (!normalise_list(v.score + begin, v.size(q, l), v.n_items(q), kind, order,
                                out + begin) &&
                refused[q] < 0)
                refused[q] = q * v.n_lists + l;
        }
    });
    for (int64_t at : refused)
        if (at >= 0) return at;
    return -1;
}

// Ranks from 1 of every entry in its list.
inline void entry_ranks(const Lists& v, Ties ties, double* out, int n_threads) {
    parallel_for(v.n_queries, 4 * v.n_entries(), n_threads, [&](int64_t q) {
        static thread_local Order order;
        for (int64_t l = 0; l < v.n_lists; ++l) {
            const int64_t begin = v.begin(q, l), size = v.size(q, l);
            order.sort(v.score + begin, size);
            each_place(order, size, ties, [&](int64_t e, int64_t first, int64_t last) {
                out[begin + e] = 0.5 * static_cast<double>(first + last + 1);
            });
        }
    });
}

// --- From and to a matrix of score columns -------------------------------------------------------

// Entries of the columns of R (n_items, n_lists), NaN and -inf left out; `starts` first.
inline void matrix_starts(const double* R, const int64_t* offsets, int64_t n_queries,
                          int64_t n_lists, int64_t* starts) {
    const double out = -std::numeric_limits<double>::infinity();
    std::fill(starts, starts + n_queries * n_lists + 1, 0);
    for (int64_t q = 0; q < n_queries; ++q)
        for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i)
            for (int64_t l = 0; l < n_lists; ++l)
                starts[q * n_lists + l + 1] += R[i * n_lists + l] > out;
    for (int64_t a = 0; a < n_queries * n_lists; ++a) starts[a + 1] += starts[a];
}

inline void matrix_entries(const double* R, const int64_t* offsets, int64_t n_queries,
                           int64_t n_lists, const int64_t* starts, int32_t* item, double* score,
                           int n_threads) {
    const double out = -std::numeric_limits<double>::infinity();
    const int64_t n = offsets[n_queries];
    parallel_for(n_queries, n * n_lists, n_threads, [&](int64_t q) {
        std::vector<int64_t> next(starts + q * n_lists, starts + (q + 1) * n_lists);
        for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i)
            for (int64_t l = 0; l < n_lists; ++l) {
                const double value = R[i * n_lists + l];
                if (!(value > out)) continue;
                item[next[l]] = static_cast<int32_t>(i - offsets[q]);
                score[next[l]++] = value;
            }
    });
}

// Values of the entries as a matrix (n_items, n_lists); `fill` where a list does not hold the item.
inline void entries_matrix(const Lists& v, const double* value, double fill, double* R) {
    std::fill(R, R + v.offsets[v.n_queries] * v.n_lists, fill);
    for (int64_t q = 0; q < v.n_queries; ++q)
        for (int64_t l = 0; l < v.n_lists; ++l)
            for (int64_t e = v.begin(q, l); e < v.begin(q, l) + v.size(q, l); ++e)
                R[(v.offsets[q] + v.item[e]) * v.n_lists + l] = value[e];
}

}  // namespace rankwise::lists
