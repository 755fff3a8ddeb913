// Aggregation by pairs: who is preferred to whom by how much weight, and what is made of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "aggregate.hpp"
#include "lanes.hpp"
#include "simd.hpp"

namespace rankwise::lists {

// Ranks of one query, list by list: ranks[l * n + i], NaN where list l says nothing about item i,
// infinity where it puts the item behind all of its own (`last`).
struct RankRows {
    int64_t n = 0, n_lists = 0;
    std::vector<double> ranks;
    std::vector<double> weight;
    Order order;

    const double* row(int64_t l) const { return ranks.data() + l * n; }

    // Lists without entries in this query and lists of weight 0 are left out.
    void fill(const Lists& v, int64_t q, const double* list_weight, Missing missing) {
        n = v.n_items(q);
        weight.clear();
        ranks.clear();
        const double absent = missing == Missing::last ? std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::quiet_NaN();
        for (int64_t l = 0; l < v.n_lists; ++l) {
            const int64_t begin = v.begin(q, l), size = v.size(q, l);
            if (size == 0 || list_weight[l] == 0.0) continue;
            const size_t at = ranks.size();
            ranks.resize(at + n, absent);
            order.sort(v.score + begin, size);
            each_place(order, size, Ties::average, [&](int64_t e, int64_t first, int64_t last) {
                ranks[at + v.item[begin + e]] = 0.5 * static_cast<double>(first + last + 1);
            });
            weight.push_back(list_weight[l]);
        }
        n_lists = static_cast<int64_t>(weight.size());
    }
};

// net[j] += weight * ([mine ranked before j] - [j ranked before mine]); NaN compares with nothing.
RANKWISE_CLONES static void add_net(const double* ranks, int64_t n, double mine, double weight,
                                    double* net) {
    int64_t j = 0;
    const HalfLanes here = HalfLanes{} + mine, w = HalfLanes{} + weight;
    for (; j + 4 <= n; j += 4) {
        HalfLanes theirs, sum;
        load(ranks + j, theirs);
        load(net + j, sum);
        sum += (here < theirs ? w : HalfLanes{}) - (theirs < here ? w : HalfLanes{});
        store(sum, net + j);
    }
    for (; j < n; ++j)
        net[j] += (mine < ranks[j] ? weight : 0.0) - (ranks[j] < mine ? weight : 0.0);
}

// wins[j] += weight * ([mine before j] + 1/2 [tied with j]).
RANKWISE_CLONES static void add_wins(const double* ranks, int64_t n, double mine, double weight,
                                     double* wins) {
    const double half = 0.5 * weight;
    for (int64_t j = 0; j < n; ++j)
        wins[j] += mine < ranks[j] ? weight : mine == ranks[j] ? half : 0.0;
}

// Row i of the net preferences of one query.
inline void net_row(const RankRows& r, int64_t i, double* net) {
    std::fill(net, net + r.n, 0.0);
    for (int64_t l = 0; l < r.n_lists; ++l) {
        const double mine = r.row(l)[i];
        if (mine == mine) add_net(r.row(l), r.n, mine, r.weight[l], net);
    }
}

// W[i * n + j]: the weight of the lists that rank i before j, ties half; 0 on the diagonal.
inline void preferences(const RankRows& r, double* W, int n_threads) {
    parallel_for(r.n, r.n * r.n * r.n_lists, n_threads, [&](int64_t i) {
        double* row = W + i * r.n;
        std::fill(row, row + r.n, 0.0);
        for (int64_t l = 0; l < r.n_lists; ++l) {
            const double mine = r.row(l)[i];
            if (mine == mine) add_wins(r.row(l), r.n, mine, r.weight[l], row);
        }
        row[i] = 0.0;
    });
}

inline int64_t square_work(const Lists& v) {
    int64_t work = 0;
    for (int64_t q = 0; q < v.n_queries; ++q) work += v.n_items(q) * v.n_items(q);
    return work * std::max<int64_t>(v.n_lists, 1);
}

// Copeland: items beaten by a majority minus items lost to.
inline void copeland(const Lists& v, const double* weight, Missing missing, double* out,
                     int n_threads) {
    parallel_for(v.n_queries, square_work(v), n_threads, [&](int64_t q) {
        static thread_local RankRows r;
        static thread_local std::vector<double> net;
        r.fill(v, q, weight, missing);
        net.resize(r.n);
        for (int64_t i = 0; i < r.n; ++i) {
            net_row(r, i, net.data());
            double score = 0.0;
            for (int64_t j = 0; j < r.n; ++j) score += (net[j] > 0.0) - (net[j] < 0.0);
            out[v.offsets[q] + i] = score;
        }
    });
}

// --- Condorcet ----------------------------------------------------------------------------------

// One query sorted by majority. The ranks of an item lie side by side, for one comparison needs
// all.
class MajoritySort {
  public:
    void run(const Lists& v, int64_t q, const double* weight, Missing missing, double* out) {
        ranks_.fill(v, q, weight, missing);
        const int64_t n = ranks_.n, p = ranks_.n_lists;
        sides_.resize(n * p);
        for (int64_t l = 0; l < p; ++l)
            for (int64_t i = 0; i < n; ++i) sides_[i * p + l] = ranks_.row(l)[i];
        positional_query(v, q, weight, Ties::average, missing, Hits::none, 0.0, scratch_, out);
        start(out);
        merge_sort();
        scores(out);
    }

  private:
    // By Borda count, then by the ranks in the first list, the second, ...: a start that depends on
    // what the lists say and not on where an item is stored.
    void start(const double* borda) {
        const int64_t n = ranks_.n;
        keyed_.resize(n);
        for (int64_t i = 0; i < n; ++i) keyed_[i] = {descending_key(borda[i]), i};
        sort_keyed(keyed_, spare_);
        for (int64_t first = 0; first < n;) {
            int64_t last = first + 1;
            while (last < n && keyed_[last].key == keyed_[first].key) ++last;
            if (last - first > 1)
                std::stable_sort(
                    keyed_.begin() + first, keyed_.begin() + last,
                    [&](const Keyed& a, const Keyed& b) { return before(a.index, b.index) < 0; });
            first = last;
        }
        order_.resize(n);
        level_.resize(n);
        for (int64_t i = 0; i < n; ++i) {
            order_[i] = keyed_[i].index;
            const bool same = i > 0 && before(keyed_[i - 1].index, keyed_[i].index) == 0;
            level_[order_[i]] = same ? level_[order_[i - 1]] : i;
        }
    }

    // Lexicographic comparison of the ranks; an absent item stands behind.
    int before(int64_t a, int64_t b) const {
        const int64_t p = ranks_.n_lists;
        for (int64_t l = 0; l < p; ++l) {
            const double x = sides_[a * p + l], y = sides_[b * p + l];
            if (x == y || (x != x && y != y)) continue;
            return (x < y || y != y) ? -1 : 1;
        }
        return 0;
    }

    double net(int64_t a, int64_t b) const {
        const int64_t p = ranks_.n_lists;
        const double *x = &sides_[a * p], *y = &sides_[b * p];
        double sum = 0.0;
        for (int64_t l = 0; l < p; ++l) {
            const double w = ranks_.weight[l];
            sum += (x[l] < y[l] ? w : 0.0) - (y[l] < x[l] ? w : 0.0);
        }
        return sum;
    }

    // Merging, since a majority may run in circles and std::sort must not meet one. Two runs that
    // already follow each other are left as they are.
    void merge_sort() {
        const int64_t n = ranks_.n;
        held_.resize(n);
        for (int64_t width = 1; width < n; width *= 2)
            for (int64_t begin = 0; begin + width < n; begin += 2 * width) {
                const int64_t middle = begin + width, end = std::min(middle + width, n);
                if (!(net(order_[middle], order_[middle - 1]) > 0.0)) continue;
                std::copy(order_.begin() + begin, order_.begin() + middle, held_.begin());
                int64_t a = 0, b = middle, to = begin;
                while (a < width && b < end)
                    order_[to++] = net(order_[b], held_[a]) > 0.0 ? order_[b++] : held_[a++];
                while (a < width) order_[to++] = held_[a++];
            }
    }

    // n - position; items that every list treats alike share the mean of their positions.
    void scores(double* out) const {
        const int64_t n = ranks_.n;
        for (int64_t first = 0; first < n;) {
            int64_t last = first + 1;
            while (last < n && level_[order_[last]] == level_[order_[first]]) ++last;
            const double score =
                static_cast<double>(n) - 0.5 * static_cast<double>(first + last + 1);
            for (int64_t i = first; i < last; ++i) out[order_[i]] = score;
            first = last;
        }
    }

    RankRows ranks_;
    PositionalScratch scratch_;
    std::vector<double> sides_;
    std::vector<Keyed> keyed_, spare_;
    std::vector<int64_t> order_, held_, level_;
};

inline void condorcet(const Lists& v, const double* weight, Missing missing, double* out,
                      int n_threads) {
    parallel_for(v.n_queries, 40 * v.n_entries(), n_threads, [&](int64_t q) {
        static thread_local MajoritySort sort;
        sort.run(v, q, weight, missing, out + v.offsets[q]);
    });
}

// --- Markov chains ------------------------------------------------------------------------------

// The chain of one query, column by column: into[i * n + j] is the chance of a step from j to i.
class Chain {
  public:
    int64_t n = 0;
    std::vector<double> into;
    std::vector<double> borda;

    void build(const Lists& v, int64_t q, const double* weight, Missing missing, int kind) {
        ranks_.fill(v, q, weight, missing);
        n = ranks_.n;
        into.assign(n * n, 0.0);
        borda.resize(n);
        positional_query(v, q, weight, Ties::average, missing, Hits::none, 0.0, scratch_,
                         borda.data());
        if (kind == 4)
            majority();
        else
            pooled(kind);
    }

  private:
    // MC1 to MC3 from what stands at or above j in the lists that hold j, list by list.
    void pooled(int kind) {
        const int64_t p = ranks_.n_lists;
        std::vector<double> held(n, 0.0), above(n), total(n, 0.0);
        std::vector<double> share(p * n, 0.0);
        for (int64_t l = 0; l < p; ++l) {
            const double* r = ranks_.row(l);
            count_above(r, above, kind == 3);
            for (int64_t j = 0; j < n; ++j) {
                if (r[j] != r[j]) continue;
                const double w = ranks_.weight[l];
                held[j] += w;
                total[j] += w * above[j];
                share[l * n + j] = kind == 1 ? w : w / above[j];
            }
        }
        for (int64_t l = 0; l < p; ++l)
            for (int64_t j = 0; j < n; ++j)
                if (share[l * n + j] > 0.0) share[l * n + j] /= kind == 1 ? total[j] : held[j];
        for (int64_t i = 0; i < n; ++i) {
            double* row = &into[i * n];
            for (int64_t l = 0; l < p; ++l) {
                const double mine = ranks_.row(l)[i];
                if (mine != mine) continue;
                add_shares(ranks_.row(l), &share[l * n], n, mine, kind == 3, row);
            }
            for (int64_t j = 0; j < n; ++j)
                if (held[j] == 0.0) row[j] = 1.0 / static_cast<double>(n);
        }
        if (kind == 3) stay(held);
    }

    // How many of the list's items stand at or above each; for MC3 how many the list holds.
    void count_above(const double* r, std::vector<double>& above, bool all) {
        sorted_.clear();
        for (int64_t j = 0; j < n; ++j)
            if (r[j] == r[j]) sorted_.push_back(r[j]);
        std::sort(sorted_.begin(), sorted_.end());
        for (int64_t j = 0; j < n; ++j)
            if (r[j] == r[j])
                above[j] = static_cast<double>(
                    all ? sorted_.end() - sorted_.begin()
                        : std::upper_bound(sorted_.begin(), sorted_.end(), r[j]) - sorted_.begin());
    }

    // row[j] += share[j] where the item stands at or above j (strictly above for MC3).
    RANKWISE_CLONES static void add_shares(const double* ranks, const double* share, int64_t n,
                                           double mine, bool strict, double* row) {
        if (strict)
            for (int64_t j = 0; j < n; ++j) row[j] += mine < ranks[j] ? share[j] : 0.0;
        else
            for (int64_t j = 0; j < n; ++j) row[j] += mine <= ranks[j] ? share[j] : 0.0;
    }

    void majority() {
        std::vector<double> held(n, 0.0);
        const double step = 1.0 / static_cast<double>(n);
        for (int64_t l = 0; l < ranks_.n_lists; ++l)
            for (int64_t j = 0; j < n; ++j) held[j] += ranks_.row(l)[j] == ranks_.row(l)[j];
        for (int64_t i = 0; i < n; ++i) {
            double* row = &into[i * n];
            net_row(ranks_, i, row);
            for (int64_t j = 0; j < n; ++j) row[j] = row[j] > 0.0 || held[j] == 0.0 ? step : 0.0;
        }
        stay(held);
    }

    // What is left of every state's chances is that of staying.
    void stay(const std::vector<double>& held) {
        std::vector<double> leaves(n, 0.0);
        for (int64_t i = 0; i < n; ++i) {
            const double* row = &into[i * n];
            for (int64_t j = 0; j < n; ++j) leaves[j] += j == i ? 0.0 : row[j];
        }
        for (int64_t i = 0; i < n; ++i)
            if (held[i] > 0.0) into[i * n + i] = std::max(0.0, 1.0 - leaves[i]);
    }

    RankRows ranks_;
    PositionalScratch scratch_;
    std::vector<double> sorted_;
};

RANKWISE_CLONES static double dot_lanes(const double* a, const double* b, int64_t n) {
    HalfLanes sums[4] = {};
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        for (int k = 0; k < 4; ++k) {
            HalfLanes x, y;
            load(a + j + 4 * k, x);
            load(b + j + 4 * k, y);
            sums[k] += x * y;
        }
    double total = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
}

// Stationary chances of the chain that jumps anywhere with chance eps: x = (1 - eps) x P + eps / n,
// by Gauss-Seidel sweeps from the worst item up. Steps lead upwards, so that a sweep carries them
// most of the way; it converges for every eps > 0 since the matrix is diagonally dominant by
// columns. Returns the number of sweeps, or -1 when `max_sweeps` did not do.
inline int stationary(const Chain& chain, double eps, double tolerance, int max_sweeps, double* x) {
    const int64_t n = chain.n;
    const double go = 1.0 - eps, jump = eps / static_cast<double>(n);
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return chain.borda[a] < chain.borda[b]; });
    std::fill(x, x + n, 1.0 / static_cast<double>(n));
    for (int sweep = 1; sweep <= max_sweeps; ++sweep) {
        double change = 0.0;
        for (int64_t i : order) {
            const double* row = &chain.into[i * n];
            const double stays = row[i];
            const double flow = dot_lanes(row, x, n) - stays * x[i];
            const double next = (go * flow + jump) / (1.0 - go * stays);
            change += std::abs(next - x[i]);
            x[i] = next;
        }
        if (change < tolerance) return sweep;
    }
    return -1;
}

// Chances that differ by less than the solver's noise are one chance.
inline void level(double* x, int64_t n, double relative) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
    for (int64_t i = 1; i < n; ++i) {
        const double above = x[order[i - 1]];
        if (above - x[order[i]] <= relative * above) x[order[i]] = above;
    }
}

// Returns the number of queries whose sweeps did not converge.
inline int64_t markov(const Lists& v, const double* weight, Missing missing, int kind, double eps,
                      double tolerance, int max_sweeps, double* out, int n_threads) {
    std::vector<int64_t> failed(v.n_queries, 0);
    parallel_for(v.n_queries, square_work(v), n_threads, [&](int64_t q) {
        static thread_local Chain chain;
        if (v.n_items(q) == 0) return;
        chain.build(v, q, weight, missing, kind);
        double* x = out + v.offsets[q];
        failed[q] = stationary(chain, eps, tolerance, max_sweeps, x) < 0;
        double total = 0.0;
        for (int64_t i = 0; i < chain.n; ++i) total += x[i];
        for (int64_t i = 0; i < chain.n; ++i) x[i] /= total;
        level(x, chain.n, 1e-10);
    });
    return std::accumulate(failed.begin(), failed.end(), int64_t{0});
}

}  // namespace rankwise::lists
