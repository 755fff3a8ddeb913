// Bringing the lists of several runs together: the documents of a query are numbered by first
// appearance, and every run becomes a list of those numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "groups.hpp"
#include "lists.hpp"
#include "parallel.hpp"

namespace rankwise::lists {

// Documents of one run by integer id or by name.
struct IntegerIds {
    static constexpr bool exact = true;  // the hash is one-to-one
    const int64_t* id;
    uint64_t hash(int64_t row) const { return mix(static_cast<uint64_t>(id[row])); }
    bool same(int64_t row, const IntegerIds& other, int64_t other_row) const {
        return id[row] == other.id[other_row];
    }
};

inline uint64_t hash_bytes(const char* bytes, size_t n) {
    uint64_t h = 0x9e3779b97f4a7c15ULL * (n + 1);
    while (n >= 8) {
        uint64_t word;
        std::memcpy(&word, bytes, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
        bytes += 8, n -= 8;
    }
    uint64_t word = 0;
    std::memcpy(&word, bytes, n);
    return mix(h ^ word);
}

struct NamedIds {
    static constexpr bool exact = false;
    const char* bytes;
    const int64_t* offsets;
    std::string_view name(int64_t row) const {
        return {bytes + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
    }
    uint64_t hash(int64_t row) const {
        const std::string_view s = name(row);
        return hash_bytes(s.data(), s.size());
    }
    bool same(int64_t row, const NamedIds& other, int64_t other_row) const {
        return name(row) == other.name(other_row);
    }
};

// Where the documents of topic q stand in run l: rows [begin, end) of its columns, none if absent.
struct Slices {
    const int64_t* begin;  // [l * n_queries + q]
    const int64_t* end;
    int64_t n_queries;
    int64_t n_runs;

    int64_t first(int64_t q, int64_t l) const { return begin[l * n_queries + q]; }
    int64_t size(int64_t q, int64_t l) const {
        return end[l * n_queries + q] - begin[l * n_queries + q];
    }
};

// A table of numbered documents. A slot holds the upper half of a hash and a number + 1, so that a
// query's table stays small enough for the nearest caches; whole hashes are kept by number.
class Numbering {
  public:
    void start(int64_t n_entries) {
        size_t room = 64;
        while (3 * room < 4 * static_cast<size_t>(n_entries)) room *= 2;
        table_.assign(room, 0);
        mask_ = room - 1;
        hashes_.clear();
    }
    // The number of what hashes to `hash`: an old one for which `same(number)`, or the next.
    template <class Same>
    int32_t find(uint64_t hash, Same&& same) {
        const uint64_t tag = hash & ~uint64_t{0xffffffff};
        for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
            const uint64_t slot = table_[at];
            if (slot == 0) {
                hashes_.push_back(hash);
                table_[at] = tag | hashes_.size();
                return static_cast<int32_t>(hashes_.size() - 1);
            }
            if ((slot & ~uint64_t{0xffffffff}) != tag) continue;
            const auto number = static_cast<int32_t>((slot & 0xffffffff) - 1);
            if (hashes_[number] == hash && same(number)) return number;
        }
    }

  private:
    std::vector<uint64_t> table_, hashes_;
    size_t mask_ = 0;
};

// Memory that is about to be written from end to end.
template <class T>
std::unique_ptr<T[]> raw_array(int64_t n) {
    return std::unique_ptr<T[]>(new T[n > 0 ? n : 1]);
}

struct Aligned {
    std::vector<int64_t> offsets, starts;
    std::unique_ptr<int32_t[]> item;
    std::unique_ptr<double[]> score;
    // Of each item of query q, from starts[q * n_runs] on: its first entry, counted from there.
    std::unique_ptr<int32_t[]> first;
    // A document twice in a topic of one run: that run and its two rows; run -1 if there is none.
    int64_t twice_run = -1, twice_rows[2] = {0, 0};

    int64_t n_entries() const { return starts.back(); }
};

// Numbers the documents of one query.
template <class Ids>
struct Aligner {
    const std::vector<Ids>& runs;
    const Slices& slices;
    const Aligned& out;

    // How many there are, or -1 - run where one stands twice, at `rows`.
    int64_t operator()(int64_t q, int64_t rows[2]) const {
        static thread_local Numbering numbering;
        static thread_local std::vector<Met> met;
        const int64_t* starts = out.starts.data() + q * slices.n_runs;
        const int64_t begin = starts[0];
        numbering.start(starts[slices.n_runs] - begin);
        met.clear();
        int32_t n = 0;
        for (int32_t l = 0; l < slices.n_runs; ++l) {
            const Ids& ids = runs[l];
            const int64_t row = slices.first(q, l), size = slices.size(q, l);
            int32_t* item = out.item.get() + starts[l];
            for (int64_t e = 0; e < size; ++e) {
                const int32_t number = numbering.find(ids.hash(row + e), [&](int32_t known) {
                    return Ids::exact || ids.same(row + e, runs[met[known].run], met[known].row);
                });
                item[e] = number;
                if (number == n) {
                    met.push_back({l, l, row + e});
                    out.first[begin + n++] = static_cast<int32_t>(starts[l] + e - begin);
                } else if (met[number].last == l) {
                    rows[0] = row + (std::find(item, item + e, number) - item);
                    rows[1] = row + e;
                    return -1 - int64_t{l};
                } else {
                    met[number].last = l;
                }
            }
        }
        return n;
    }

  private:
    struct Met {
        int32_t run, last;  // the runs that held the document first and last
        int64_t row;
    };
};

template <class Ids>
Aligned align(const std::vector<Ids>& runs, const std::vector<const double*>& scores,
              const Slices& slices, int n_threads) {
    const int64_t Q = slices.n_queries, p = slices.n_runs;
    Aligned out;
    out.starts.assign(Q * p + 1, 0);
    for (int64_t q = 0; q < Q; ++q)
        for (int64_t l = 0; l < p; ++l)
            out.starts[q * p + l + 1] = out.starts[q * p + l] + slices.size(q, l);
    out.item = raw_array<int32_t>(out.n_entries());
    out.score = raw_array<double>(out.n_entries());
    out.first = raw_array<int32_t>(out.n_entries());
    std::vector<int64_t> counts(Q), rows(2 * Q);
    const Aligner<Ids> aligner{runs, slices, out};
    parallel_for(Q, 10 * out.n_entries(), n_threads, [&](int64_t q) {
        for (int64_t l = 0; l < p; ++l) {
            const double* from = scores[l] + slices.first(q, l);
            std::copy(from, from + slices.size(q, l), out.score.get() + out.starts[q * p + l]);
        }
        counts[q] = aligner(q, &rows[2 * q]);
    });
    out.offsets.assign(Q + 1, 0);
    for (int64_t q = 0; q < Q; ++q) {
        if (counts[q] < 0) {
            out.twice_run = -1 - counts[q];
            out.twice_rows[0] = rows[2 * q], out.twice_rows[1] = rows[2 * q + 1];
            return out;
        }
        out.offsets[q + 1] = out.offsets[q] + counts[q];
    }
    return out;
}

// Calls item(i, run, row) for every item: where it was met first.
template <class Item>
void each_source(const Aligned& a, const Slices& slices, Item&& item) {
    const int64_t p = slices.n_runs;
    for (int64_t q = 0; q < slices.n_queries; ++q) {
        const int64_t* starts = a.starts.data() + q * p;
        int64_t l = 0;  // items are numbered in the order of their first entries
        for (int64_t i = a.offsets[q]; i < a.offsets[q + 1]; ++i) {
            const int64_t entry = starts[0] + a.first[starts[0] + i - a.offsets[q]];
            while (entry >= starts[l + 1]) ++l;
            item(i, l, slices.first(q, l) + entry - starts[l]);
        }
    }
}

// Offsets of the best `k` items of every query (all of them where k < 0).
inline void keep_counts(const int64_t* offsets, int64_t n_queries, int64_t k, int64_t* cuts) {
    cuts[0] = 0;
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t n = offsets[q + 1] - offsets[q];
        cuts[q + 1] = cuts[q] + (k < 0 ? n : std::min(n, k));
    }
}

// Rows of every query by descending score, equal ones in their order, as many as `cuts` says.
inline void best_rows(const double* score, const int64_t* offsets, int64_t n_queries,
                      const int64_t* cuts, int64_t* rows, int n_threads) {
    parallel_for(n_queries, 20 * offsets[n_queries], n_threads, [&](int64_t q) {
        static thread_local Order order;
        order.sort(score + offsets[q], offsets[q + 1] - offsets[q]);
        for (int64_t p = 0; p < cuts[q + 1] - cuts[q]; ++p)
            rows[cuts[q] + p] = offsets[q] + order.entry(p);
    });
}

}  // namespace rankwise::lists
