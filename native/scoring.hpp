// Scores and ranks of documents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

// 1-based ranks by descending score inside each query, equal scores in input order. With k > 0
// only the first k places are sorted and every other document gets 0.
inline void rank_within(const double* score, const int64_t* offsets, int64_t n_queries, int64_t k,
                        int64_t* rank, int n_threads) {
    const int64_t n_docs = n_queries > 0 ? offsets[n_queries] : 0;
    parallel_for(n_queries, n_docs * 20, n_threads, [&](int64_t q) {
        const int64_t begin = offsets[q], n = offsets[q + 1] - begin;
        const double* s = score + begin;
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), int64_t{0});
        const int64_t top = k > 0 ? std::min(k, n) : n;
        const auto before = [s](int64_t a, int64_t b) {
            return s[a] > s[b] || (s[a] == s[b] && a < b);
        };
        if (top < n) {
            std::nth_element(order.begin(), order.begin() + top, order.end(), before);
            std::fill(rank + begin, rank + begin + n, int64_t{0});
        }
        std::sort(order.begin(), order.begin() + top, before);
        for (int64_t i = 0; i < top; ++i) rank[begin + order[i]] = i + 1;
    });
}

}  // namespace rankwise
