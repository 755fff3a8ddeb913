// The array types that the bindings take and return. Arguments are declared `.noconvert()`, so a
// wrong dtype or layout is an error at the call and never a silent copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

namespace rankwise {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Out2 = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;

// A new NumPy array that owns uninitialised memory.
template <class T>
Out<T> new_array(size_t n) {
    T* data = new T[n == 0 ? 1 : n];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(data, {n}, owner);
}

template <class T>
Out2<T> new_matrix(size_t rows, size_t columns) {
    T* data = new T[rows * columns == 0 ? 1 : rows * columns];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out2<T>(data, {rows, columns}, owner);
}

// Offsets must start at 0, never fall and end at the number of rows: the kernels index by them.
inline void check_offsets(const In<int64_t>& offsets, size_t n_rows) {
    const size_t n = offsets.shape(0);
    const int64_t* o = offsets.data();
    bool ok = n > 0 && o[0] == 0 && static_cast<size_t>(o[n - 1]) == n_rows;
    for (size_t i = 1; ok && i < n; ++i) ok = o[i - 1] <= o[i];
    if (!ok)
        throw nb::value_error("offsets must start at 0, never fall, and end at the number of rows");
}

// Hands a vector's memory to NumPy without copying it.
template <class T>
Out<T> move_array(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(kept->data(), {kept->size()}, owner);
}

}  // namespace rankwise
