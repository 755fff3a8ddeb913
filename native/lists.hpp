// Rank lists of many queries, flat: who ranks which items, and the order inside one list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace rankwise::lists {

// Query q owns the items [offsets[q], offsets[q + 1]) and the lists q * n_lists + l. A list owns
// the entries [starts[.], starts[. + 1]): the number of an item inside its query, and its score
// there.
struct Lists {
    const int64_t* offsets;
    const int64_t* starts;
    const int32_t* item;
    const double* score;
    int64_t n_queries;
    int64_t n_lists;

    int64_t n_items(int64_t q) const { return offsets[q + 1] - offsets[q]; }
    int64_t begin(int64_t q, int64_t l) const { return starts[q * n_lists + l]; }
    int64_t size(int64_t q, int64_t l) const { return starts[q * n_lists + l + 1] - begin(q, l); }
    int64_t n_entries() const { return starts[n_queries * n_lists]; }
};

enum class Ties { average, stable, worst, best };

// Bits that order like the doubles do, largest first; both zeros are one value.
inline uint64_t descending_key(double value) {
    uint64_t bits;
    value += 0.0;
    std::memcpy(&bits, &value, sizeof bits);
    const uint64_t ascending = bits ^ ((bits >> 63) ? ~uint64_t{0} : uint64_t{1} << 63);
    return ~ascending;
}

struct Keyed {
    uint64_t key;
    int64_t index;
};

// Sorts by the upper half of the key, equal ones in their order: a pass per byte that varies.
inline void radix_upper(std::vector<Keyed>& entries, std::vector<Keyed>& spare) {
    const size_t n = entries.size();
    int32_t count[4][256] = {};
    for (const Keyed& e : entries)
        for (int b = 0; b < 4; ++b) ++count[b][(e.key >> (32 + 8 * b)) & 255];
    spare.resize(n);
    for (int b = 0; b < 4; ++b) {
        const int shift = 32 + 8 * b;
        if (count[b][(entries[0].key >> shift) & 255] == static_cast<int32_t>(n)) continue;
        int32_t place = 0;
        for (int32_t& c : count[b]) {
            const int32_t here = c;
            c = place;
            place += here;
        }
        for (const Keyed& e : entries) spare[count[b][(e.key >> shift) & 255]++] = e;
        entries.swap(spare);
    }
}

// By key, equal keys by index. The upper half of a double tells nearly all scores apart, so that
// few runs are left to sort by the rest.
inline void sort_keyed(std::vector<Keyed>& entries, std::vector<Keyed>& spare) {
    const auto before = [](const Keyed& a, const Keyed& b) {
        return a.key != b.key ? a.key < b.key : a.index < b.index;
    };
    if (entries.size() <= 200 || entries.size() > 0x7fffffff) {
        std::sort(entries.begin(), entries.end(), before);
        return;
    }
    radix_upper(entries, spare);
    for (auto first = entries.begin(); first != entries.end();) {
        auto last = first + 1;
        bool sorted = true;
        for (; last != entries.end() && last->key >> 32 == first->key >> 32; ++last)
            sorted &= (last - 1)->key <= last->key;
        if (!sorted) std::sort(first, last, before);
        first = last;
    }
}

// The order of one list, best first: entry(p) is the place in the list of what stands at p. A list
// stored best first, as runs mostly are, is not sorted again.
class Order {
  public:
    void sort(const double* score, int64_t n) {
        score_ = score;
        bool sorted = true;
        for (int64_t i = 1; i < n && sorted; ++i) sorted = score[i] <= score[i - 1];
        sorted_ = sorted;
        if (sorted) return;
        entries_.resize(n);
        for (int64_t i = 0; i < n; ++i) entries_[i] = {descending_key(score[i]), i};
        sort_keyed(entries_, spare_);
    }
    int64_t entry(int64_t p) const { return sorted_ ? p : entries_[p].index; }
    double value(int64_t p) const { return score_[entry(p)]; }

    // Calls block(first, last) for each run [first, last) of positions with one score.
    template <class Block>
    void blocks(int64_t n, Block&& block) const {
        for (int64_t first = 0; first < n;) {
            int64_t last = first + 1;
            const double here = value(first);
            while (last < n && value(last) == here) ++last;
            block(first, last);
            first = last;
        }
    }

  private:
    const double* score_ = nullptr;
    bool sorted_ = true;
    std::vector<Keyed> entries_, spare_;
};

// Calls place(entry, first, last) for every entry of a list: its value under `ties` is the mean
// over the positions [first, last).
template <class Place>
void each_place(const Order& order, int64_t n, Ties ties, Place&& place) {
    order.blocks(n, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p) {
            if (ties == Ties::average)
                place(order.entry(p), first, last);
            else if (ties == Ties::stable)
                place(order.entry(p), p, p + 1);
            else if (ties == Ties::best)
                place(order.entry(p), first, first + 1);
            else
                place(order.entry(p), last - 1, last);
        }
    });
}

}  // namespace rankwise::lists
