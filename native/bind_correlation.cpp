#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"
#include "correlation.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

void check_pair(const In<double>& x, const In<double>& y, const In<int64_t>& offsets) {
    check_offsets(offsets, x.shape(0));
    if (y.shape(0) != x.shape(0)) throw nb::value_error("x and y must have the same length");
}

Out2<int64_t> counts(In<double> x, In<double> y, In<int64_t> offsets, int n_threads) {
    check_pair(x, y, offsets);
    const size_t n_queries = offsets.shape(0) - 1;
    auto out = new_matrix<int64_t>(n_queries, 4);
    nb::gil_scoped_release release;
    lists::kendall_counts(x.data(), y.data(), offsets.data(), static_cast<int64_t>(n_queries),
                          out.data(), n_threads);
    return out;
}

Out<double> weighted(In<double> x, In<double> y, In<int64_t> offsets, In<double> by_rank,
                     std::optional<In<double>> element, int n_threads) {
    check_pair(x, y, offsets);
    const size_t n_queries = offsets.shape(0) - 1;
    for (size_t q = 0; q < n_queries; ++q)
        if (static_cast<size_t>(offsets.data()[q + 1] - offsets.data()[q]) > by_rank.shape(0))
            throw nb::value_error("by_rank must hold a weight for every rank");
    if (element && element->shape(0) != x.shape(0))
        throw nb::value_error("element must hold a weight for every row");
    auto out = new_array<double>(n_queries);
    nb::gil_scoped_release release;
    lists::weighted_taus(x.data(), y.data(), offsets.data(), static_cast<int64_t>(n_queries),
                         by_rank.data(), element ? element->data() : nullptr, out.data(),
                         n_threads);
    return out;
}

}  // namespace

void bind_correlation(nb::module_& m) {
    m.def("kendall_counts", &counts, "x"_a.noconvert(), "y"_a.noconvert(), "offsets"_a.noconvert(),
          "n_threads"_a = 0,
          "Discordant pairs and pairs tied in x, in y and in both, of every query.");
    m.def("weighted_taus", &weighted, "x"_a.noconvert(), "y"_a.noconvert(), "offsets"_a.noconvert(),
          "by_rank"_a.noconvert(), "element"_a.noconvert() = nb::none(), "n_threads"_a = 0,
          "Vigna's weighted tau of every query, ranks by descending x.");
}
