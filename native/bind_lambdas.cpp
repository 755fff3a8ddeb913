// Lambda gradients: arguments and their checks. The definitions are in lambdas.hpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "lambdas.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace rankwise {
namespace {

using Column = In<double>;
using Weights = std::optional<Column>;

LambdaProblem problem(const Column& gain, const Column& score, const In<int64_t>& offsets,
                      const Weights& weight, const Column& discount, const Column& inverse_ideal,
                      double sigma, int64_t truncation, bool stable, bool scale_by_gap,
                      bool scale_by_query) {
    const size_t n = gain.shape(0);
    check_offsets(offsets, n);
    if (score.shape(0) != n || (weight && weight->shape(0) != n))
        throw nb::value_error("gain, score and weight must have one entry per document");
    for (size_t i = 0; i < n; ++i)
        if (!std::isfinite(score.data()[i]))
            throw nb::value_error(("LambdaRank: scores must be finite, got " +
                                   std::to_string(score.data()[i]) + " at document " +
                                   std::to_string(i))
                                      .c_str());
    const size_t n_queries = offsets.shape(0) - 1;
    if (inverse_ideal.shape(0) != n_queries)
        throw nb::value_error("inverse_ideal must have one entry per query");
    for (size_t q = 0; q < n_queries; ++q)
        if (static_cast<size_t>(offsets.data()[q + 1] - offsets.data()[q]) > discount.shape(0))
            throw nb::value_error("discount must have one entry per place of the longest query");
    if (truncation <= 0) truncation = std::numeric_limits<int64_t>::max();
    return {gain.data(),    score.data(),    weight ? weight->data() : nullptr,
            offsets.data(), discount.data(), inverse_ideal.data(),
            sigma,          truncation,      stable,
            scale_by_gap,   scale_by_query};
}

std::pair<Out<double>, Out<double>> gradients(const Column& gain, const Column& score,
                                              const In<int64_t>& offsets, const Weights& weight,
                                              const Column& discount, const Column& inverse_ideal,
                                              double sigma, int64_t truncation, bool stable,
                                              bool scale_by_gap, bool scale_by_query,
                                              int n_threads) {
    const LambdaProblem in = problem(gain, score, offsets, weight, discount, inverse_ideal, sigma,
                                     truncation, stable, scale_by_gap, scale_by_query);
    auto gradient = new_array<double>(gain.shape(0)), curvature = new_array<double>(gain.shape(0));
    {
        nb::gil_scoped_release release;
        lambda_gradients(in, static_cast<int64_t>(offsets.shape(0)) - 1, gradient.data(),
                         curvature.data(), n_threads);
    }
    return {std::move(gradient), std::move(curvature)};
}

Out<double> values(const Column& gain, const Column& score, const In<int64_t>& offsets,
                   const Weights& weight, const Column& discount, const Column& inverse_ideal,
                   double sigma, int64_t truncation, bool stable, bool scale_by_gap,
                   bool scale_by_query, int n_threads) {
    const LambdaProblem in = problem(gain, score, offsets, weight, discount, inverse_ideal, sigma,
                                     truncation, stable, scale_by_gap, scale_by_query);
    auto value = new_array<double>(offsets.shape(0) - 1);
    {
        nb::gil_scoped_release release;
        lambda_values(in, static_cast<int64_t>(offsets.shape(0)) - 1, value.data(), n_threads);
    }
    return value;
}

}  // namespace
}  // namespace rankwise

void bind_lambdas(nb::module_& m) {
    const auto define = [&](const char* name, auto function, const char* doc) {
        m.def(name, function, "gain"_a.noconvert(), "score"_a.noconvert(), "offsets"_a.noconvert(),
              "weight"_a.noconvert().none(), "discount"_a.noconvert(),
              "inverse_ideal"_a.noconvert(), "sigma"_a, "truncation"_a, "stable"_a,
              "scale_by_gap"_a, "scale_by_query"_a, "n_threads"_a = 0, doc);
    };
    define("lambda_gradients", rankwise::gradients,
           "Gradient and curvature of LambdaRank for a gain times discount metric.");
    define("lambda_values", rankwise::values, "LambdaRank's weighted pair loss of each query.");
}
