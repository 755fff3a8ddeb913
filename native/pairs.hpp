// Pairs of documents with different labels, without ever listing them: the documents of a query
// sorted by label, so that all losers of a winner lie side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "losses.hpp"

namespace rankwise {

// One query by descending label: document order[x] (counted inside the query) stands at place x,
// and level l, l = 0 the best label, owns the places starts[l] to starts[l + 1]. Unjudged documents
// have no place.
struct Levels {
    const int32_t* order;
    const int32_t* starts;
    int32_t count;
    int32_t n() const { return starts[count]; }
};

class LabelLevels {
  public:
    LabelLevels(const double* y, const int64_t* offsets, int64_t n_queries)
        : offsets_(offsets, offsets + n_queries + 1), order_(offsets_.back()) {
        for (int64_t q = 0; q < n_queries; ++q) add_query(y, q);
    }
    Levels of(int64_t q) const {
        const int64_t at = first_[q];
        return {order_.data() + offsets_[q], starts_.data() + at,
                static_cast<int32_t>(first_[q + 1] - at - 1)};
    }
    // Number of pairs of documents with different labels.
    int64_t n_pairs(int64_t q) const {
        const Levels levels = of(q);
        int64_t pairs = 0;
        for (int32_t l = 0; l < levels.count; ++l)
            pairs += static_cast<int64_t>(levels.starts[l + 1] - levels.starts[l]) *
                     (levels.n() - levels.starts[l + 1]);
        return pairs;
    }

  private:
    void add_query(const double* y, int64_t q) {
        const double* label = y + offsets_[q];
        const int64_t n = offsets_[q + 1] - offsets_[q];
        int32_t* order = order_.data() + offsets_[q];
        int32_t judged = 0;
        for (int64_t i = 0; i < n; ++i)
            if (!std::isnan(label[i])) order[judged++] = static_cast<int32_t>(i);
        std::stable_sort(order, order + judged,
                         [label](int32_t a, int32_t b) { return label[a] > label[b]; });
        for (int32_t x = 0; x < judged; ++x)
            if (x == 0 || label[order[x]] != label[order[x - 1]]) starts_.push_back(x);
        starts_.push_back(judged);
        first_.push_back(static_cast<int64_t>(starts_.size()));
    }
    std::vector<int64_t> offsets_, first_ = {0};
    std::vector<int32_t> order_, starts_;
};

// Scratch columns of one query, kept by each thread from call to call.
inline double* scratch(size_t column, int64_t n) {
    static thread_local std::vector<double> columns[12];
    if (static_cast<int64_t>(columns[column].size()) < n) columns[column].resize(2 * n);
    return columns[column].data();
}

}  // namespace rankwise
