// Where the documents of a query rank. Everything a metric needs is the place of the relevant
// documents, so a query with few of them is not sorted: the documents that beat each relevant one
// are counted. A query with many is sorted by buckets.
//
// Tied documents share a block of ranks. Under Ties::average an entry says "one of the `tied` ranks
// after the first `before`, each equally likely"; the other rules cut blocks until all documents
// of a block are alike, so the metrics need one formula for every rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace rankwise {

enum class Ties { average, stable, worst, best };

struct Entry {
    int64_t before;  // documents ranked above the block
    int64_t tied;    // documents in the block
    double label;    // NaN: unjudged
};

struct Ranking {
    std::vector<Entry> entries;  // retrieved documents that matter, by rank, larger labels first
    std::vector<double> labels;  // labels above 0, retrieved or not, descending
    int64_t n_docs = 0;
    int64_t n_ranked = 0;  // retrieved: scored above minus infinity
    int64_t n_judged = 0;  // with a label, retrieved or not; counted only when `full`
};

// What one scan of a query's labels and scores finds.
struct Scan {
    int64_t n_ranked = 0;
    bool bad_score = false;  // NaN or +inf
    bool bad_label = false;  // negative or +inf
};

RANKWISE_CLONES
static int64_t count_ranked(const double* s, int64_t n, int64_t* n_bad) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    int64_t ranked = 0, below_inf = 0;
    for (int64_t i = 0; i < n; ++i) {
        ranked += s[i] > -inf;
        below_inf += s[i] < inf;
    }
    *n_bad = n - below_inf;
    return ranked;
}

// For four scores: how many documents score higher, and how many at least as high.
RANKWISE_CLONES
static void count_beating(const double* s, int64_t n, const double* t, int64_t* above,
                          int64_t* at_least) {
    int64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    const double t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3];
    for (int64_t i = 0; i < n; ++i) {
        const double x = s[i];
        a0 += x > t0;
        a1 += x > t1;
        a2 += x > t2;
        a3 += x > t3;
        b0 += x >= t0;
        b1 += x >= t1;
        b2 += x >= t2;
        b3 += x >= t3;
    }
    above[0] = a0, above[1] = a1, above[2] = a2, above[3] = a3;
    at_least[0] = b0, at_least[1] = b1, at_least[2] = b2, at_least[3] = b3;
}

// Place of a label when tied documents are put in order: unjudged ones below every label.
inline double tie_key(double label) { return label == label ? label : -1.0; }

class Ranker {
public:
    // `full`: every retrieved document becomes an entry, not only those with a label above 0.
    Ranker(Ties ties, bool full) : ties_(ties), full_(full) {}

    // Fills `out`; the scan says whether labels and scores were valid (if not, `out` is not).
    Scan rank(const double* label, const double* score, int64_t n, Ranking& out) {
        Scan scan = collect(label, score, n, out);
        if (scan.bad_label || scan.bad_score) return scan;
        out.entries.clear();
        const auto m = static_cast<int64_t>(candidates_.size());
        if (full_ || m > kCountAtMost)
            place_by_sorting(label, score, n, out);
        else
            place_by_counting(label, score, n, out);
        if (!full_ || ties_ != Ties::stable)
            std::sort(out.entries.begin(), out.entries.end(), [](const Entry& a, const Entry& b) {
                if (a.before != b.before) return a.before < b.before;
                return tie_key(a.label) > tie_key(b.label);
            });
        return scan;
    }

private:
    static constexpr int64_t kCountAtMost = 64;  // above it, sorting is faster than counting

    Scan collect(const double* label, const double* score, int64_t n, Ranking& out) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        Scan scan;
        int64_t n_bad = 0;
        scan.n_ranked = count_ranked(score, n, &n_bad);
        scan.bad_score = n_bad > 0;
        candidates_.resize(static_cast<size_t>(n));
        int32_t* candidate = candidates_.data();
        int64_t m = 0;
        bool bad = false;
        for (int64_t i = 0; i < n; ++i) {
            candidate[m] = static_cast<int32_t>(i);
            m += label[i] > 0.0;
            bad |= label[i] < 0.0 || label[i] == inf;
        }
        candidates_.resize(static_cast<size_t>(m));
        scan.bad_label = bad;
        out.n_docs = n;
        out.n_ranked = scan.n_ranked;
        if (full_) {
            out.n_judged = 0;
            for (int64_t i = 0; i < n; ++i) out.n_judged += label[i] == label[i];
        }
        out.labels.resize(static_cast<size_t>(m));
        for (int64_t c = 0; c < m; ++c) out.labels[c] = label[candidate[c]];
        std::sort(out.labels.begin(), out.labels.end(), std::greater<double>());
        return scan;
    }

    void place_by_counting(const double* label, const double* score, int64_t n, Ranking& out) {
        const auto m = static_cast<int64_t>(candidates_.size());
        for (int64_t c = 0; c < m; c += 4) {
            const int64_t batch = std::min<int64_t>(4, m - c);
            double t[4];
            int64_t above[4], at_least[4];
            for (int64_t u = 0; u < 4; ++u) t[u] = score[candidates_[c + std::min(u, batch - 1)]];
            count_beating(score, n, t, above, at_least);
            for (int64_t u = 0; u < batch; ++u)
                add_counted(label, score, n, candidates_[c + u], above[u], at_least[u], out);
        }
    }

    void add_counted(const double* label, const double* score, int64_t n, int64_t i, int64_t above,
                     int64_t at_least, Ranking& out) {
        const double t = score[i], y = label[i];
        if (t == -std::numeric_limits<double>::infinity()) return;
        Entry entry{above, at_least - above, y};
        if (entry.tied > 1 && ties_ != Ties::average) {
            int64_t earlier = 0, alike = 0;
            for (int64_t j = 0; j < n; ++j) {
                if (score[j] != t) continue;
                earlier += goes_first(tie_key(label[j]), j, tie_key(y), i);
                alike += label[j] == y;
            }
            entry.before += earlier;
            entry.tied = ties_ == Ties::stable ? 1 : alike;
        }
        out.entries.push_back(entry);
    }

    // Whether tied document j is put before document i.
    bool goes_first(double y_j, int64_t j, double y_i, int64_t i) const {
        if (ties_ == Ties::stable) return j < i;
        return ties_ == Ties::worst ? y_j < y_i : y_j > y_i;
    }

    void place_by_sorting(const double* label, const double* score, int64_t n, Ranking& out) {
        sort_by_score(score, n, out.n_ranked);
        const auto n_ranked = static_cast<int64_t>(order_.size());
        for (int64_t a = 0, b; a < n_ranked; a = b) {
            for (b = a + 1; b < n_ranked && score[order_[b]] == score[order_[a]];) ++b;
            if (ties_ == Ties::average) {
                add_block(label, a, b, b - a, out);
            } else if (ties_ == Ties::stable) {
                for (int64_t j = a; j < b; ++j) add_block(label, j, j + 1, 1, out);
            } else {
                cut_block(label, a, b, out);
            }
        }
    }

    // A block of tied documents as blocks of equal labels.
    void cut_block(const double* label, int64_t begin, int64_t end, Ranking& out) {
        const bool worst = ties_ == Ties::worst;
        std::sort(order_.begin() + begin, order_.begin() + end, [&](int32_t i, int32_t j) {
            const double y_i = tie_key(label[i]), y_j = tie_key(label[j]);
            return worst ? y_i < y_j : y_i > y_j;
        });
        for (int64_t a = begin, b; a < end; a = b) {
            const double y = tie_key(label[order_[a]]);
            for (b = a + 1; b < end && tie_key(label[order_[b]]) == y;) ++b;
            add_block(label, a, b, b - a, out);
        }
    }

    void add_block(const double* label, int64_t begin, int64_t end, int64_t tied, Ranking& out) {
        for (int64_t j = begin; j < end; ++j) {
            const double y = label[order_[j]];
            if (full_ || y > 0.0) out.entries.push_back({begin, tied, y});
        }
    }

    // Retrieved documents by descending score, equal scores in input order. The bucket of a
    // score is a monotone function of it, so only documents of one bucket are compared.
    void sort_by_score(const double* score, int64_t n, int64_t n_ranked) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        order_.resize(static_cast<size_t>(n_ranked));
        double low = inf, high = -inf;
        for (int64_t i = 0; i < n; ++i) {
            high = std::max(high, score[i]);
            low = score[i] > -inf ? std::min(low, score[i]) : low;
        }
        int64_t n_buckets = 1;
        while (n_buckets < n_ranked) n_buckets *= 2;
        const double scale = static_cast<double>(n_buckets - 1) / (high - low);
        if (!std::isfinite(scale) || !std::isfinite(high - low)) n_buckets = 1;
        const auto bucket = [&](double s) {
            return n_buckets == 1 ? int64_t{0} : static_cast<int64_t>((high - s) * scale);
        };
        starts_.assign(static_cast<size_t>(n_buckets) + 1, 0);
        for (int64_t i = 0; i < n; ++i)
            if (score[i] > -inf) ++starts_[bucket(score[i]) + 1];
        for (int64_t b = 0; b < n_buckets; ++b) starts_[b + 1] += starts_[b];
        for (int64_t i = 0; i < n; ++i)
            if (score[i] > -inf) order_[starts_[bucket(score[i])]++] = static_cast<int32_t>(i);
        // starts_[b] is now the end of bucket b.
        const auto before = [&](int32_t i, int32_t j) {
            return score[i] > score[j] || (score[i] == score[j] && i < j);
        };
        int64_t begin = 0;
        for (int64_t b = 0; b < n_buckets; ++b) {
            const int64_t end = starts_[b];
            if (end - begin > 1) std::sort(order_.begin() + begin, order_.begin() + end, before);
            begin = end;
        }
    }

    Ties ties_;
    bool full_;
    std::vector<int32_t> candidates_, order_;
    std::vector<int32_t> starts_;
};

}  // namespace rankwise
