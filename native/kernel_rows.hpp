// What kernels are made of, between all rows of two matrices: inner products, squared and absolute
// distances, the chi-squared distance. Each number depends on its two rows alone (sixteen partial
// sums in one fixed order), so equal rows get equal numbers wherever they stand, and distances of
// equal rows are exactly 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "linalg.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

enum class Between { product, squares, absolute, chi_squared };

template <Between what>
RANKWISE_INLINE void add_terms(const HalfLanes& a, const HalfLanes& b, HalfLanes& sum) {
    if constexpr (what == Between::product) {
        sum += a * b;
    } else {
        const HalfLanes away = a - b;
        if constexpr (what == Between::squares) sum += away * away;
        if constexpr (what == Between::absolute) sum += away < 0 ? -away : away;
        if constexpr (what == Between::chi_squared) {
            const HalfLanes total = a + b, one = {1, 1, 1, 1};
            sum += away * away / (total > 0 ? total : one);  // 0 / 1 where both are 0
        }
    }
}

template <Between what, class T>
RANKWISE_INLINE double between(const T* x, const T* y, int64_t d) {
    HalfLanes sums[4] = {};
    int64_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (int part = 0; part < 4; ++part) {
            HalfLanes a, b;
            load(x + j + 4 * part, a);
            load(y + j + 4 * part, b);
            add_terms<what>(a, b, sums[part]);
        }
    // The rest in lanes as well; zeros beyond the end add nothing.
    for (int part = 0; j < d; ++part, j += 4) {
        HalfLanes a = {}, b = {};
        for (int64_t l = 0; l < 4 && j + l < d; ++l) a[l] = x[j + l], b[l] = y[j + l];
        add_terms<what>(a, b, sums[part]);
    }
    double p[16];
    std::memcpy(p, sums, sizeof p);
    return fold(p);
}

template <class T>
RANKWISE_INLINE void row_between_any(Between what, const T* x, const T* Y, int64_t n, int64_t d,
                                     double* out) {
    switch (what) {
        case Between::product:
            for (int64_t i = 0; i < n; ++i) out[i] = between<Between::product>(x, Y + i * d, d);
            break;
        case Between::squares:
            for (int64_t i = 0; i < n; ++i) out[i] = between<Between::squares>(x, Y + i * d, d);
            break;
        case Between::absolute:
            for (int64_t i = 0; i < n; ++i) out[i] = between<Between::absolute>(x, Y + i * d, d);
            break;
        case Between::chi_squared:
            for (int64_t i = 0; i < n; ++i) out[i] = between<Between::chi_squared>(x, Y + i * d, d);
    }
}
RANKWISE_CLONES static void row_between(Between what, const double* x, const double* Y, int64_t n,
                                        int64_t d, double* out) {
    row_between_any(what, x, Y, n, d, out);
}

// out (n_x x n_y). Tiles of Y stay in cache while the rows of a block of X pass over them.
inline void rows_between(Between what, const double* X, int64_t n_x, const double* Y, int64_t n_y,
                         int64_t d, double* out, int n_threads) {
    const int64_t rows = 64,
                  tile = std::max<int64_t>(16, 24 * 1024 / (8 * std::max<int64_t>(d, 1)));
    parallel_for((n_x + rows - 1) / rows, n_x * n_y * (d / 4 + 1), n_threads, [&](int64_t block) {
        const int64_t last = std::min(n_x, (block + 1) * rows);
        for (int64_t t = 0; t < n_y; t += tile)
            for (int64_t i = block * rows; i < last; ++i)
                row_between(what, X + i * d, Y + t * d, std::min(tile, n_y - t), d,
                            out + i * n_y + t);
    });
}

}  // namespace rankwise
