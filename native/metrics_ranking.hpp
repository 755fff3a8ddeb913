// Where the documents of a query rank. All that a metric needs is the place of the relevant
// documents, so a query is not sorted where the documents that beat each relevant one can be
// counted: on scores rounded to 16 bits, sixteen or more at once, with an exact count for those
// that share their 16 bits with another document. Where that would take longer (very many relevant
// documents, ties everywhere) the query is sorted by buckets.
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

// Among the documents that round to r: how many score higher than t, and how many the same.
RANKWISE_CLONES
static void count_alike(const int16_t* rounded, const double* s, int64_t n, int16_t r, double t,
                        int64_t* above, int64_t* equal) {
    constexpr int64_t block = 64;
    int64_t a = 0, b = 0;
    for (int64_t i = 0; i < n; i += block) {
        const int64_t end = std::min(n, i + block);
        int16_t any = 0;
        for (int64_t j = i; j < end; ++j) any |= static_cast<int16_t>(rounded[j] == r);
        if (any == 0) continue;
        for (int64_t j = i; j < end; ++j) {
            a += rounded[j] == r && s[j] > t;
            b += rounded[j] == r && s[j] == t;
        }
    }
    *above = a;
    *equal = b;
}

// For four documents, on rounded scores, where smaller is better: how many are certainly better,
// and how many round alike (the document itself is one). n is at most 32767.
RANKWISE_CLONES
static void count_rounded(const int16_t* s, int64_t n, const int16_t* t, int32_t* above,
                          int32_t* alike) {
    int16_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    const int16_t t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3];
    for (int64_t i = 0; i < n; ++i) {
        const int16_t x = s[i];
        a0 = static_cast<int16_t>(a0 + (x < t0));
        a1 = static_cast<int16_t>(a1 + (x < t1));
        a2 = static_cast<int16_t>(a2 + (x < t2));
        a3 = static_cast<int16_t>(a3 + (x < t3));
        b0 = static_cast<int16_t>(b0 + (x == t0));
        b1 = static_cast<int16_t>(b1 + (x == t1));
        b2 = static_cast<int16_t>(b2 + (x == t2));
        b3 = static_cast<int16_t>(b3 + (x == t3));
    }
    above[0] += a0, above[1] += a1, above[2] += a2, above[3] += a3;
    alike[0] += b0, alike[1] += b1, alike[2] += b2, alike[3] += b3;
}

// Scores as 16-bit numbers, the largest score as the smallest number: a monotone function of the
// score, so that order is kept wherever the numbers differ. -inf alone has the last number.
RANKWISE_CLONES
static void round_scores(const double* s, int64_t n, double high, double scale, int16_t* out) {
    for (int64_t i = 0; i < n; ++i) {
        const double x = (high - s[i]) * scale;
        const auto number = static_cast<int32_t>(x < 65535.0 ? x : 65535.0);
        out[i] = static_cast<int16_t>(number - 32768);
    }
}

// One byte per label: whether it is a number other than 0.
RANKWISE_CLONES
static void mark_nonzero(const double* y, int64_t n, uint8_t* mark) {
    for (int64_t i = 0; i < n; ++i) mark[i] = (y[i] > 0.0) | (y[i] < 0.0);
}

// Least and largest score. No score is NaN here, so the order of comparisons does not matter.
RANKWISE_CLONES
static void range_of_all(const double* s, int64_t n, double* low, double* high) {
    double lo = std::numeric_limits<double>::infinity(), hi = -lo;
#ifdef _OPENMP
#pragma omp simd reduction(min : lo) reduction(max : hi)
#endif
    for (int64_t i = 0; i < n; ++i) {
        lo = s[i] < lo ? s[i] : lo;
        hi = s[i] > hi ? s[i] : hi;
    }
    *low = lo;
    *high = hi;
}

// Least and largest score of the retrieved documents.
inline void range_of(const double* s, int64_t n, double* low, double* high) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    range_of_all(s, n, low, high);
    if (*low > -inf) return;
    *low = inf;
    for (int64_t i = 0; i < n; ++i)
        if (s[i] > -inf) *low = std::min(*low, s[i]);
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

inline size_t lowest_bit(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<size_t>(__builtin_ctzll(word));
#else
    size_t i = 0;
    while (!(word >> i & 1)) ++i;
    return i;
#endif
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
    Ranker(Ties ties, bool full, bool pooled) : ties_(ties), full_(full), pooled_(pooled) {}

    // Fills `out`; the scan says whether labels and scores were valid (if not, `out` is not).
    Scan rank(const double* label, const double* score, int64_t n, Ranking& out) {
        Scan scan = collect(label, score, n, out);
        if (scan.bad_label || scan.bad_score) return scan;
        out.entries.clear();
        const auto m = static_cast<int64_t>(candidates_.size());
        if (m == 0 && !full_) return scan;
        if (full_ || m > kCountAtMost || !place_by_counting(label, score, n, out))
            place_by_sorting(label, score, n, out);
        return scan;
    }

  private:
    // With more relevant documents, or more that need an exact count, sorting is faster.
    static constexpr int64_t kCountAtMost = 200, kExactAtMost = 24;

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
        constexpr double inf = std::numeric_limits<double>::infinity();
        const int64_t n_words = (n + 7) / 8;
        marks_.resize(static_cast<size_t>(n_words) * 8);
        std::fill(marks_.begin() + n, marks_.end(), uint8_t{0});
        mark_nonzero(label, n, marks_.data());
        candidates_.resize(static_cast<size_t>(n) + 1);
        int32_t* next = candidates_.data();
        bool valid = true;
        for (int64_t w = 0; w < n_words; ++w) {
            uint64_t word;
            std::memcpy(&word, marks_.data() + w * 8, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            word = __builtin_bswap64(word);
#endif
            for (; word != 0; word &= word - 1) {  // most words hold no relevant document
                const int64_t i = w * 8 + static_cast<int64_t>(lowest_bit(word) / 8);
                valid &= label[i] < inf && (pooled_ || label[i] > 0.0);
                *next = static_cast<int32_t>(i);
                next += label[i] > 0.0;
            }
        }
        candidates_.resize(static_cast<size_t>(next - candidates_.data()));
        return valid;
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

    // False, with nothing done, where sorting is faster.
    bool place_by_counting(const double* label, const double* score, int64_t n, Ranking& out) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        const auto missed = [score](int32_t i) { return score[i] == -inf; };
        candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), missed),
                          candidates_.end());
        const auto m = static_cast<int64_t>(candidates_.size());
        if (m == 0) return true;
        count_candidates(score, n);
        const int64_t n_exact = m - std::count(alike_.begin(), alike_.begin() + m, 1);
        if (n_exact > kExactAtMost) return false;
        // One bit per rank puts the entries in order; a tie takes the next free ranks.
        slots_.resize(static_cast<size_t>(n) + 1);
        taken_.assign(static_cast<size_t>(n) / 64 + 1, 0);
        for (int64_t c = 0; c < m; ++c) {
            const int32_t i = candidates_[c];
            const Entry entry = alike_[c] == 1 ? Entry{above_[c], 1, label[i]}
                                               : count_exactly(label, score, n, i, above_[c]);
            int64_t rank = entry.before;
            while (taken_[rank / 64] >> (rank % 64) & 1) ++rank;
            taken_[rank / 64] |= uint64_t{1} << (rank % 64);
            slots_[rank] = entry;
        }
        for (size_t w = 0; w < taken_.size(); ++w)
            for (uint64_t word = taken_[w]; word != 0; word &= word - 1)
                out.entries.push_back(slots_[w * 64 + lowest_bit(word)]);
        if (n_exact > 0) sort_blocks(out.entries);
        return true;
    }

    // For each candidate the documents that are better, and those that round alike.
    void count_candidates(const double* score, int64_t n) {
        double low, high;
        range_of(score, n, &low, &high);
        const double scale = 65534.0 / (high - low);
        rounded_.resize(static_cast<size_t>(n));
        round_scores(score, n, high, std::isfinite(scale) ? scale : 0.0, rounded_.data());
        const auto m = static_cast<int64_t>(candidates_.size());
        above_.assign(static_cast<size_t>(m) + 3, 0);
        alike_.assign(static_cast<size_t>(m) + 3, 0);
        constexpr int64_t block = 32'000;  // counts fit 16 bits
        for (int64_t c = 0; c < m; c += 4) {
            int16_t t[4];
            for (int64_t u = 0; u < 4; ++u) t[u] = rounded_[candidates_[std::min(c + u, m - 1)]];
            for (int64_t i = 0; i < n; i += block)
                count_rounded(rounded_.data() + i, std::min(block, n - i), t, &above_[c],
                              &alike_[c]);
        }
    }

    // Where candidate i stands; `better` documents have a smaller rounded score.
    Entry count_exactly(const double* label, const double* score, int64_t n, int64_t i,
                        int64_t better) const {
        const double t = score[i], y = label[i];
        int64_t above, equal;
        count_alike(rounded_.data(), score, n, rounded_[i], t, &above, &equal);
        Entry entry{better + above, equal, y};
        if (entry.tied > 1 && ties_ != Ties::average) {
            int64_t earlier = 0, same = 0;
            for (int64_t j = 0; j < n; ++j) {
                if (score[j] != t) continue;
                earlier += goes_first(tie_key(label[j]), j, tie_key(y), i);
                same += label[j] == y;
            }
            entry.before += earlier;
            entry.tied = ties_ == Ties::stable ? 1 : same;
        }
        return entry;
    }

    // Larger labels first inside each block of ties.
    static void sort_blocks(std::vector<Entry>& entries) {
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            return a.before != b.before ? a.before < b.before : a.label > b.label;
        });
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
    bool pooled_;
    std::vector<int32_t> candidates_, above_, alike_, bucket_, starts_;
    std::vector<uint8_t> marks_;
    std::vector<int16_t> rounded_;
    std::vector<uint64_t> taken_;
    std::vector<Entry> slots_;
    std::vector<Scored> sorted_;
};

}  // namespace rankwise
