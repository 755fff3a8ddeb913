// Content hashes of rows, used to put the documents of a query into an order that does not depend
// on how the file stored them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

inline uint64_t mix(uint64_t h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;
    return h;
}

// Bits of a value such that equal values other than zero have equal bits: one NaN.
inline uint64_t canonical_bits(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7ff8000000000000ULL : bits;
}

// What a column adds to the bits of its values before they are mixed.
inline uint64_t column_key(int64_t column) {
    return mix(static_cast<uint64_t>(column) + 0x9e3779b97f4a7c15ULL);
}

// Zeros are passed over and every other value is hashed with its column, so that a dense and a
// sparse row with the same values have the same hash.
inline uint64_t hash_value(uint64_t key, double value) {
    // No branch: half of the values of real features are zeros in no order.
    const uint64_t hash = mix(canonical_bits(value) ^ key);
    return hash & (uint64_t{0} - static_cast<uint64_t>(value != 0.0));
}

typedef uint64_t HalfWords __attribute__((vector_size(32)));  // four words

// The sum of the hashes of a row's values, four at a time: the same words as `hash_value`.
template <class T>
RANKWISE_INLINE uint64_t hash_row_any(const T* row, const uint64_t* keys, int64_t n) {
    HalfWords sums = {};
    const HalfWords nan = HalfWords{} + 0x7ff8000000000000ULL;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        HalfLanes value;
        load(row + j, value);
        HalfWords key, h;
        std::memcpy(&key, keys + j, sizeof key);
        std::memcpy(&h, &value, sizeof h);
        h = (value != value ? nan : h) ^ key;
        h ^= h >> 33;
        h *= 0xff51afd7ed558ccdULL;
        h ^= h >> 33;
        h *= 0xc4ceb9fe1a85ec53ULL;
        h ^= h >> 33;
        sums += value != 0 ? h : HalfWords{};
    }
    uint64_t total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (; j < n; ++j) total += hash_value(keys[j], static_cast<double>(row[j]));
    return total;
}
RANKWISE_CLONES static uint64_t hash_row(const double* row, const uint64_t* keys, int64_t n) {
    return hash_row_any(row, keys, n);
}
RANKWISE_CLONES static uint64_t hash_row(const float* row, const uint64_t* keys, int64_t n) {
    return hash_row_any(row, keys, n);
}

template <class T>
void hash_rows_dense(const T* X, int64_t n_rows, int64_t n_columns, uint64_t* out, int n_threads) {
    std::vector<uint64_t> keys(n_columns);
    for (int64_t j = 0; j < n_columns; ++j) keys[j] = column_key(j);
    parallel_for(n_rows, n_rows * n_columns, n_threads, [&](int64_t i) {
        out[i] = mix(hash_row(X + i * n_columns, keys.data(), n_columns));
    });
}

template <class T, class I>
void hash_rows_csr(const T* data, const I* columns, const I* starts, int64_t n_rows, uint64_t* out,
                   int n_threads) {
    const int64_t n_values = n_rows > 0 ? static_cast<int64_t>(starts[n_rows]) : 0;
    parallel_for(n_rows, n_values, n_threads, [=](int64_t i) {
        uint64_t h = 0;
        for (I p = starts[i]; p < starts[i + 1]; ++p)
            h += hash_value(column_key(columns[p]), static_cast<double>(data[p]));
        out[i] = mix(h);
    });
}

// Rows of the given queries, one query after the other, each in the order of (hash, content) and,
// where both are equal, of memory. `out` has room for all of them.
inline void sort_rows(const uint64_t* hash, const uint64_t* content, const int64_t* offsets,
                      const int64_t* queries, int64_t n_queries, int64_t* out, int n_threads) {
    std::vector<int64_t> first(n_queries + 1, 0);
    for (int64_t p = 0; p < n_queries; ++p)
        first[p + 1] = first[p] + offsets[queries[p] + 1] - offsets[queries[p]];
    parallel_for(n_queries, first[n_queries] * 10, n_threads, [&](int64_t p) {
        static thread_local std::vector<std::pair<std::pair<uint64_t, uint64_t>, int64_t>> keys;
        keys.clear();
        for (int64_t i = offsets[queries[p]]; i < offsets[queries[p] + 1]; ++i)
            keys.push_back({{hash[i], content[i]}, i});
        std::sort(keys.begin(), keys.end());
        for (size_t i = 0; i < keys.size(); ++i) out[first[p] + i] = keys[i].second;
    });
}

}  // namespace rankwise
