#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <map>
#include <string>

#include "arrays.hpp"
#include "metrics_orders.hpp"
#include "metrics_ranking.hpp"
#include "metrics_trec.hpp"
#include "metrics_values.hpp"
#include "names.hpp"
#include "parallel.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

const std::map<std::string, Request::Function> kFunctions = {
    {"ndcg", metrics::ndcg},
    {"dcg", metrics::dcg},
    {"mean_ndcg", metrics::mean_ndcg},
    {"eru", metrics::ndcg},
    {"precision", metrics::precision},
    {"recall", metrics::recall},
    {"f1", metrics::f1},
    {"success", metrics::success},
    {"ap", metrics::ap},
    {"r_precision", metrics::r_precision},
    {"rr", metrics::rr},
    {"err", metrics::err},
    {"rbp", metrics::rbp},
    {"graded_rbp", metrics::graded_rbp},
    {"rbp_residual", metrics::rbp_residual},
    {"bpref", metrics::bpref},
    {"judged", metrics::judged},
    {"unjudged", metrics::unjudged},
    {"wta", metrics::wta},
    {"retrieved", metrics::retrieved},
    {"relevant", metrics::relevant},
    {"relevant_retrieved", metrics::relevant_retrieved},
    {"nonrelevant_retrieved", metrics::nonrelevant_retrieved},
    {"relative_precision", metrics::relative_precision},
    {"set_ap", metrics::set_ap},
    {"pairwise_accuracy", metrics::pairwise_accuracy},
    {"auc", metrics::auc},
    {"tau_a", metrics::tau_a},
    {"tau_b", metrics::tau_b},
    {"rho", metrics::rho},
    {"infap", metrics::infap},
    {"interpolated_precision", metrics::interpolated_precision},
    {"utility", metrics::utility},
    {"bin_g", metrics::bin_g},
    {"g", metrics::g},
    {"ndcg_rel", metrics::ndcg_rel},
    {"r_ndcg", metrics::r_ndcg},
};

const std::map<std::string, Gain> kGains = {
    {"exp2", Gain::exp2},
    {"identity", Gain::identity},
    {"table", Gain::table},
    {"excess", Gain::excess},
};

void make_request(Request* self, const std::string& function, int64_t k, double rel,
                  double parameter, double neutral, const std::string& gain, bool cut_short,
                  bool zero_short, bool norm_min, bool together, bool tail_always, bool round_up,
                  double empty, In<double> gains, In<double> discounts, In<double> weights) {
    new (self) Request();
    self->function = look_up(kFunctions, function);
    self->k = k;
    self->rel = rel;
    self->parameter = parameter;
    self->neutral = neutral;
    self->gain = look_up(kGains, gain);
    self->cut_short = cut_short;
    self->zero_short = zero_short;
    self->norm_min = norm_min;
    self->together = together;
    self->tail_always = tail_always;
    self->round_up = round_up;
    self->empty = empty;
    self->gains.assign(gains.data(), gains.data() + gains.shape(0));
    self->discounts.assign(discounts.data(), discounts.data() + discounts.shape(0));
    self->weights.assign(weights.data(), weights.data() + weights.shape(0));
}

// Values of shape (n_requests, n_queries), the largest label, and whether the labels and the scores
// were valid; where they were not the values mean nothing.
nb::tuple compute(const std::vector<const Request*>& requests, const std::string& ties, bool full,
                  bool pooled, In<double> label, In<double> score, In<int64_t> offsets,
                  int n_threads) {
    check_offsets(offsets, label.shape(0));
    check_offsets(offsets, score.shape(0));
    const auto n_queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    const Ties rule = look_up(kTies, ties);
    auto values = new_matrix<double>(requests.size(), static_cast<size_t>(n_queries));
    std::atomic<bool> bad_label{false}, bad_score{false};
    std::vector<double> largest(static_cast<size_t>(n_queries), 0.0);
    const double* y = label.data();
    const double* s = score.data();
    const int64_t* o = offsets.data();
    double* out = values.data();
    {
        nb::gil_scoped_release release;
        // Queries in chunks, so that the working memory is made once per chunk.
        constexpr int64_t chunk = 32;
        const int64_t n_chunks = (n_queries + chunk - 1) / chunk;
        parallel_for(n_chunks, o[n_queries] * 4, n_threads, [&](int64_t c) {
            Ranker ranker(rule, full, pooled);
            Ranking ranking;
            for (int64_t q = c * chunk; q < std::min(n_queries, (c + 1) * chunk); ++q) {
                const Scan scan = ranker.rank(y + o[q], s + o[q], o[q + 1] - o[q], ranking);
                if (scan.bad_label) bad_label = true;
                if (scan.bad_score) bad_score = true;
                if (scan.bad_label || scan.bad_score) return;
                if (!ranking.labels.empty()) largest[q] = ranking.labels[0];
                for (size_t i = 0; i < requests.size(); ++i)
                    out[static_cast<int64_t>(i) * n_queries + q] =
                        requests[i]->function(*requests[i], ranking);
            }
        });
    }
    double max_label = 0.0;
    for (const double v : largest) max_label = std::max(max_label, v);
    return nb::make_tuple(values, max_label, !bad_label, !bad_score);
}

}  // namespace

void bind_metrics(nb::module_& m) {
    nb::class_<Request>(m, "Request", "One metric with its conventions, as the kernel reads it.")
        .def("__init__", &make_request, "function"_a, nb::kw_only(), "k"_a, "rel"_a, "parameter"_a,
             "neutral"_a, "gain"_a, "cut_short"_a, "zero_short"_a, "norm_min"_a, "together"_a,
             "tail_always"_a, "round_up"_a, "empty"_a, "gains"_a.noconvert(),
             "discounts"_a.noconvert(), "weights"_a.noconvert());
    m.def("compute_metrics", &compute, "requests"_a, "ties"_a, "full"_a, "pooled"_a,
          "label"_a.noconvert(), "score"_a.noconvert(), "offsets"_a.noconvert(), "n_threads"_a = 0,
          "Values (n_requests, n_queries), largest label, labels valid, scores valid.");
}
