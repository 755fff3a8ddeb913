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
#include <cstring>
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

// One byte per label: bit 0 for a label above 0, bit 1 for one below 0, bit 2 for +inf.
RANKWISE_CLONES
static void mark_labels(const double* y, int64_t n, uint8_t* mark) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
        const uint8_t positive = y[i] > 0.0, negative = y[i] < 0.0, infinite = y[i] == inf;
        mark[i] = static_cast<uint8_t>(positive | negative << 1 | infinite << 2);
    }
}

// Least and largest score, -inf left out.
RANKWISE_CLONES
static void range_of(const double* s, int64_t n, double* low, double* high) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    constexpr int64_t lanes = 8;
    double lo[lanes], hi[lanes];
    for (int64_t u = 0; u < lanes; ++u) lo[u] = inf, hi[u] = -inf;
    const auto take = [&](double x, int64_t u) {
        const double retrieved = x > -inf ? x : inf;
        lo[u] = retrieved < lo[u] ? retrieved : lo[u];
        hi[u] = x > hi[u] ? x : hi[u];
    };
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int64_t u = 0; u < lanes; ++u) take(s[i + u], u);
    for (; i < n; ++i) take(s[i], 0);
    *low = *std::min_element(lo, lo + lanes);
    *high = *std::max_element(hi, hi + lanes);
}

// Buckets of scores, the largest score in bucket 0; -inf goes to bucket `last`.
RANKWISE_CLONES
static void fill_buckets(const double* s, int64_t n, double high, double scale, int32_t last,
                         int32_t* bucket) {
    const double limit = last;
    for (int64_t i = 0; i < n; ++i) {
        const double x = (high - s[i]) * scale;
        bucket[i] = static_cast<int32_t>(x < limit ? x : limit);
    }
}

// Place of a label when tied documents are put in order: unjudged ones below every label.
inline double tie_key(double label) { return label == label ? label : -1.0; }

struct Scored {
    double score;
    int32_t row;
};

class Ranker {
  public:
    // `full`: every retrieved document becomes an entry, not only those with a label above 0.
    // `pooled`: labels below 0 are allowed; they mark documents that were pooled, not judged.
    Ranker(Ties ties, bool full, bool pooled)
        : ties_(ties), full_(full), invalid_(pooled ? 0x04 : 0x06) {}

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
        return scan;
    }

  private:
    static constexpr int64_t kCountAtMost = 96;  // with more candidates sorting is faster

    Scan collect(const double* label, const double* score, int64_t n, Ranking& out) {
        Scan scan;
        int64_t n_bad = 0;
        scan.n_ranked = count_ranked(score, n, &n_bad);
        scan.bad_score = n_bad > 0;
        scan.bad_label = !collect_positive(label, n);
        const auto m = static_cast<int64_t>(candidates_.size());
        out.n_docs = n;
        out.n_ranked = scan.n_ranked;
        if (full_) {
            out.n_judged = 0;
            for (int64_t i = 0; i < n; ++i) out.n_judged += label[i] >= 0.0;
        }
        out.labels.resize(static_cast<size_t>(m));
        for (int64_t c = 0; c < m; ++c) out.labels[c] = label[candidates_[c]];
        sort_labels(out.labels);
        return scan;
    }

    // Fills candidates_ with the rows that have a label above 0; false if a label is not valid.
    bool collect_positive(const double* label, int64_t n) {
        const int64_t n_words = (n + 7) / 8;
        marks_.assign(static_cast<size_t>(n_words) * 8, 0);
        mark_labels(label, n, marks_.data());
        candidates_.clear();
        uint64_t seen = 0;
        for (int64_t w = 0; w < n_words; ++w) {
            uint64_t word;
            std::memcpy(&word, marks_.data() + w * 8, 8);
            seen |= word;
            if (word == 0) continue;  // most words hold no relevant document
            for (int64_t i = w * 8; i < std::min(n, w * 8 + 8); ++i)
                if (marks_[i] & 1) candidates_.push_back(static_cast<int32_t>(i));
        }
        return (seen & (0x0101010101010101ULL * invalid_)) == 0;
    }

    // Descending; small whole numbers, the usual case, are counted.
    void sort_labels(std::vector<double>& labels) {
        constexpr int32_t n_grades = 64;
        int32_t count[n_grades] = {};
        bool whole = true;
        for (const double y : labels) {
            const auto grade = static_cast<int32_t>(std::min(y, n_grades - 1.0));
            whole &= static_cast<double>(grade) == y;
            ++count[grade];
        }
        if (!whole) {
            std::sort(labels.begin(), labels.end(), std::greater<double>());
            return;
        }
        size_t next = 0;
        for (int32_t grade = n_grades - 1; grade > 0; --grade)
            for (int32_t i = 0; i < count[grade]; ++i) labels[next++] = grade;
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
        std::sort(out.entries.begin(), out.entries.end(), [](const Entry& a, const Entry& b) {
            return a.before != b.before ? a.before < b.before : a.label > b.label;
        });
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
        out.entries.resize(sorted_.size() + 1);  // one more: the next entry is written, then kept
        Entry* next = out.entries.data();
        const auto n_ranked = static_cast<int64_t>(sorted_.size());
        for (int64_t a = 0, b; a < n_ranked; a = b) {
            for (b = a + 1; b < n_ranked && sorted_[b].score == sorted_[a].score;) ++b;
            if (b - a == 1 || ties_ == Ties::average)
                next = add_block(label, a, b, b - a, next);
            else if (ties_ == Ties::stable)
                for (int64_t j = a; j < b; ++j) next = add_block(label, j, j + 1, 1, next);
            else
                next = cut_block(label, a, b, next);
        }
        out.entries.resize(static_cast<size_t>(next - out.entries.data()));
    }

    // A block of tied documents as blocks of equal labels.
    Entry* cut_block(const double* label, int64_t begin, int64_t end, Entry* next) {
        const bool worst = ties_ == Ties::worst;
        std::sort(sorted_.begin() + begin, sorted_.begin() + end,
                  [&](const Scored& i, const Scored& j) {
                      const double y_i = tie_key(label[i.row]), y_j = tie_key(label[j.row]);
                      return worst ? y_i < y_j : y_i > y_j;
                  });
        for (int64_t a = begin, b; a < end; a = b) {
            const double y = tie_key(label[sorted_[a].row]);
            for (b = a + 1; b < end && tie_key(label[sorted_[b].row]) == y;) ++b;
            next = add_block(label, a, b, b - a, next);
        }
        return next;
    }

    Entry* add_block(const double* label, int64_t begin, int64_t end, int64_t tied, Entry* next) {
        Entry* first = next;
        for (int64_t j = begin; j < end; ++j) {
            const double y = label[sorted_[j].row];
            *next = {begin, tied, y};
            next += full_ || y > 0.0;
        }
        if (next - first > 1)
            std::sort(first, next, [](const Entry& a, const Entry& b) {
                return tie_key(a.label) > tie_key(b.label);
            });
        return next;
    }

    // Retrieved documents by descending score, equal scores in input order. The bucket of a score
    // is a monotone function of it, so after one counting sort by bucket only neighbours are out
    // of order; an insertion sort puts them right. Buckets that hold too many (clustered scores)
    // are sorted on their own first.
    void sort_by_score(const double* score, int64_t n, int64_t n_ranked) {
        const int64_t n_buckets = assign_buckets(score, n, n_ranked);
        starts_.assign(static_cast<size_t>(n_buckets) + 1, 0);
        for (int64_t i = 0; i < n; ++i) ++starts_[bucket_[i] + 1];
        int32_t largest = 0;
        for (int64_t b = 0; b < n_buckets; ++b) {
            if (b < n_buckets - 1) largest = std::max(largest, starts_[b + 1]);
            starts_[b + 1] += starts_[b];
        }
        // Documents that were not retrieved are in the last bucket, after all others.
        sorted_.resize(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i)
            sorted_[starts_[bucket_[i]]++] = {score[i], static_cast<int32_t>(i)};
        sorted_.resize(static_cast<size_t>(n_ranked));
        if (largest > kInsertAtMost) sort_large_buckets(n_buckets - 1);
        for (int64_t i = 1; i < n_ranked; ++i) {
            if (!(sorted_[i - 1].score < sorted_[i].score)) continue;
            const Scored moved = sorted_[i];
            int64_t j = i;
            for (; j > 0 && sorted_[j - 1].score < moved.score; --j) sorted_[j] = sorted_[j - 1];
            sorted_[j] = moved;
        }
    }

    // Fills bucket_ and returns the number of buckets; the last one is for -inf.
    int64_t assign_buckets(const double* score, int64_t n, int64_t n_ranked) {
        double low, high;
        range_of(score, n, &low, &high);
        bucket_.resize(static_cast<size_t>(n));
        const double n_scored = static_cast<double>(std::max<int64_t>(n_ranked, 2));
        const double scale = (kBucketsPerDoc * n_scored - 1.0) / (high - low);
        if (!(scale > 0.0) || !std::isfinite(scale)) {  // one value, or a range that overflows
            for (int64_t i = 0; i < n; ++i) bucket_[i] = !(score[i] >= low);
            return 2;
        }
        const auto last = static_cast<int32_t>(kBucketsPerDoc * n_scored);
        fill_buckets(score, n, high, scale, last, bucket_.data());
        return last + 1;
    }

    void sort_large_buckets(int64_t n_buckets) {
        int32_t begin = 0;
        for (int64_t b = 0; b < n_buckets; ++b) {
            const int32_t end = starts_[b];  // moved on to its end by the counting sort
            if (end - begin > kInsertAtMost)
                std::stable_sort(
                    sorted_.begin() + begin, sorted_.begin() + end,
                    [](const Scored& i, const Scored& j) { return i.score > j.score; });
            begin = end;
        }
    }

    static constexpr int32_t kInsertAtMost = 24;
    static constexpr double kBucketsPerDoc = 4.0;

    Ties ties_;
    bool full_;
    uint64_t invalid_;
    std::vector<int32_t> candidates_, bucket_, starts_;
    std::vector<uint8_t> marks_;
    std::vector<Scored> sorted_;
};

}  // namespace rankwise
