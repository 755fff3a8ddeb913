// Content hashes of rows, used to put the documents of a query into an order that does not depend
// on how the file stored them.
#pragma once

#include <cstdint>
#include <cstring>

#include "parallel.hpp"

namespace rankwise {

inline uint64_t mix(uint64_t h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;
    return h;
}

// Bits of a value such that equal values have equal bits: one zero, one NaN.
inline uint64_t canonical_bits(double value) {
    if (value == 0.0) return 0;
    if (value != value) return 0x7ff8000000000000ULL;
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Zeros are passed over and every other value is hashed with its column, so that a dense and a
// sparse row with the same values have the same hash.
inline uint64_t hash_value(uint64_t h, uint64_t column, double value) {
    if (value == 0.0) return h;
    return h + mix(canonical_bits(value) ^ mix(column + 0x9e3779b97f4a7c15ULL));
}

template <class T>
void hash_rows_dense(const T* X, int64_t n_rows, int64_t n_columns, uint64_t* out, int n_threads) {
    parallel_for(n_rows, n_rows * n_columns, n_threads, [=](int64_t i) {
        uint64_t h = 0;
        const T* row = X + i * n_columns;
        for (int64_t j = 0; j < n_columns; ++j)
            h = hash_value(h, static_cast<uint64_t>(j), static_cast<double>(row[j]));
        out[i] = mix(h);
    });
}

template <class T, class I>
void hash_rows_csr(const T* data, const I* columns, const I* starts, int64_t n_rows, uint64_t* out,
                   int n_threads) {
    const int64_t n_values = n_rows > 0 ? static_cast<int64_t>(starts[n_rows]) : 0;
    parallel_for(n_rows, n_values, n_threads, [=](int64_t i) {
        uint64_t h = 0;
        for (I p = starts[i]; p < starts[i + 1]; ++p)
            h = hash_value(h, static_cast<uint64_t>(columns[p]), static_cast<double>(data[p]));
        out[i] = mix(h);
    });
}

}  // namespace rankwise
