#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "ascent.hpp"
#include "boosting.hpp"
#include "names.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

void check_length(const char* name, size_t length, size_t expected) {
    if (length != expected)
        throw nb::value_error(
            (std::string(name) + " must have length " + std::to_string(expected)).c_str());
}

// --- RankBoost ------------------------------------------------------------------------------

std::tuple<Out<double>, Out<double>> potentials(In<double> label, In<double> score,
                                                In<int64_t> offsets,
                                                std::optional<In<double>> weight, int n_threads) {
    const size_t n = label.shape(0), n_queries = offsets.shape(0) - 1;
    check_offsets(offsets, n);
    check_length("score", score.shape(0), n);
    if (weight) check_length("weight", weight->shape(0), n);
    auto potential = new_array<double>(n);
    auto total = new_array<double>(n_queries);
    nb::gil_scoped_release release;
    pair_potentials(label.data(), score.data(), weight ? weight->data() : nullptr, offsets.data(),
                    static_cast<int64_t>(n_queries), potential.data(), total.data(), n_threads);
    return {potential, total};
}

template <class Bin>
std::tuple<int64_t, int64_t, bool, double> stump(In2<Bin> bins, In<int64_t> n_thresholds,
                                                 In<double> potential, int n_threads) {
    const auto d = static_cast<int64_t>(bins.shape(0)), n = static_cast<int64_t>(bins.shape(1));
    check_length("n_thresholds", n_thresholds.shape(0), bins.shape(0));
    check_length("potential", potential.shape(0), bins.shape(1));
    nb::gil_scoped_release release;
    for (int64_t f = 0; f < d; ++f) {
        const int64_t last = n_thresholds.data()[f] + 1;
        const Bin* row = bins.data() + f * n;
        if (last < 1 || (n > 0 && *std::max_element(row, row + n) > last))
            throw nb::value_error("a bin must be at most its feature's number of thresholds + 1");
    }
    const Stump best =
        best_stump(bins.data(), n_thresholds.data(), d, n, potential.data(), n_threads);
    return {best.feature, best.threshold, best.missing, best.gain};
}

// --- Coordinate ascent ----------------------------------------------------------------------

Line make_line(const Request& metric, const std::string& ties, bool full, bool pooled,
               In<double> label, In<double> score, In<double> column, In<int64_t> offsets) {
    check_offsets(offsets, label.shape(0));
    check_length("score", score.shape(0), label.shape(0));
    check_length("column", column.shape(0), label.shape(0));
    return {&metric,       look_up(kTies, ties), full,
            pooled,        label.data(),         score.data(),
            column.data(), offsets.data(),       static_cast<int64_t>(offsets.shape(0)) - 1};
}

Out2<double> along(const Request& metric, const std::string& ties, bool full, bool pooled,
                   In<double> label, In<double> score, In<double> column, In<int64_t> offsets,
                   In<double> steps, int n_threads) {
    const Line line = make_line(metric, ties, full, pooled, label, score, column, offsets);
    auto values = new_matrix<double>(steps.shape(0), static_cast<size_t>(line.n_queries));
    nb::gil_scoped_release release;
    metric_at_steps(line, steps.data(), static_cast<int64_t>(steps.shape(0)), values.data(),
                    n_threads);
    return values;
}

std::tuple<Out<double>, Out<double>, Out<double>> breaks(
    const Request& metric, const std::string& ties, bool full, bool pooled, In<double> label,
    In<double> score, In<double> column, In<int64_t> offsets, In<double> weight, int n_threads) {
    const Line line = make_line(metric, ties, full, pooled, label, score, column, offsets);
    check_length("weight", weight.shape(0), static_cast<size_t>(line.n_queries));
    auto first = new_array<double>(static_cast<size_t>(line.n_queries));
    std::vector<Break> found;
    {
        nb::gil_scoped_release release;
        found = metric_breaks(line, weight.data(), first.data(), n_threads);
    }
    auto at = new_array<double>(found.size());
    auto change = new_array<double>(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
        at.data()[i] = found[i].at;
        change.data()[i] = found[i].change;
    }
    return {at, change, first};
}

}  // namespace

void bind_weak(nb::module_& m) {
    m.def("pair_potentials", &potentials, "label"_a.noconvert(), "score"_a.noconvert(),
          "offsets"_a.noconvert(), "weight"_a.noconvert() = nb::none(), "n_threads"_a = 0,
          "RankBoost's potential of each document and the exponential loss of each query; rows of "
          "a query by ascending label.");
    constexpr const char* doc = "Feature, threshold, missing side and gain of the best stump.";
    m.def("best_stump", &stump<uint8_t>, "bins"_a.noconvert(), "n_thresholds"_a.noconvert(),
          "potential"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("best_stump", &stump<uint16_t>, "bins"_a.noconvert(), "n_thresholds"_a.noconvert(),
          "potential"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("metric_along", &along, "metric"_a, "ties"_a, "full"_a, "pooled"_a, "label"_a.noconvert(),
          "score"_a.noconvert(), "column"_a.noconvert(), "offsets"_a.noconvert(),
          "steps"_a.noconvert(), "n_threads"_a = 0,
          "Values (n_steps, n_queries) of the metric at score + step * column.");
    m.def("metric_breaks", &breaks, "metric"_a, "ties"_a, "full"_a, "pooled"_a,
          "label"_a.noconvert(), "score"_a.noconvert(), "column"_a.noconvert(),
          "offsets"_a.noconvert(), "weight"_a.noconvert(), "n_threads"_a = 0,
          "Where the weighted sum of the metric changes along score + t * column, by how much, and "
          "each query's value to the left of all.");
}
