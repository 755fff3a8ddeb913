// The best order of a few items by the cost of their pairs, over all subsets.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace rankwise::lists {

// W[i * n + j] is the gain of having i before j. best[S] is the least loss of an order whose first
// items are the set S; item i behind them loses W[i][j] for each j in S.
inline std::vector<int64_t> best_order(const double* W, int n) {
    const uint32_t all = (uint32_t{1} << n) - 1;
    std::vector<double> best(size_t{all} + 1, std::numeric_limits<double>::infinity());
    std::vector<int8_t> last(size_t{all} + 1, -1);
    best[0] = 0.0;
    for (uint32_t S = 0; S < all; ++S) {
        for (int i = 0; i < n; ++i) {
            if (S >> i & 1) continue;
            double total = best[S];
            for (uint32_t rest = S; rest != 0; rest &= rest - 1)
                total += W[i * n + __builtin_ctz(rest)];
            const uint32_t T = S | uint32_t{1} << i;
            if (total < best[T]) {
                best[T] = total;
                last[T] = static_cast<int8_t>(i);
            }
        }
    }
    std::vector<int64_t> order(n);
    uint32_t S = all;
    for (int p = n - 1; p >= 0; --p) {
        order[p] = last[S];
        S &= ~(uint32_t{1} << last[S]);
    }
    return order;
}

}  // namespace rankwise::lists
