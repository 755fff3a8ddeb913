#include <nanobind/stl/tuple.h>

#include "loss_arrays.hpp"
#include "losses_structured.hpp"

using namespace rankwise;
using namespace nb::literals;

namespace {

StructuredLoss* new_structured(Column gain, In<int64_t> offsets, Column measure, Column place,
                               Column weight, bool sorted) {
    check_offsets(offsets, gain.shape(0));
    const auto n = static_cast<int64_t>(gain.shape(0));
    const auto queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    check_length("measure", measure, n);
    check_length("place", place, n);
    check_length("weight", weight, queries);
    nb::gil_scoped_release release;
    return new StructuredLoss(gain.data(), offsets.data(), queries, measure.data(), place.data(),
                              weight.data(), sorted);
}

Out<double> hold(StructuredLoss& loss, Column s, int n_threads) {
    check_length("s", s, loss.n_docs());
    auto out = new_array<double>(s.shape(0));
    {
        nb::gil_scoped_release release;
        loss.hold(s.data(), out.data(), n_threads);
    }
    return out;
}

std::tuple<double, Out<double>> evaluate_query(QueryLoss& loss, int64_t q, Column s) {
    if (q < 0 || q >= loss.n_queries()) throw nb::value_error("q must be the number of a query");
    check_length("s", s, loss.size(q));
    auto gradient = new_array<double>(s.shape(0));
    std::vector<double> curvature(s.shape(0));
    double value = 0;
    loss.evaluate(q, s.data(), &value, gradient.data(), curvature.data());
    return {value, gradient};
}

StructuredApLoss* new_ap(Column relevant, In<int64_t> offsets, Column weight) {
    check_offsets(offsets, relevant.shape(0));
    const auto queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    check_length("weight", weight, queries);
    nb::gil_scoped_release release;
    return new StructuredApLoss(relevant.data(), offsets.data(), queries, weight.data());
}

}  // namespace

void bind_structured(nb::module_& m) {
    nb::class_<StructuredLoss, QueryLoss>(m, "StructuredLoss")
        .def(nb::new_(&new_structured), "gain"_a.noconvert(), "offsets"_a.noconvert(),
             "measure"_a.noconvert(), "place"_a.noconvert(), "weight"_a.noconvert(), "sorted"_a)
        .def("hold", &hold, "s"_a.noconvert(), "n_threads"_a = 0)
        .def("evaluate_query", &evaluate_query, "q"_a, "s"_a.noconvert())
        .def("release", &StructuredLoss::release);
    nb::class_<StructuredApLoss, QueryLoss>(m, "StructuredApLoss")
        .def(nb::new_(&new_ap), "relevant"_a.noconvert(), "offsets"_a.noconvert(),
             "weight"_a.noconvert())
        .def("evaluate_query", &evaluate_query, "q"_a, "s"_a.noconvert());
}
