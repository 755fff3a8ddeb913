// Products with a feature matrix, dense or sparse by rows, in float64 whatever the storage.
//
// The score of a row depends on that row alone: sixteen partial sums by column modulo sixteen,
// added in one fixed order. A sparse row runs through the same sums (its zeros would add nothing),
// so it gets the same score as its dense form; `quick_scores`, for the products inside a solver,
// leaves that equality out where it costs time. Transposed products add up fixed blocks of rows,
// cut by the shape of the matrix and never by the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

// The sixteen partial sums p[c % 16] in the order that both kinds of rows use.
RANKWISE_INLINE double fold(const double* p) {
    double quarter[4];
    for (int l = 0; l < 4; ++l) quarter[l] = (p[l] + p[4 + l]) + (p[8 + l] + p[12 + l]);
    return (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
}

template <class T>
RANKWISE_INLINE double row_dot(const T* x, const double* w, int64_t d) {
    HalfLanes sums[4] = {};
    int64_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (int part = 0; part < 4; ++part) {
            HalfLanes a, b;
            load(x + j + 4 * part, a);
            load(w + j + 4 * part, b);
            sums[part] += a * b;
        }
    double p[16];
    std::memcpy(p, sums, sizeof p);
    for (; j < d; ++j) p[j & 15] += static_cast<double>(x[j]) * w[j];
    return fold(p);
}

// Row i of the matrix is row order[i] in memory; a null order is the one in memory.
template <class T>
struct DenseView {
    const T* X;
    int64_t d;
    const int64_t* order;
    RANKWISE_INLINE const T* row(int64_t i) const { return X + (order ? order[i] : i) * d; }
    RANKWISE_INLINE void prefetch(int64_t i) const {
        const T* x = row(i);
        for (int64_t j = 0; j < d; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
    }
};

template <class T>
RANKWISE_INLINE void dense_scores(const DenseView<T>& X, int64_t begin, int64_t end,
                                  const double* w, double* out) {
    for (int64_t i = begin; i < end; ++i) {
        if (X.order && i + 4 < end) X.prefetch(i + 4);
        out[i - begin] = row_dot(X.row(i), w, X.d);
    }
}

// sums += X^T z, eight rows at a time; rows whose factors are all zero are not read.
template <class T>
RANKWISE_INLINE void dense_transposed(const DenseView<T>& X, int64_t begin, int64_t end,
                                      const double* z, double* sums) {
    const int64_t d = X.d;
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
        const double* f = z + (i - begin);
        bool none = true;
        for (int r = 0; r < 8; ++r) none = none && f[r] == 0;
        if (none) continue;
        const T* x[8];
        for (int r = 0; r < 8; ++r) x[r] = X.row(i + r);
        // The next rows are fetched row by row, which eight short streams are not.
        for (int64_t ahead = i + 8; ahead < std::min(i + 16, end); ++ahead) X.prefetch(ahead);
        int64_t j = 0;
        for (; j + 4 <= d; j += 4) {
            HalfLanes row[8], total;
            for (int r = 0; r < 8; ++r) load(x[r] + j, row[r]);
            load(sums + j, total);
            total += ((row[0] * f[0] + row[1] * f[1]) + (row[2] * f[2] + row[3] * f[3])) +
                     ((row[4] * f[4] + row[5] * f[5]) + (row[6] * f[6] + row[7] * f[7]));
            store(total, sums + j);
        }
        for (; j < d; ++j)
            for (int r = 0; r < 8; ++r) sums[j] += static_cast<double>(x[r][j]) * f[r];
    }
    for (; i < end; ++i)
        for (int64_t j = 0; j < d && z[i - begin] != 0; ++j)
            sums[j] += static_cast<double>(X.row(i)[j]) * z[i - begin];
}

// Attributes for several instruction sets do not go well with templates: one plain function each.
RANKWISE_CLONES static void scores_of(DenseView<double> X, int64_t begin, int64_t end,
                                      const double* w, double* out) {
    dense_scores(X, begin, end, w, out);
}
RANKWISE_CLONES static void scores_of(DenseView<float> X, int64_t begin, int64_t end,
                                      const double* w, double* out) {
    dense_scores(X, begin, end, w, out);
}
RANKWISE_CLONES static void add_transposed_of(DenseView<double> X, int64_t begin, int64_t end,
                                              const double* z, double* sums) {
    dense_transposed(X, begin, end, z, sums);
}
RANKWISE_CLONES static void add_transposed_of(DenseView<float> X, int64_t begin, int64_t end,
                                              const double* z, double* sums) {
    dense_transposed(X, begin, end, z, sums);
}

// Where rows begin in memory if they lie side by side there, in whatever order; -1 else.
inline int64_t run_of(const int64_t* order, int64_t begin, int64_t end) {
    if (begin == end) return -1;
    const auto [low, high] = std::minmax_element(order + begin, order + end);
    return *high - *low + 1 == end - begin ? *low : -1;
}

// The rows of a feature matrix. Memory belongs to the caller.
class Rows {
  public:
    virtual ~Rows() = default;
    // out[i] = x_(begin + i) . w
    virtual void scores(int64_t begin, int64_t end, const double* w, double* out) const = 0;
    // The same up to rounding.
    virtual void quick_scores(int64_t begin, int64_t end, const double* w, double* out) const {
        scores(begin, end, w, out);
    }
    // Of the rows begin to end as they lie in memory.
    virtual void stored_scores(int64_t begin, int64_t end, const double* w, bool quick,
                               double* out) const = 0;
    // sums += sum of z[i] x_(begin + i)
    virtual void add_transposed(int64_t begin, int64_t end, const double* z,
                                double* sums) const = 0;
    // sums += sum of z[i] (x_(begin + i) - centre)^2, in a sparse matrix over the stored values
    // only, and stored[c] += sum of z[i] over the rows that store column c (null: the centre is 0).
    virtual void add_squares(int64_t begin, int64_t end, const double* z, const double* centre,
                             double* sums, double* stored) const = 0;
    // Sets varies[c] where column c takes more than one value inside some query.
    virtual void mark_varying(const int64_t* offsets, int64_t n_queries, uint8_t* varies) const = 0;
    int64_t n_rows = 0, n_columns = 0, n_stored = 0;
    bool sparse = false;
    const int64_t* permutation = nullptr;  // row i is permutation[i] in memory, where all are taken

    // Parts for transposed products: enough work in each, and their sums not larger than the data.
    int64_t n_blocks() const {
        const int64_t by_work = n_stored >> 16, by_memory = n_stored / (16 * n_columns + 1);
        return std::clamp<int64_t>(std::min(by_work, by_memory), 1, 64);
    }
};

template <class T>
class DenseRows final : public Rows {
  public:
    DenseRows(const T* X, const int64_t* order, int64_t n, int64_t d) : X_{X, d, order} {
        n_rows = n, n_columns = d, n_stored = n * d;
        permutation = run_of(order, 0, order ? n : 0) == 0 ? order : nullptr;
    }
    void stored_scores(int64_t begin, int64_t end, const double* w, bool,
                       double* out) const override {
        scores_of({X_.X, X_.d, nullptr}, begin, end, w, out);
    }
    void scores(int64_t begin, int64_t end, const double* w, double* out) const override {
        // The rows of a query mostly lie side by side in another order: memory is read once in its
        // own order, and the products that follow find the rows in cache.
        const int64_t first = X_.order ? run_of(X_.order, begin, end) : -1;
        if (first < 0) return scores_of(X_, begin, end, w, out);
        static thread_local std::vector<double> stored;
        stored.resize(end - begin);
        scores_of({X_.X, X_.d, nullptr}, first, first + end - begin, w, stored.data());
        for (int64_t i = begin; i < end; ++i) out[i - begin] = stored[X_.order[i] - first];
    }
    void add_transposed(int64_t begin, int64_t end, const double* z, double* sums) const override {
        add_transposed_of(X_, begin, end, z, sums);
    }
    void add_squares(int64_t begin, int64_t end, const double* z, const double* centre,
                     double* sums, double*) const override {
        for (int64_t i = begin; i < end; ++i) {
            const T* row = X_.row(i);
            for (int64_t j = 0; j < n_columns; ++j) {
                const double away = static_cast<double>(row[j]) - centre[j];
                sums[j] += z[i - begin] * away * away;
            }
        }
    }
    void mark_varying(const int64_t* offsets, int64_t n_queries, uint8_t* varies) const override {
        std::vector<int64_t> open(n_columns);
        std::iota(open.begin(), open.end(), 0);
        for (int64_t q = 0; q < n_queries && !open.empty(); ++q) {
            const int64_t size = offsets[q + 1] - offsets[q];
            const int64_t side = X_.order ? run_of(X_.order, offsets[q], offsets[q + 1]) : -1;
            const DenseView<T> X = {X_.X, X_.d, side < 0 ? X_.order : nullptr};
            const int64_t from = side < 0 ? offsets[q] : side;
            for (int64_t i = from + 1; i < from + size && !open.empty(); ++i) {
                const T *row = X.row(i), *first = X.row(from);
                const auto found = [&](int64_t j) { return varies[j] = row[j] != first[j]; };
                open.erase(std::remove_if(open.begin(), open.end(), found), open.end());
            }
        }
    }

  private:
    DenseView<T> X_;
};

template <class T, class I>
class SparseRows final : public Rows {
  public:
    SparseRows(const T* data, const I* columns, const I* starts, const int64_t* order, int64_t n,
               int64_t d)
        : data_(data), columns_(columns), starts_(starts), order_(order) {
        n_rows = n, n_columns = d, n_stored = n, sparse = true;
        for (int64_t i = 0; i < n; ++i) n_stored += starts_[row(i) + 1] - starts_[row(i)];
        permutation = run_of(order, 0, order ? n : 0) == 0 ? order : nullptr;
    }
    void stored_scores(int64_t begin, int64_t end, const double* w, bool quick,
                       double* out) const override {
        for (int64_t i = begin; i < end; ++i)
            out[i - begin] = quick ? quick_score(i, w) : score(i, w);
    }
    void scores(int64_t begin, int64_t end, const double* w, double* out) const override {
        in_memory_order(begin, end, out, [&](int64_t row) { return score(row, w); });
    }
    void quick_scores(int64_t begin, int64_t end, const double* w, double* out) const override {
        in_memory_order(begin, end, out, [&](int64_t row) { return quick_score(row, w); });
    }
    void add_transposed(int64_t begin, int64_t end, const double* z, double* sums) const override {
        for (int64_t i = begin; i < end; ++i) {
            const double factor = z[i - begin];
            if (order_ && i + 4 < end) prefetch(row(i + 4));
            if (factor == 0) continue;
            I k = starts_[row(i)];
            const I stop = starts_[row(i) + 1];
            for (; k + 4 <= stop; k += 4) {
                // The reads of four columns are under way before the first is added to. A column
                // that is stored twice is read again: the sums follow one another.
                const I a = columns_[k], b = columns_[k + 1], c = columns_[k + 2],
                        e = columns_[k + 3];
                const double va = data_[k] * factor, vb = data_[k + 1] * factor,
                             vc = data_[k + 2] * factor, ve = data_[k + 3] * factor;
                sums[a] += va;
                sums[b] += vb;
                sums[c] += vc;
                sums[e] += ve;
            }
            for (; k < stop; ++k) sums[columns_[k]] += static_cast<double>(data_[k]) * factor;
        }
    }
    void add_squares(int64_t begin, int64_t end, const double* z, const double* centre,
                     double* sums, double* stored) const override {
        for (int64_t i = begin; i < end; ++i)
            for (I k = starts_[row(i)]; k < starts_[row(i) + 1]; ++k) {
                const double x = static_cast<double>(data_[k]);
                const double away = stored ? x - centre[columns_[k]] : x;
                sums[columns_[k]] += z[i - begin] * away * away;
                if (stored) stored[columns_[k]] += z[i - begin];
            }
    }
    void mark_varying(const int64_t* offsets, int64_t n_queries, uint8_t* varies) const override {
        // A column is constant when it is stored in no row, or in every row with one value.
        struct Seen {
            int64_t query = -1, rows = 0;
            T value = 0;
        };
        std::vector<Seen> seen(n_columns);
        // A column of this query, or of the one before it that stores the column, is looked at.
        const auto close = [&](I column, const Seen& s) {
            if (s.query >= 0 && s.value != 0 && s.rows < offsets[s.query + 1] - offsets[s.query])
                varies[column] = 1;
        };
        for (int64_t q = 0; q < n_queries; ++q)
            for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i)
                for (I k = starts_[row(i)]; k < starts_[row(i) + 1]; ++k) {
                    if (varies[columns_[k]]) continue;
                    Seen& s = seen[columns_[k]];
                    if (s.query != q) {
                        close(columns_[k], s);
                        s = {q, 0, data_[k]};
                    }
                    ++s.rows;
                    if (s.value != data_[k]) varies[columns_[k]] = 1;
                }
        for (int64_t c = 0; c < n_columns; ++c) close(static_cast<I>(c), seen[c]);
    }

  private:
    int64_t row(int64_t i) const { return order_ ? order_[i] : i; }
    void prefetch(int64_t row) const {
        for (I k = starts_[row]; k < starts_[row + 1]; k += 64 / sizeof(T))
            __builtin_prefetch(data_ + k), __builtin_prefetch(columns_ + k);
    }
    // As in DenseRows: memory is read in its own order.
    template <class Score>
    void in_memory_order(int64_t begin, int64_t end, double* out, Score&& score_of) const {
        const int64_t first = order_ ? run_of(order_, begin, end) : -1;
        if (first < 0) {
            for (int64_t i = begin; i < end; ++i) out[i - begin] = score_of(row(i));
            return;
        }
        static thread_local std::vector<double> stored;
        stored.resize(end - begin);
        for (int64_t i = 0; i < end - begin; ++i) stored[i] = score_of(first + i);
        for (int64_t i = begin; i < end; ++i) out[i - begin] = stored[order_[i] - first];
    }
    double score(int64_t row, const double* w) const {
        double p[16] = {};
        for (I k = starts_[row]; k < starts_[row + 1]; ++k)
            p[columns_[k] & 15] += static_cast<double>(data_[k]) * w[columns_[k]];
        return fold(p);
    }
    // Four sums that do not wait for each other.
    double quick_score(int64_t row, const double* w) const {
        double p[4] = {};
        I k = starts_[row];
        const I stop = starts_[row + 1];
        for (; k + 4 <= stop; k += 4)
            for (int part = 0; part < 4; ++part)
                p[part] += static_cast<double>(data_[k + part]) * w[columns_[k + part]];
        for (; k < stop; ++k) p[0] += static_cast<double>(data_[k]) * w[columns_[k]];
        return (p[0] + p[1]) + (p[2] + p[3]);
    }
    const T* data_;
    const I *columns_, *starts_;
    const int64_t* order_;
};

// A product reads several numbers in the time of one elementary step, and solvers call it often:
// below about a millisecond of work waking another thread costs more than it brings.
inline int64_t pass_work(const Rows& X) { return X.n_stored / 16; }

inline void matvec(const Rows& X, const double* w, double* out, bool quick, int n_threads) {
    const int64_t chunk = 1024, n = X.n_rows;
    // Memory is read in its own order.
    std::vector<double> stored(X.permutation ? n : 0);
    parallel_for((n + chunk - 1) / chunk, pass_work(X), n_threads, [&](int64_t c) {
        const int64_t begin = c * chunk, end = std::min(begin + chunk, n);
        if (X.permutation)
            X.stored_scores(begin, end, w, quick, stored.data() + begin);
        else if (quick)
            X.quick_scores(begin, end, w, out + begin);
        else
            X.scores(begin, end, w, out + begin);
    });
    for (int64_t i = 0; X.permutation && i < n; ++i) out[i] = stored[X.permutation[i]];
}

// The sums of all blocks, added in the order of the blocks.
inline void add_up(const std::vector<double>& parts, int64_t n_parts, int64_t d, double* out) {
    std::fill(out, out + d, 0.0);
    for (int64_t b = 0; b < n_parts; ++b)
        for (int64_t j = 0; j < d; ++j) out[j] += parts[static_cast<size_t>(b * d + j)];
}

inline void transposed_matvec(const Rows& X, const double* z, double* out, int n_threads) {
    const int64_t blocks = X.n_blocks(), d = X.n_columns;
    std::vector<double> parts(static_cast<size_t>(blocks * d), 0.0);
    parallel_for(blocks, pass_work(X), n_threads, [&](int64_t b) {
        const int64_t begin = X.n_rows * b / blocks, end = X.n_rows * (b + 1) / blocks;
        X.add_transposed(begin, end, z + begin, parts.data() + b * d);
    });
    add_up(parts, blocks, d, out);
}

// out[c] = sum over all rows of z[i] (x_ic - centre[c])^2
inline void weighted_squares(const Rows& X, const double* z, const double* centre, double* out,
                             int n_threads) {
    const int64_t blocks = X.n_blocks(), d = X.n_columns;
    // Values that are not stored are as far from the centre as zero is.
    const bool away = X.sparse && std::any_of(centre, centre + d, [](double c) { return c != 0; });
    const int64_t width = away ? 2 * d : d;
    std::vector<double> parts(static_cast<size_t>(blocks * width), 0.0), sums(width);
    parallel_for(blocks, pass_work(X), n_threads, [&](int64_t b) {
        const int64_t begin = X.n_rows * b / blocks, end = X.n_rows * (b + 1) / blocks;
        double* part = parts.data() + b * width;
        X.add_squares(begin, end, z + begin, centre, part, away ? part + d : nullptr);
    });
    add_up(parts, blocks, width, sums.data());
    double total = 0;
    for (int64_t i = 0; i < X.n_rows && away; ++i) total += z[i];
    for (int64_t j = 0; j < d; ++j)
        out[j] = sums[j] + (away ? (total - sums[d + j]) * centre[j] * centre[j] : 0.0);
}

// Rows [a, a + 4) and columns [b, b + 8) of B^T B.
RANKWISE_CLONES static void gram_tile(const double* B, int64_t n, int64_t d, int64_t a, int64_t b,
                                      double* tile) {
    // Vectors of the width that machines have: wider ones would live in memory.
    HalfLanes left[4] = {}, right[4] = {};
    for (int64_t r = 0; r < n; ++r) {
        const double* x = B + r * d;
        HalfLanes first, second;
        load(x + b, first);
        load(x + b + 4, second);
        for (int i = 0; i < 4; ++i) {
            left[i] += first * x[a + i];
            right[i] += second * x[a + i];
        }
    }
    for (int i = 0; i < 4; ++i) {
        store(left[i], tile + 8 * i);
        store(right[i], tile + 8 * i + 4);
    }
}

// out (d x d) = B^T B for a row-major B (n x d). d must be a multiple of 8 (pad with zero columns).
// Rows are taken in chunks that stay in cache while all tiles of a group pass over them.
inline void gram(const double* B, int64_t n, int64_t d, double* out, int n_threads) {
    std::fill(out, out + d * d, 0.0);
    const int64_t chunk = std::max<int64_t>(16, 12 * 1024 / d), groups = 4;
    parallel_for(groups, n * d * d / 8, n_threads, [&](int64_t group) {
        double tile[32];
        for (int64_t r = 0; r < n; r += chunk)
            for (int64_t a = 4 * group; a < d; a += 4 * groups)
                for (int64_t b = a / 8 * 8; b < d; b += 8) {
                    gram_tile(B + r * d, std::min(chunk, n - r), d, a, b, tile);
                    for (int64_t i = 0; i < 4; ++i)
                        for (int64_t j = 0; j < 8; ++j) out[(a + i) * d + b + j] += tile[i * 8 + j];
                }
    });
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < i; ++j) out[i * d + j] = out[j * d + i];
}

// In place A = L L^T, L in the lower triangle; false when A is not positive definite.
inline bool cholesky(double* A, int64_t d) {
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            const double rest = A[i * d + j] - row_dot(A + i * d, A + j * d, j);
            if (i != j) {
                A[i * d + j] = rest / A[j * d + j];
            } else {
                if (!(rest > 0)) return false;
                A[i * d + i] = std::sqrt(rest);
            }
        }
    return true;
}

// x = (L L^T)^-1 x
inline void cholesky_solve(const double* L, int64_t d, double* x) {
    for (int64_t i = 0; i < d; ++i) {
        x[i] = (x[i] - row_dot(L + i * d, x, i)) / L[i * d + i];
    }
    for (int64_t i = d - 1; i >= 0; --i) {
        x[i] /= L[i * d + i];
        for (int64_t k = 0; k < i; ++k) x[k] -= L[i * d + k] * x[i];
    }
}

// Coordinate descent on the model  g.p + p.H.p / 2 + sum of l_j |x_j + p_j|  of a step p, from the
// step given, until no coordinate moves by more than `exactness` in the metric of H's diagonal (or
// `rounds` sweeps). H (d x d) must be symmetric with a positive diagonal.
inline void shrink_step(const double* H, const double* g, const double* x, const double* l,
                        int64_t d, double exactness, int64_t rounds, double* p) {
    std::vector<double> slope(g, g + d);  // g + H p
    for (int64_t j = 0; j < d; ++j)
        for (int64_t i = 0; i < d && p[j] != 0; ++i) slope[i] += H[j * d + i] * p[j];
    for (int64_t round = 0; round < rounds; ++round) {
        double largest = 0;
        for (int64_t j = 0; j < d; ++j) {
            const double h = H[j * d + j], aim = x[j] + p[j] - slope[j] / h, cut = l[j] / h;
            // An exact -x_j where the coordinate becomes 0.
            const double to = aim > cut ? aim - cut - x[j] : aim < -cut ? aim + cut - x[j] : -x[j];
            const double move = to - p[j];
            if (move == 0) continue;
            p[j] = to;
            for (int64_t i = 0; i < d; ++i) slope[i] += H[j * d + i] * move;
            largest = std::max(largest, std::abs(move) * std::sqrt(h));
        }
        if (largest <= exactness) break;
    }
}

}  // namespace rankwise
