// Least-squares fits in order: pool adjacent violators, weighted, over many lists at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

// Blocks of equal fitted values, as sums so that a merge is two additions: block b ends before the
// position end[b] and its value is sum[b] / weight[b].
struct Blocks {
    std::vector<double> sum, weight;
    std::vector<int64_t> end;

    void make_room(int64_t n) {
        if (static_cast<int64_t>(sum.size()) < n) {
            sum.resize(n);
            weight.resize(n);
            end.resize(n);
        }
    }
};

// The blocks of the nondecreasing fit to y; returns their number. Means are compared by cross
// products. Only a strict violation merges, so a list already in order comes back bit for bit.
template <bool weighted>
inline int64_t pool(const double* y, const double* w, int64_t n, Blocks& blocks) {
    blocks.make_room(n);
    double *sum = blocks.sum.data(), *weight = blocks.weight.data();
    int64_t *end = blocks.end.data(), last = -1;
    for (int64_t i = 0; i < n;) {
        double mass = weighted ? w[i] : 1.0, total = weighted ? y[i] * mass : y[i];
        ++i;
        const auto above = [&] { return last >= 0 && sum[last] * mass > total * weight[last]; };
        if (above()) {
            do {
                total += sum[last];
                mass += weight[last--];
            } while (above());
            // What follows and lies below would be merged at once.
            for (; i < n && y[i] * mass < total; ++i) {
                total += weighted ? y[i] * w[i] : y[i];
                mass += weighted ? w[i] : 1.0;
            }
            while (above()) {
                total += sum[last];
                mass += weight[last--];
            }
        }
        ++last;
        sum[last] = total;
        weight[last] = mass;
        end[last] = i;
    }
    return last + 1;
}

inline void fit_in_order(const double* y, const double* w, int64_t n, double* out, Blocks& blocks) {
    const int64_t n_blocks =
        w != nullptr ? pool<true>(y, w, n, blocks) : pool<false>(y, w, n, blocks);
    int64_t i = 0;
    for (int64_t b = 0; b < n_blocks; ++b) {
        const int64_t end = blocks.end[b];
        double value =
            end == i + 1 ? y[i] : blocks.sum[b] / blocks.weight[b];  // a weight may cost a bit
        if (i > 0) value = std::max(value, out[i - 1]);              // and so may the comparison
        for (; i < end; ++i) out[i] = value;
    }
}

// Each list by itself. `out` may be `y`.
inline void fit_lists_in_order(const double* y, const double* w, const int64_t* offsets,
                               int64_t n_lists, double* out, int n_threads) {
    const int64_t n = offsets[n_lists];
    parallel_for(n_lists, n * 4, n_threads, [=](int64_t q) {
        static thread_local Blocks blocks;
        const int64_t first = offsets[q];
        fit_in_order(y + first, w != nullptr ? w + first : nullptr, offsets[q + 1] - first,
                     out + first, blocks);
    });
}

}  // namespace rankwise
