// Least-squares fits in order: pool adjacent violators, weighted, over many lists at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

// A block of pooled values: their weighted sum and their weight, so that a merge is one addition.
typedef double Pooled __attribute__((vector_size(16)));
typedef int64_t PooledMask __attribute__((vector_size(16)));

// On noise every comparison is a coin that a processor cannot predict, and a wrong guess costs more
// than all the arithmetic of a step. So a step has no branch: it either merges the current block
// with the one before or lays it down and takes the next value. Four lists walk abreast to fill the
// time that one step waits for the last; a long list is cut into pieces that are pooled the same
// way, and the pieces' blocks are pooled once more (pooling is associative).
constexpr int kAbreast = 4;
constexpr int64_t kPiece = 1024;  // values of a piece, and the longest list that walks abreast
constexpr int kSteps = 16;        // between looks at who has arrived

struct Walker {
    // Values, then kSteps times infinity, which never merges; blocks and where each ends.
    Pooled value[kPiece + kSteps + 1], block[kPiece + kSteps + 2];
    int64_t end[kPiece + kSteps + 2];
    int64_t n, next, top;  // top: the block last laid down; block 0 is minus infinity
    Pooled current;

    void begin(const double* y, const double* w, int64_t count) {
        n = count;
        for (int64_t i = 0; i < n; ++i)
            value[i] = w != nullptr ? Pooled{y[i] * w[i], w[i]} : Pooled{y[i], 1.0};
        for (int i = 0; i <= kSteps; ++i) value[n + i] = Pooled{HUGE_VAL, 1.0};
        block[0] = Pooled{-HUGE_VAL, 1.0};
        current = value[0];
        next = 1;
        top = 0;
    }

    // Means are compared by cross products; only a strict violation merges.
    __attribute__((always_inline)) void step() {
        const Pooled before = block[top], merged = current + before, fresh = value[next];
        const int64_t merge =
            -static_cast<int64_t>(before[0] * current[1] > current[0] * before[1]);
        block[top + 1] = current;
        end[top + 1] = next;
        const PooledMask mask = {merge, merge};
        current = (Pooled)(((PooledMask)merged & mask) | ((PooledMask)fresh & ~mask));
        top += 1 + 2 * merge;
        next += 1 + merge;
    }

    // Whether all values are laid down; takes back the infinities that came after.
    bool arrived() {
        if (next <= n) return false;
        while (end[top] > n) --top;
        current = value[n];
        next = n + 1;
        return true;
    }
};

template <int count>
inline void walk(Walker* walkers) {
    for (bool all = false; !all;) {
        for (int s = 0; s < kSteps; ++s)
            for (int k = 0; k < count; ++k) walkers[k].step();
        all = true;
        for (int k = 0; k < count; ++k) all &= walkers[k].arrived();
    }
}

inline void walk_any(Walker* walkers, int count) {
    if (count == kAbreast) return walk<kAbreast>(walkers);
    for (int k = 0; k < count; ++k) walk<1>(walkers + k);
}

// Fitted values from blocks first..last. A value alone in its block is itself, to the last bit, and
// rounding never breaks the order.
inline void write_blocks(const Pooled* block, const int64_t* end, int64_t count, const double* y,
                         double* out) {
    int64_t i = 0;
    for (int64_t b = 0; b < count; ++b) {
        double value = end[b] == i + 1 ? y[i] : block[b][0] / block[b][1];
        if (i > 0) value = std::max(value, out[i - 1]);
        for (; i < end[b]; ++i) out[i] = value;
    }
}

struct Blocks {
    std::vector<Walker> walkers{kAbreast};
    std::vector<Pooled> block;
    std::vector<int64_t> end;
};

// A list longer than a piece. `out` may be `y`.
inline void fit_long(const double* y, const double* w, int64_t n, double* out, Blocks& blocks,
                     int n_threads) {
    const int64_t n_pieces = (n + kPiece - 1) / kPiece;
    const int64_t n_groups = (n_pieces + kAbreast - 1) / kAbreast;
    std::vector<std::vector<Pooled>> block(n_pieces);
    std::vector<std::vector<int64_t>> end(n_pieces);
    parallel_for(n_groups, n * 4, n_threads, [&](int64_t g) {
        static thread_local std::vector<Walker> walkers(kAbreast);
        const int64_t first = g * kAbreast, last = std::min(n_pieces, first + kAbreast);
        for (int64_t p = first; p < last; ++p) {
            const int64_t from = p * kPiece;
            walkers[p - first].begin(y + from, w != nullptr ? w + from : nullptr,
                                     std::min(kPiece, n - from));
        }
        walk_any(walkers.data(), static_cast<int>(last - first));
        for (int64_t p = first; p < last; ++p) {
            const Walker& k = walkers[p - first];
            block[p].assign(k.block + 1, k.block + k.top + 1);
            end[p].assign(k.end + 1, k.end + k.top + 1);
        }
    });
    auto& joined = blocks.block;
    auto& ends = blocks.end;
    joined.clear();
    ends.clear();
    for (int64_t p = 0; p < n_pieces; ++p) {
        const int64_t from = p * kPiece;
        for (size_t b = 0; b < block[p].size(); ++b) {
            Pooled current = block[p][b];
            while (!joined.empty() &&
                   joined.back()[0] * current[1] > current[0] * joined.back()[1]) {
                current += joined.back();
                joined.pop_back();
                ends.pop_back();
            }
            joined.push_back(current);
            ends.push_back(from + end[p][b]);
        }
    }
    write_blocks(joined.data(), ends.data(), static_cast<int64_t>(joined.size()), y, out);
}

inline void fit_in_order(const double* y, const double* w, int64_t n, double* out, Blocks& blocks) {
    if (n == 0) return;
    if (n > kPiece) return fit_long(y, w, n, out, blocks, 1);
    Walker& k = blocks.walkers[0];
    k.begin(y, w, n);
    walk<1>(&k);
    write_blocks(k.block + 1, k.end + 1, k.top, y, out);
}

// Each list by itself. `out` may be `y`.
inline void fit_lists_in_order(const double* y, const double* w, const int64_t* offsets,
                               int64_t n_lists, double* out, int n_threads) {
    if (n_lists == 1) {
        static thread_local Blocks blocks;
        if (offsets[1] > kPiece)
            fit_long(y, w, offsets[1], out, blocks, n_threads);
        else
            fit_in_order(y, w, offsets[1], out, blocks);
        return;
    }
    const int64_t n_groups = (n_lists + kAbreast - 1) / kAbreast;
    parallel_for(n_groups, offsets[n_lists] * 4, n_threads, [=](int64_t g) {
        static thread_local Blocks blocks;
        const int64_t last = std::min(n_lists, (g + 1) * kAbreast);
        int64_t lists[kAbreast];
        int count = 0;
        for (int64_t q = g * kAbreast; q < last; ++q) {
            const int64_t from = offsets[q], n = offsets[q + 1] - from;
            const double* weight = w != nullptr ? w + from : nullptr;
            if (n > kPiece) {
                fit_long(y + from, weight, n, out + from, blocks, 1);
            } else if (n > 0) {
                blocks.walkers[count].begin(y + from, weight, n);
                lists[count++] = from;
            }
        }
        walk_any(blocks.walkers.data(), count);
        for (int k = 0; k < count; ++k) {
            const Walker& walker = blocks.walkers[k];
            write_blocks(walker.block + 1, walker.end + 1, walker.top, y + lists[k],
                         out + lists[k]);
        }
    });
}

}  // namespace rankwise
