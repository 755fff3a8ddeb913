#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "isotonic.hpp"
#include "names.hpp"
#include "retarget.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

const std::map<std::string, Divergence> kDivergences = {
    {"squared", Divergence::squared},
    {"kl", Divergence::kl},
    {"generalized", Divergence::generalized},
    {"logistic", Divergence::logistic},
};
const std::map<std::string, Restriction> kRestrictions = {
    {"simplex", Restriction::simplex},
    {"margin", Restriction::margin},
};

void check_length(const char* name, size_t length, size_t expected) {
    if (length != expected)
        throw nb::value_error(
            (std::string(name) + " must have length " + std::to_string(expected)).c_str());
}

Out<double> isotonic(In<double> y, In<int64_t> offsets, std::optional<In<double>> weight,
                     int n_threads) {
    check_offsets(offsets, y.shape(0));
    if (weight) check_length("weight", weight->shape(0), y.shape(0));
    auto out = new_array<double>(y.shape(0));
    nb::gil_scoped_release release;
    fit_lists_in_order(y.data(), weight ? weight->data() : nullptr, offsets.data(),
                       static_cast<int64_t>(offsets.shape(0)) - 1, out.data(), n_threads);
    return out;
}

std::tuple<Out<double>, Out<double>, Out<double>, Out<double>> retargeted(
    const std::string& divergence, const std::string& restriction, double margin, bool offset,
    In<double> label, In<double> score, In<int64_t> offsets, std::optional<In<double>> weight,
    int n_threads) {
    const size_t n = label.shape(0), n_queries = offsets.shape(0) - 1;
    check_offsets(offsets, n);
    check_length("score", score.shape(0), n);
    if (weight) check_length("weight", weight->shape(0), n);
    const Retargeting how{look_up(kDivergences, divergence), look_up(kRestrictions, restriction),
                          margin, offset};
    auto value = new_array<double>(n_queries);
    auto gradient = new_array<double>(n), curvature = new_array<double>(n),
         target = new_array<double>(n);
    nb::gil_scoped_release release;
    retarget(how,
             {label.data(), score.data(), weight ? weight->data() : nullptr, offsets.data(),
              static_cast<int64_t>(n_queries)},
             {value.data(), gradient.data(), curvature.data(), target.data()}, n_threads);
    return {value, gradient, curvature, target};
}

}  // namespace

void bind_isotonic(nb::module_& m) {
    m.def("isotonic", &isotonic, "y"_a.noconvert(), "offsets"_a.noconvert(),
          "weight"_a.noconvert() = nb::none(), "n_threads"_a = 0,
          "The nondecreasing fit to each list of y; weights above 0.");
    m.def("retargeted", &retargeted, "divergence"_a, "restriction"_a, "margin"_a, "offset"_a,
          "label"_a.noconvert(), "score"_a.noconvert(), "offsets"_a.noconvert(),
          "weight"_a.noconvert() = nb::none(), "n_threads"_a = 0,
          "Value of each query, gradient and curvature in each score, and the targets.");
}
