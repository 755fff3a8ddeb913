// Moving the rows of a matrix in place, so that grouping interleaved queries needs no second copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace rankwise {

// Row i becomes what was row order[i]. `order` must be a permutation of [0, n): each cycle is
// followed once, with one row held aside.
template <class T>
void permute_rows(T* X, int64_t n_rows, int64_t n_columns, const int64_t* order) {
    std::vector<bool> seen(n_rows);
    for (int64_t i = 0; i < n_rows; ++i) {
        if (order[i] < 0 || order[i] >= n_rows || seen[order[i]])
            throw std::invalid_argument("order must be a permutation of the rows");
        seen[order[i]] = true;
    }
    const size_t bytes = static_cast<size_t>(n_columns) * sizeof(T);
    std::vector<T> held(n_columns);
    for (int64_t start = 0; start < n_rows; ++start) {
        if (!seen[start]) continue;  // moved already
        std::memcpy(held.data(), X + start * n_columns, bytes);
        int64_t to = start;
        for (; order[to] != start; to = order[to]) {
            std::memcpy(X + to * n_columns, X + order[to] * n_columns, bytes);
            seen[to] = false;
        }
        std::memcpy(X + to * n_columns, held.data(), bytes);
        seen[to] = false;
    }
}

}  // namespace rankwise
