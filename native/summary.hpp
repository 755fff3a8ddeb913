// What describes the features of judged lists: missing values, constant columns, columns that are
// constant inside every query.
#pragma once

#include <cstdint>
#include <vector>

namespace rankwise {

struct FeatureSummary {
    std::vector<int64_t> missing;             // NaN per feature
    std::vector<unsigned char> varies;        // takes two values somewhere
    std::vector<unsigned char> query_varies;  // takes two values inside some query
};

// Equal as values, where NaN equals NaN.
template <class T>
inline bool differs(T a, T b) {
    return (a != b) & ((a == a) | (b == b));
}

template <class T>
FeatureSummary summarize_dense(const T* X, const int64_t* offsets, int64_t n_queries,
                               int64_t n_features) {
    FeatureSummary s{std::vector<int64_t>(n_features), std::vector<unsigned char>(n_features),
                     std::vector<unsigned char>(n_features)};
    std::vector<int32_t> missing(n_features);
    for (int64_t q = 0; q < n_queries; ++q) {
        const T* first = X + offsets[q] * n_features;
        if (offsets[q] < offsets[q + 1])
            for (int64_t j = 0; j < n_features; ++j) s.varies[j] |= differs(first[j], X[j]);
        for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i) {
            const T* row = X + i * n_features;
            for (int64_t j = 0; j < n_features; ++j) {
                missing[j] += row[j] != row[j];
                s.query_varies[j] |= differs(row[j], first[j]);
            }
        }
        for (int64_t j = 0; j < n_features; ++j) {
            s.missing[j] += missing[j];
            missing[j] = 0;
        }
    }
    for (int64_t j = 0; j < n_features; ++j) s.varies[j] |= s.query_varies[j];
    return s;
}

// A feature is constant inside a query when no row stores it, or every row does with one value
// (a stored zero counts as not stored).
template <class T, class I>
FeatureSummary summarize_csr(const T* values, const I* columns, const I* starts,
                             const int64_t* offsets, int64_t n_queries, int64_t n_features) {
    FeatureSummary s{std::vector<int64_t>(n_features), std::vector<unsigned char>(n_features),
                     std::vector<unsigned char>(n_features)};
    struct Seen {
        int64_t rows = 0;
        T value = 0;
    };
    std::vector<Seen> here(n_features), all(n_features);
    std::vector<I> touched;
    int64_t n_docs = 0;
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t size = offsets[q + 1] - offsets[q];
        n_docs += size;
        touched.clear();
        for (I k = starts[offsets[q]]; k < starts[offsets[q + 1]]; ++k) {
            const T v = values[k];
            if (v == T(0)) continue;
            const I j = columns[k];
            s.missing[j] += v != v;
            if (here[j].rows++ == 0) {
                here[j].value = v;
                touched.push_back(j);
            } else if (differs(v, here[j].value)) {
                s.query_varies[j] = 1;
            }
            if (all[j].rows++ == 0) all[j].value = v;
            s.varies[j] |= differs(v, all[j].value);
        }
        for (I j : touched) {
            s.query_varies[j] |= here[j].rows != size;
            here[j] = Seen{};
        }
    }
    for (int64_t j = 0; j < n_features; ++j)
        s.varies[j] |= s.query_varies[j] | (all[j].rows != 0 && all[j].rows != n_docs);
    return s;
}

}  // namespace rankwise
