#include "arrays.hpp"
#include "groups.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

template <class T>
Out<uint64_t> hash_dense(In2<T> X) {
    auto out = new_array<uint64_t>(X.shape(0));
    hash_rows_dense(X.data(), static_cast<int64_t>(X.shape(0)), static_cast<int64_t>(X.shape(1)),
                    out.data());
    return out;
}

template <class T, class I>
Out<uint64_t> hash_csr(In<T> data, In<I> columns, In<I> starts) {
    if (starts.shape(0) == 0) throw nb::value_error("starts must hold n_rows + 1 entries");
    const size_t n_rows = starts.shape(0) - 1;
    auto out = new_array<uint64_t>(n_rows);
    hash_rows_csr(data.data(), columns.data(), starts.data(), static_cast<int64_t>(n_rows),
                  out.data());
    return out;
}

}  // namespace

void bind_groups(nb::module_& m) {
    const char* doc = "One 64-bit hash per row that depends on its values alone.";
    m.def("hash_rows", &hash_dense<double>, "X"_a.noconvert(), doc);
    m.def("hash_rows", &hash_dense<float>, "X"_a.noconvert(), doc);
    m.def("hash_rows_csr", &hash_csr<double, int32_t>, "data"_a.noconvert(),
          "columns"_a.noconvert(), "starts"_a.noconvert(), doc);
    m.def("hash_rows_csr", &hash_csr<double, int64_t>, "data"_a.noconvert(),
          "columns"_a.noconvert(), "starts"_a.noconvert(), doc);
    m.def("hash_rows_csr", &hash_csr<float, int32_t>, "data"_a.noconvert(),
          "columns"_a.noconvert(), "starts"_a.noconvert(), doc);
    m.def("hash_rows_csr", &hash_csr<float, int64_t>, "data"_a.noconvert(),
          "columns"_a.noconvert(), "starts"_a.noconvert(), doc);
}
