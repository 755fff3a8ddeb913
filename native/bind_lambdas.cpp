// Lambda gradients: arguments and their checks. The definitions are in lambdas.hpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
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

SwapForm form_named(const std::string& name) {
    static const std::map<std::string, SwapForm> forms = {{"discount", SwapForm::discount},
                                                          {"ap", SwapForm::ap},
                                                          {"first", SwapForm::first},
                                                          {"cascade", SwapForm::cascade},
                                                          {"constant", SwapForm::constant}};
    const auto found = forms.find(name);
    if (found == forms.end()) throw nb::value_error(("unknown swap form " + name).c_str());
    return found->second;
}

PairWeights weights_named(const std::string& name) {
    static const std::map<std::string, PairWeights> kinds = {{"change", PairWeights::change},
                                                             {"distance", PairWeights::distance},
                                                             {"own", PairWeights::own}};
    const auto found = kinds.find(name);
    if (found == kinds.end()) throw nb::value_error(("unknown pair weights " + name).c_str());
    return found->second;
}

void check_lengths(const Column& gain, const In<int64_t>& offsets, const Weights& weight,
                   const Column& value, const Column& scale, bool per_document,
                   const Column* distance) {
    const size_t n = gain.shape(0);
    check_offsets(offsets, n);
    if (weight && weight->shape(0) != n)
        throw nb::value_error("gain and weight must have one entry per document");
    const size_t n_queries = offsets.shape(0) - 1;
    if (scale.shape(0) != n_queries) throw nb::value_error("scale must have one entry per query");
    if (per_document && value.shape(0) != n)
        throw nb::value_error("value must have one entry per document");
    size_t longest = 0;
    for (size_t q = 0; q < n_queries; ++q)
        longest = std::max(longest, static_cast<size_t>(offsets.data()[q + 1] - offsets.data()[q]));
    if (!per_document && value.shape(0) < longest)
        throw nb::value_error("value must have one entry per place of the longest query");
    if (distance && distance->shape(0) < longest + 1)
        throw nb::value_error("distance must have one entry per distance of the longest query");
    if (longest > INT32_MAX) throw nb::value_error("a query must have less than 2^31 documents");
}

void construct(LambdaKernel* self, const std::string& form, const Column& gain,
               const In<int64_t>& offsets, const Weights& weight, const Column& value,
               const Column& scale, bool per_document, const std::string& weights,
               const Column& distance, double constant, double sigma, int64_t truncation,
               bool stable, bool scale_by_gap, bool scale_by_query, int64_t pairs_per_doc,
               uint64_t seed) {
    LambdaOptions options;
    options.form = form_named(form);
    options.weights = weights_named(weights);
    options.constant = constant;
    options.sigma = sigma;
    options.truncation = truncation;
    options.stable = stable;
    options.scale_by_gap = scale_by_gap;
    options.scale_by_query = scale_by_query;
    options.per_document = per_document;
    options.pairs_per_doc = pairs_per_doc;
    options.seed = seed;
    const bool by_distance = options.weights == PairWeights::distance;
    check_lengths(gain, offsets, weight, value, scale, per_document,
                  by_distance ? &distance : nullptr);
    const auto copied = [](const auto& a) { return std::vector(a.data(), a.data() + a.shape(0)); };
    new (self) LambdaKernel(options, gain.data(), weight ? weight->data() : nullptr,
                            copied(offsets), copied(value), copied(scale), copied(distance));
}

void check_scores(const LambdaKernel& kernel, const Column& score) {
    const auto n = static_cast<size_t>(kernel.n_docs());
    if (score.shape(0) != n)
        throw nb::value_error(("lambda gradients: s must hold one score per document, got " +
                               std::to_string(score.shape(0)) + " for " + std::to_string(n) +
                               " documents")
                                  .c_str());
    for (size_t i = 0; i < n; ++i)
        if (!std::isfinite(score.data()[i]))
            throw nb::value_error(("lambda gradients: scores must be finite, got " +
                                   std::to_string(score.data()[i]) + " at document " +
                                   std::to_string(i))
                                      .c_str());
}

std::pair<Out<double>, Out<double>> gradients(LambdaKernel& kernel, const Column& score,
                                              int n_threads) {
    check_scores(kernel, score);
    auto gradient = new_array<double>(score.shape(0)),
         curvature = new_array<double>(score.shape(0));
    {
        nb::gil_scoped_release release;
        kernel.gradients(score.data(), gradient.data(), curvature.data(), n_threads);
    }
    return {std::move(gradient), std::move(curvature)};
}

Out<double> values(LambdaKernel& kernel, const Column& score, int n_threads) {
    check_scores(kernel, score);
    auto value = new_array<double>(static_cast<size_t>(kernel.n_queries()));
    {
        nb::gil_scoped_release release;
        kernel.values(score.data(), value.data(), n_threads);
    }
    return value;
}

Out2<double> changes(LambdaKernel& kernel, const Column& score) {
    check_scores(kernel, score);
    if (kernel.n_queries() != 1) throw nb::value_error("changes are those of one query");
    const auto n = static_cast<size_t>(kernel.n_docs());
    auto matrix = new_matrix<double>(n, n);
    kernel.changes(score.data(), matrix.data());
    return matrix;
}

}  // namespace
}  // namespace rankwise

void bind_lambdas(nb::module_& m) {
    using rankwise::LambdaKernel;
    nb::class_<LambdaKernel>(m, "LambdaKernel",
                             "Lambda gradients of fixed labels as a function of the scores.")
        .def("__init__", rankwise::construct, "form"_a, "gain"_a.noconvert(),
             "offsets"_a.noconvert(), "weight"_a.noconvert().none(), "value"_a.noconvert(),
             "scale"_a.noconvert(), "per_document"_a, "weights"_a, "distance"_a.noconvert(),
             "constant"_a, "sigma"_a, "truncation"_a, "stable"_a, "scale_by_gap"_a,
             "scale_by_query"_a, "pairs_per_doc"_a, "seed"_a)
        .def("gradients", rankwise::gradients, "score"_a.noconvert(), "n_threads"_a = 0,
             "Gradient and curvature of every document.")
        .def("values", rankwise::values, "score"_a.noconvert(), "n_threads"_a = 0,
             "The weighted pair loss of each query.")
        .def("changes", rankwise::changes, "score"_a.noconvert(),
             "What a swap of two documents of the only query changes in the metric.");
}
