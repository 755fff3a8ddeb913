#include <nanobind/stl/tuple.h>

#include "loss_arrays.hpp"
#include "losses_ordinal.hpp"

using namespace rankwise;
using namespace nb::literals;

namespace {

OrdinalSides* new_sides(In<int32_t> level, std::optional<Column> weight, int64_t n_thresholds,
                        bool margin) {
    const int64_t n = static_cast<int64_t>(level.shape(0));
    if (weight) check_length("weight", *weight, n);
    for (int64_t i = 0; i < n; ++i)
        if (level.data()[i] < -1 || level.data()[i] > n_thresholds)
            throw nb::value_error("level must be between -1 and the number of thresholds");
    if (n_thresholds < 1) throw nb::value_error("n_thresholds must be at least 1");
    nb::gil_scoped_release release;
    return new OrdinalSides(level.data(), n, weight ? weight->data() : nullptr, n_thresholds,
                            margin);
}

void set_scores(OrdinalSides& sides, Column s, int n_threads) {
    check_length("s", s, sides.n_docs());
    nb::gil_scoped_release release;
    sides.set_scores(s.data(), n_threads);
}

Out2<double> level_sums(const OrdinalSides& sides, Column theta, int n_threads) {
    check_length("theta", theta, sides.n_thresholds());
    auto out = new_matrix<double>(4, sides.n_thresholds() + 1);
    nb::gil_scoped_release release;
    const std::vector<LevelSums> sums = sides.sums(theta.data(), n_threads);
    for (size_t l = 0; l < sums.size(); ++l) {
        const double row[4] = {sums[l].low_slope, sums[l].low_bend, sums[l].high_slope,
                               sums[l].high_bend};
        for (size_t part = 0; part < 4; ++part) out.data()[part * sums.size() + l] = row[part];
    }
    return out;
}

void check_inverse(const OrdinalSides& sides, const In2<double>& inverse) {
    const size_t k = static_cast<size_t>(sides.n_thresholds());
    if (inverse.shape(0) != k || inverse.shape(1) != k)
        throw nb::value_error("inverse must have one row and one column per threshold");
}

std::tuple<Out<double>, Out<double>, Out<double>> evaluate_sides(OrdinalSides& sides, Column theta,
                                                                 In2<double> inverse, Column extra,
                                                                 bool losses, int n_threads) {
    check_length("theta", theta, sides.n_thresholds());
    check_length("extra", extra, sides.n_thresholds() + 1);
    check_inverse(sides, inverse);
    const int64_t n = sides.n_docs();
    auto loss = new_array<double>(losses ? n : 0);
    auto gradient = new_array<double>(n), curvature = new_array<double>(n);
    nb::gil_scoped_release release;
    if (losses) std::fill(loss.data(), loss.data() + n, 0.0);
    std::fill(gradient.data(), gradient.data() + n, 0.0);
    std::fill(curvature.data(), curvature.data() + n, 0.0);
    sides.evaluate(theta.data(), inverse.data(), extra.data(), losses ? loss.data() : nullptr,
                   gradient.data(), curvature.data(), n_threads);
    return {loss, gradient, curvature};
}

Out<double> sides_product(const OrdinalSides& sides, Column v, In2<double> inverse, int n_threads) {
    check_length("v", v, sides.n_docs());
    check_inverse(sides, inverse);
    auto out = new_array<double>(v.shape(0));
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + v.shape(0), 0.0);
    sides.product(v.data(), inverse.data(), out.data(), n_threads);
    return out;
}

}  // namespace

void bind_ordinal(nb::module_& m) {
    nb::class_<OrdinalSides>(m, "OrdinalSides", "Documents of ordered levels around thresholds.")
        .def(nb::new_(&new_sides), "level"_a.noconvert(), "weight"_a.noconvert().none(),
             "n_thresholds"_a, "margin"_a)
        .def("set_scores", &set_scores, "s"_a.noconvert(), "n_threads"_a = 0)
        .def("sums", &level_sums, "theta"_a.noconvert(), "n_threads"_a = 0,
             "Per level: slopes and bends below the upper threshold, and above the lower one.")
        .def("evaluate", &evaluate_sides, "theta"_a.noconvert(), "inverse"_a.noconvert(),
             "extra"_a.noconvert(), "losses"_a = true, "n_threads"_a = 0,
             "Loss, gradient and curvature per document.")
        .def("product", &sides_product, "v"_a.noconvert(), "inverse"_a.noconvert(),
             "n_threads"_a = 0, "Hessian at the point last evaluated, times v.");
}
