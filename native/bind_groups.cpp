#include "arrays.hpp"
#include "groups.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

template <class T>
Out<uint64_t> hash_dense(In2<T> X, int n_threads) {
    auto out = new_array<uint64_t>(X.shape(0));
    nb::gil_scoped_release release;
    hash_rows_dense(X.data(), static_cast<int64_t>(X.shape(0)), static_cast<int64_t>(X.shape(1)),
                    out.data(), n_threads);
    return out;
}

template <class T, class I>
Out<uint64_t> hash_csr(In<T> data, In<I> columns, In<I> starts, int n_threads) {
    const size_t n = starts.shape(0);
    bool ok = n > 0 && data.shape(0) == columns.shape(0) && starts(0) == 0 &&
              static_cast<size_t>(starts(n - 1)) == data.shape(0);
    for (size_t i = 1; ok && i < n; ++i) ok = starts(i - 1) <= starts(i);
    if (!ok) throw nb::value_error("starts must rise from 0 to the number of values");
    auto out = new_array<uint64_t>(n - 1);
    nb::gil_scoped_release release;
    hash_rows_csr(data.data(), columns.data(), starts.data(), static_cast<int64_t>(n) - 1,
                  out.data(), n_threads);
    return out;
}

Out<int64_t> sorted_rows(In<uint64_t> hash, In<uint64_t> content, In<int64_t> offsets,
                         In<int64_t> queries, int n_threads) {
    check_offsets(offsets, hash.shape(0));
    const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1;
    std::vector<bool> seen(n, false);
    bool ok = static_cast<int64_t>(queries.shape(0)) == n && content.shape(0) == hash.shape(0);
    for (int64_t p = 0; ok && p < n; ++p) {
        const int64_t q = queries.data()[p];
        ok = q >= 0 && q < n && !seen[q];
        if (ok) seen[q] = true;
    }
    if (!ok) throw nb::value_error("queries must be a permutation, content as long as hash");
    auto out = new_array<int64_t>(hash.shape(0));
    nb::gil_scoped_release release;
    sort_rows(hash.data(), content.data(), offsets.data(), queries.data(), n, out.data(),
              n_threads);
    return out;
}

template <class T, class I>
void bind_csr(nb::module_& m, const char* doc) {
    m.def("hash_rows_csr", &hash_csr<T, I>, "data"_a.noconvert(), "columns"_a.noconvert(),
          "starts"_a.noconvert(), "n_threads"_a = 0, doc);
}

}  // namespace

void bind_groups(nb::module_& m) {
    const char* doc = "One 64-bit hash per row that depends on its values alone.";
    m.def("hash_rows", &hash_dense<double>, "X"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("hash_rows", &hash_dense<float>, "X"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("sort_rows", &sorted_rows, "hash"_a.noconvert(), "content"_a.noconvert(),
          "offsets"_a.noconvert(), "queries"_a.noconvert(), "n_threads"_a = 0,
          "Rows of the queries, in the order given, each query's by (hash, content).");
    bind_csr<double, int32_t>(m, doc);
    bind_csr<double, int64_t>(m, doc);
    bind_csr<float, int32_t>(m, doc);
    bind_csr<float, int64_t>(m, doc);
}
