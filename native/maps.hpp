// Kernel functions and cosine features between the rows of a matrix and a fixed set of points.
//
// Each entry is a sum over the features (of products, squared or absolute differences, ...) and a
// function of that sum. The sum runs over the features in order, for eight points (float: sixteen)
// and six rows at a time, all in registers. So an entry depends on its row and its point alone:
// equal rows get equal bits wherever they stand and for any number of threads. (BLAS promises no
// such thing: what it does with a row may depend on the rows beside it.) The function is applied to
// a row's entries while they are in the cache.
//
// Here multiplications and additions are fused where the machine can (twice as fast for products),
// so another kind of machine may round differently; one machine never does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "vecmath.hpp"

namespace rankwise {

constexpr int kRows = 6;                  // rows summed at a time
constexpr int64_t kTileRows = 192;        // rows packed at a time
constexpr int64_t kDepth = 512;           // features summed at a time
constexpr int64_t kGroupBytes = 1 << 17;  // points worked on at a time: half of a small L2 cache

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(RANKWISE_NO_CLONES)
#define RANKWISE_FUSED_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define RANKWISE_FUSED_CLONES
#endif

// What is summed over the features.
enum class Sum { kProduct, kSquare, kAbsolute, kChiSquare };
// What is made of the sum t.
enum class Shape { kNone, kPolynomial, kPower, kMatern1, kMatern3, kMatern5, kCosine, kCosineSine };

// Shape and its constants: (scale t + shift)^degree, 2^(-scale t), Matern functions of
// r = sqrt(scale t), scale cos(2 pi (t + offset_j)) and the pair of cosine and sine.
template <class T>
struct Finish {
    Shape shape = Shape::kNone;
    T scale = 1, shift = 0;
    int degree = 1;
    const T* offset = nullptr;
};

// The points in panels of two vectors' width, feature by feature; the last panel is
// filled up with zeros.
template <class T>
class Points {
  public:
    static constexpr int64_t kWidth = 2 * Wide<T>::kLanes;

    Points(const double* points, int64_t n, int64_t d)
        : n_(n), d_(d), panels_((n + kWidth - 1) / kWidth * kWidth * d, T(0)) {
        for (int64_t j = 0; j < n; ++j)
            for (int64_t k = 0; k < d; ++k)
                panels_[(j / kWidth * d + k) * kWidth + j % kWidth] =
                    static_cast<T>(points[j * d + k]);
    }
    int64_t n() const { return n_; }
    int64_t d() const { return d_; }
    const T* panel(int64_t p) const { return panels_.data() + p * d_ * kWidth; }

  private:
    int64_t n_, d_;
    std::vector<T> panels_;
};

template <Sum kind, class V>
RANKWISE_INLINE void add_term(const V& x, const V& b, V& sum) {
    if constexpr (kind == Sum::kProduct) {
        sum += x * b;
    } else if constexpr (kind == Sum::kSquare) {
        const V t = x - b;
        sum += t * t;
    } else if constexpr (kind == Sum::kAbsolute) {
        const V t = x - b, negative = b - x;
        sum += t < 0 ? negative : t;
    } else {
        const V t = x - b, total = x + b, zero = {};
        sum += total > 0 ? t * t / total : zero;
    }
}

// Adds to sums[r * width + lane], of six rows, packed feature by feature, and one panel: twelve
// vectors of sums, which with the two of the panel and a row's number fill sixteen registers.
template <Sum kind, class T>
RANKWISE_INLINE void panel_sums(const T* rows, const T* panel, int64_t d, T* sums) {
    typedef typename Wide<T>::Vec V;
    constexpr int lanes = Wide<T>::kLanes;
    V s0[kRows], s1[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
        std::memcpy(&s0[r], sums + r * 2 * lanes, sizeof(V));
        std::memcpy(&s1[r], sums + r * 2 * lanes + lanes, sizeof(V));
    }
    for (int64_t k = 0; k < d; ++k) {
        V b0, b1;
        std::memcpy(&b0, panel + k * 2 * lanes, sizeof b0);
        std::memcpy(&b1, panel + k * 2 * lanes + lanes, sizeof b1);
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
            const V x = rows[k * kRows + r] - V{};
            add_term<kind>(x, b0, s0[r]);
            add_term<kind>(x, b1, s1[r]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
        std::memcpy(sums + r * 2 * lanes, &s0[r], sizeof(V));
        std::memcpy(sums + r * 2 * lanes + lanes, &s1[r], sizeof(V));
    }
}

// Which numbers of a point can differ from 0: all, or those up to its own place (the columns of an
// upper triangular matrix).
enum class Fill { kAll, kUpper };

// The sums of one packed tile of rows and the panels [first, last), into out (row length `stride`).
template <Sum kind, class T>
RANKWISE_INLINE void tile_sums(const T* packed, int64_t n_rows, const Points<T>& points,
                               int64_t first, int64_t last, Fill fill, T* out, int64_t stride) {
    constexpr int64_t width = Points<T>::kWidth;
    const int64_t d = points.d();
    T sums[kRows * width];
    for (int64_t from = 0; from == 0 || from < d; from += kDepth)
        for (int64_t i = 0; i < n_rows; i += kRows)
            for (int64_t p = first; p < last; ++p) {
                const int64_t limit = fill == Fill::kAll ? d : std::min(d, (p + 1) * width);
                const int64_t depth = std::min(kDepth, limit - from);
                if (from > 0 && depth <= 0) continue;
                const size_t bytes = sizeof(T) * std::min(width, points.n() - p * width);
                const int64_t here = std::min<int64_t>(kRows, n_rows - i);
                T* to = out + i * stride + p * width;
                if (from == 0)
                    std::memset(sums, 0, sizeof sums);
                else
                    for (int64_t r = 0; r < here; ++r)
                        std::memcpy(sums + r * width, to + r * stride, bytes);
                panel_sums<kind>(packed + i * d + from * kRows, points.panel(p) + from * width,
                                 depth, sums);
                for (int64_t r = 0; r < here; ++r)
                    std::memcpy(to + r * stride, sums + r * width, bytes);
            }
}

// Attributes for several instruction sets do not go well with templates: one plain function each.
#define RANKWISE_SUMS(name, kind, T)                                                            \
    RANKWISE_FUSED_CLONES static void name(const T* packed, int64_t n, const Points<T>& points, \
                                           int64_t first, int64_t last, Fill fill, T* out,      \
                                           int64_t stride) {                                    \
        tile_sums<kind>(packed, n, points, first, last, fill, out, stride);                     \
    }
RANKWISE_SUMS(sums_of_products, Sum::kProduct, double)
RANKWISE_SUMS(sums_of_products, Sum::kProduct, float)
RANKWISE_SUMS(sums_of_squares, Sum::kSquare, double)
RANKWISE_SUMS(sums_of_squares, Sum::kSquare, float)
RANKWISE_SUMS(sums_of_absolutes, Sum::kAbsolute, double)
RANKWISE_SUMS(sums_of_absolutes, Sum::kAbsolute, float)
RANKWISE_SUMS(sums_of_chi_squares, Sum::kChiSquare, double)
RANKWISE_SUMS(sums_of_chi_squares, Sum::kChiSquare, float)
#undef RANKWISE_SUMS

template <class T>
void sums_of_tile(Sum kind, const T* packed, int64_t n, const Points<T>& points, int64_t first,
                  int64_t last, Fill fill, T* out, int64_t stride) {
    switch (kind) {
        case Sum::kProduct:
            return sums_of_products(packed, n, points, first, last, fill, out, stride);
        case Sum::kSquare:
            return sums_of_squares(packed, n, points, first, last, fill, out, stride);
        case Sum::kAbsolute:
            return sums_of_absolutes(packed, n, points, first, last, fill, out, stride);
        case Sum::kChiSquare:
            return sums_of_chi_squares(packed, n, points, first, last, fill, out, stride);
    }
}

// x = body(x, j) for whole vectors of the n numbers from x on; the last one through a copy.
template <class T, class Body>
RANKWISE_INLINE void each_vector(T* x, int64_t n, Body&& body) {
    typedef typename Wide<T>::Vec V;
    constexpr int64_t width = Wide<T>::kLanes;
    for (int64_t j = 0; j < n; j += width) {
        V v = {};
        const size_t bytes = sizeof(T) * std::min(width, n - j);
        if (bytes == sizeof v) {
            std::memcpy(&v, x + j, sizeof v);
            body(v, j);
            std::memcpy(x + j, &v, sizeof v);
        } else {
            std::memcpy(&v, x + j, bytes);
            body(v, j);
            std::memcpy(x + j, &v, bytes);
        }
    }
}

// exp(-r) as a power of two.
constexpr double kLog2E = 1.4426950408889634;

template <class T>
RANKWISE_INLINE void matern(T* x, int64_t n, T scale, Shape shape) {
    typedef typename Wide<T>::Vec V;
    each_vector(x, n, [=](V& t, int64_t) {
        V r = t * scale, decay, factor = V{} + T(1);
        for (int l = 0; l < Wide<T>::kLanes; ++l) r[l] = std::sqrt(r[l]);
        if (shape == Shape::kMatern3) factor = T(1) + r;
        if (shape == Shape::kMatern5) factor = T(1) + r + r * r * T(1.0 / 3.0);
        const V y = r * T(-kLog2E);
        power_of_two<T>(y, decay);
        const V zero = {}, value = factor * decay;
        t = decay > 0 ? value : zero;  // not infinity times zero
    });
}

template <class T>
RANKWISE_INLINE void finish_row(const Finish<T>& f, T* x, int64_t n, T* second, const T* offset) {
    typedef typename Wide<T>::Vec V;
    const T scale = f.scale, shift = f.shift;
    const int degree = f.degree;
    switch (f.shape) {
        case Shape::kNone:
            return;
        case Shape::kPolynomial:
            return each_vector(x, n, [=](V& t, int64_t) {
                const V base = t * scale + shift;
                t = base;
                for (int power = 1; power < degree; ++power) t *= base;
            });
        case Shape::kPower:
            return each_vector(x, n, [=](V& t, int64_t) {
                const V y = t * -scale;
                power_of_two<T>(y, t);
            });
        case Shape::kMatern1:
        case Shape::kMatern3:
        case Shape::kMatern5:
            return matern(x, n, scale, f.shape);
        case Shape::kCosine:
            return each_vector(x, n, [=](V& t, int64_t j) {
                V b = {};
                std::memcpy(&b, offset + j, sizeof(T) * std::min<int64_t>(Wide<T>::kLanes, n - j));
                const V turns = t + b;
                cos_of_turns<T>(turns, t);
                t *= scale;
            });
        case Shape::kCosineSine:
            return each_vector(x, n, [=](V& t, int64_t j) {
                V sine;
                sin_of_turns<T>(t, sine);
                cos_of_turns<T>(t, t);
                t *= scale;
                sine *= scale;
                std::memcpy(second + j, &sine,
                            sizeof(T) * std::min<int64_t>(Wide<T>::kLanes, n - j));
            });
    }
}

RANKWISE_FUSED_CLONES static void finish(const Finish<double>& f, double* x, int64_t n,
                                         double* second, const double* offset) {
    finish_row(f, x, n, second, offset);
}
RANKWISE_FUSED_CLONES static void finish(const Finish<float>& f, float* x, int64_t n, float* second,
                                         const float* offset) {
    finish_row(f, x, n, second, offset);
}

// Rows [begin, end) of X against all points; `out` begins at row `begin` (and may be X itself).
// With the pair of cosine and sine, the sines follow the cosines in each row.
template <class T, class S>
void kernel_tile(const S* X, int64_t begin, int64_t end, const Points<T>& points, Sum kind,
                 Fill fill, const Finish<T>& f, T* out, std::vector<T>& packed) {
    const int64_t d = points.d(), n = points.n(), n_rows = end - begin;
    const int64_t stride = f.shape == Shape::kCosineSine ? 2 * n : n;
    constexpr int64_t width = Points<T>::kWidth;
    const int64_t padded = (n_rows + kRows - 1) / kRows * kRows;
    packed.assign(static_cast<size_t>(padded * d), T(0));
    for (int64_t i = 0; i < n_rows; ++i)
        for (int64_t k = 0; k < d; ++k)
            packed[(i / kRows * d + k) * kRows + i % kRows] =
                static_cast<T>(X[(begin + i) * d + k]);
    const int64_t n_panels = (n + width - 1) / width;
    const int64_t panel_bytes = std::min(d, kDepth) * width * static_cast<int64_t>(sizeof(T));
    const int64_t group = std::max<int64_t>(1, kGroupBytes / std::max<int64_t>(panel_bytes, 1));
    for (int64_t first = 0; first < n_panels; first += group) {
        const int64_t last = std::min(first + group, n_panels);
        sums_of_tile(kind, packed.data(), n_rows, points, first, last, fill, out, stride);
        const int64_t from = first * width, here = std::min(last * width, n) - from;
        for (int64_t i = 0; i < n_rows; ++i) {
            T* row = out + i * stride + from;
            finish(f, row, here, row + n, f.offset ? f.offset + from : nullptr);
        }
    }
}

template <class T, class S>
void kernel_matrix(const S* X, int64_t n_rows, const Points<T>& points, Sum kind, Fill fill,
                   const Finish<T>& f, T* out, int n_threads) {
    const int64_t stride = points.n() * (f.shape == Shape::kCosineSine ? 2 : 1);
    const int64_t tiles = (n_rows + kTileRows - 1) / kTileRows;
    parallel_for(tiles, n_rows * points.n() * (points.d() + 8), n_threads, [&](int64_t tile) {
        thread_local std::vector<T> packed;
        const int64_t begin = tile * kTileRows, end = std::min(begin + kTileRows, n_rows);
        kernel_tile(X, begin, end, points, kind, fill, f, out + begin * stride, packed);
    });
}

}  // namespace rankwise
