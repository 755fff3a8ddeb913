#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "arrays.hpp"
#include "kernel_rows.hpp"
#include "scoring.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

Out<int64_t> ranks(In<double> score, In<int64_t> offsets, int64_t k, int n_threads) {
    check_offsets(offsets, score.shape(0));
    auto out = new_array<int64_t>(score.shape(0));
    {
        nb::gil_scoped_release release;
        rank_within(score.data(), offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1, k,
                    out.data(), n_threads);
    }
    return out;
}

Out2<double> between_rows(In2<double> X, In2<double> Y, const std::string& what, int n_threads) {
    const std::map<std::string, Between> known = {{"product", Between::product},
                                                  {"squares", Between::squares},
                                                  {"absolute", Between::absolute},
                                                  {"chi_squared", Between::chi_squared}};
    if (X.shape(1) != Y.shape(1)) throw nb::value_error("X and Y must have as many columns");
    if (known.count(what) == 0) throw nb::value_error("unknown kind of number between rows");
    auto out = new_matrix<double>(X.shape(0), Y.shape(0));
    nb::gil_scoped_release release;
    rows_between(known.at(what), X.data(), static_cast<int64_t>(X.shape(0)), Y.data(),
                 static_cast<int64_t>(Y.shape(0)), static_cast<int64_t>(X.shape(1)), out.data(),
                 n_threads);
    return out;
}

}  // namespace

void bind_scoring(nb::module_& m) {
    m.def("rank_within", &ranks, "score"_a.noconvert(), "offsets"_a.noconvert(), "k"_a = -1,
          "n_threads"_a = 0,
          "1-based ranks by descending score inside each query; 0 below the first k.");
    m.def("rows_between", &between_rows, "X"_a.noconvert(), "Y"_a.noconvert(), "what"_a,
          "n_threads"_a = 0,
          "Between each row of X and each of Y: 'product', 'squares', 'absolute', 'chi_squared'.");
}
