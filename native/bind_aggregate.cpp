#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <map>
#include <string>
#include <tuple>

#include "aggregate.hpp"
#include "aggregate_pairs.hpp"
#include "arrays.hpp"
#include "kemeny.hpp"
#include "names.hpp"

namespace {

using namespace rankwise;
using namespace rankwise::lists;
using namespace nb::literals;
using rankwise::lists::Ties;

const std::map<std::string, Ties> kListTies = {{"average", Ties::average},
                                               {"stable", Ties::stable},
                                               {"worst", Ties::worst},
                                               {"best", Ties::best}};
const std::map<std::string, Missing> kMissing = {{"skip", Missing::skip},
                                                 {"last", Missing::last},
                                                 {"mean", Missing::mean},
                                                 {"zero", Missing::zero},
                                                 {"min", Missing::min}};
const std::map<std::string, Points> kPoints = {
    {"borda", Points::borda}, {"rrf", Points::reciprocal}, {"isr", Points::inverse_square}};
const std::map<std::string, Hits> kHits = {
    {"none", Hits::none}, {"count", Hits::count}, {"log", Hits::logarithm}};
const std::map<std::string, Comb> kComb = {{"sum", Comb::sum}, {"mnz", Comb::mnz},
                                           {"min", Comb::min}, {"max", Comb::max},
                                           {"med", Comb::med}, {"anz", Comb::anz}};
const std::map<std::string, Norm> kNorm = {{"minmax", Norm::minmax}, {"max", Norm::max},
                                           {"sum", Norm::sum},       {"zscore", Norm::zscore},
                                           {"rank", Norm::rank},     {"borda", Norm::borda}};

// Rank lists as they come from Python, checked: the kernels index by all of it.
struct Given {
    In<int64_t> offsets, starts;
    In<int32_t> item;
    In<double> score;

    Lists view() const {
        if (offsets.shape(0) == 0) throw nb::value_error("offsets must start at 0");
        check_offsets(offsets, static_cast<size_t>(offsets.data()[offsets.shape(0) - 1]));
        check_offsets(starts, item.shape(0));
        const auto n_queries = static_cast<int64_t>(offsets.shape(0)) - 1;
        const auto n_lists = static_cast<int64_t>(starts.shape(0)) - 1;
        const int64_t per_query = n_queries > 0 ? n_lists / n_queries : 0;
        if (n_lists != per_query * n_queries || score.shape(0) != item.shape(0))
            throw nb::value_error("starts must hold as many lists for every query, score as item");
        const Lists v{offsets.data(), starts.data(), item.data(),
                      score.data(),   n_queries,     per_query};
        for (int64_t q = 0; q < n_queries; ++q) {
            const auto n = static_cast<uint32_t>(v.n_items(q));
            const int64_t begin = starts.data()[q * per_query];
            bool ok = true;
            for (int64_t e = begin; e < starts.data()[(q + 1) * per_query]; ++e)
                ok &= static_cast<uint32_t>(item.data()[e]) < n;
            if (!ok) throw nb::value_error("item must number the items of its query");
        }
        return v;
    }
};

void check_weight(const In<double>& weight, const Lists& v) {
    if (v.n_queries > 0 && static_cast<int64_t>(weight.shape(0)) != v.n_lists)
        throw nb::value_error("weight must hold one weight for each list");
}

Out<double> scores_of(const Lists& v) {
    return new_array<double>(static_cast<size_t>(v.offsets[v.n_queries]));
}

Out<double> lists_positional(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                             In<double> score, In<double> weight, const std::string& points,
                             double k, const std::string& hits, double sigma,
                             const std::string& ties, const std::string& missing, int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Points kind = look_up(kPoints, points);
    const Hits factor = look_up(kHits, hits);
    const Ties tie = look_up(kListTies, ties);
    const Missing absent = look_up(kMissing, missing);
    auto out = scores_of(v);
    nb::gil_scoped_release release;
    positional(v, weight.data(), kind, k, tie, absent, factor, sigma, out.data(), n_threads);
    return out;
}

Out<double> lists_comb(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item, In<double> score,
                       In<double> weight, const std::string& name, const std::string& missing,
                       int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Comb kind = look_up(kComb, name);
    const Missing absent = look_up(kMissing, missing);
    auto out = scores_of(v);
    nb::gil_scoped_release release;
    comb(v, weight.data(), kind, absent, out.data(), n_threads);
    return out;
}

std::tuple<Out<double>, int64_t> lists_normalise(In<int64_t> offsets, In<int64_t> starts,
                                                 In<int32_t> item, In<double> score,
                                                 const std::string& name, int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    const Norm kind = look_up(kNorm, name);
    auto out = new_array<double>(score.shape(0));
    nb::gil_scoped_release release;
    const int64_t refused = normalise(v, kind, out.data(), n_threads);
    return {out, refused};
}

Out<double> lists_ranks(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item, In<double> score,
                        const std::string& ties, int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    const Ties tie = look_up(kListTies, ties);
    auto out = new_array<double>(score.shape(0));
    nb::gil_scoped_release release;
    entry_ranks(v, tie, out.data(), n_threads);
    return out;
}

Out<double> lists_copeland(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                           In<double> score, In<double> weight, const std::string& missing,
                           int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Missing absent = look_up(kMissing, missing);
    auto out = scores_of(v);
    nb::gil_scoped_release release;
    copeland(v, weight.data(), absent, out.data(), n_threads);
    return out;
}

Out<double> lists_condorcet(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                            In<double> score, In<double> weight, const std::string& missing,
                            int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Missing absent = look_up(kMissing, missing);
    auto out = scores_of(v);
    nb::gil_scoped_release release;
    condorcet(v, weight.data(), absent, out.data(), n_threads);
    return out;
}

std::tuple<Out<double>, int64_t> lists_markov(In<int64_t> offsets, In<int64_t> starts,
                                              In<int32_t> item, In<double> score, In<double> weight,
                                              const std::string& missing, int kind, double eps,
                                              double tolerance, int max_sweeps, int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Missing absent = look_up(kMissing, missing);
    if (kind < 1 || kind > 4) throw nb::value_error("kind must be 1, 2, 3 or 4");
    auto out = scores_of(v);
    nb::gil_scoped_release release;
    const int64_t failed =
        markov(v, weight.data(), absent, kind, eps, tolerance, max_sweeps, out.data(), n_threads);
    return {out, failed};
}

Out2<double> lists_chain(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                         In<double> score, In<double> weight, const std::string& missing, int kind,
                         int64_t query) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    if (query < 0 || query >= v.n_queries) throw nb::value_error("there is no such query");
    Chain chain;
    chain.build(v, query, weight.data(), look_up(kMissing, missing), kind);
    const auto n = static_cast<size_t>(chain.n);
    auto out = new_matrix<double>(n, n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) out.data()[j * n + i] = chain.into[i * n + j];
    return out;
}

Out2<double> lists_preferences(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                               In<double> score, In<double> weight, const std::string& missing,
                               int64_t query, int n_threads) {
    const Lists v = Given{offsets, starts, item, score}.view();
    check_weight(weight, v);
    const Missing absent = look_up(kMissing, missing);
    if (query < 0 || query >= v.n_queries) throw nb::value_error("there is no such query");
    const auto n = static_cast<size_t>(v.n_items(query));
    auto out = new_matrix<double>(n, n);
    nb::gil_scoped_release release;
    RankRows ranks;
    ranks.fill(v, query, weight.data(), absent);
    preferences(ranks, out.data(), n_threads);
    return out;
}

std::tuple<Out<int64_t>, Out<int32_t>, Out<double>> lists_from_matrix(In2<double> R,
                                                                      In<int64_t> offsets,
                                                                      int n_threads) {
    check_offsets(offsets, R.shape(0));
    const auto n_queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    const auto n_lists = static_cast<int64_t>(R.shape(1));
    auto starts = new_array<int64_t>(static_cast<size_t>(n_queries * n_lists) + 1);
    matrix_starts(R.data(), offsets.data(), n_queries, n_lists, starts.data());
    const auto n = static_cast<size_t>(starts.data()[n_queries * n_lists]);
    auto item = new_array<int32_t>(n);
    auto score = new_array<double>(n);
    nb::gil_scoped_release release;
    matrix_entries(R.data(), offsets.data(), n_queries, n_lists, starts.data(), item.data(),
                   score.data(), n_threads);
    return {starts, item, score};
}

Out2<double> lists_matrix(In<int64_t> offsets, In<int64_t> starts, In<int32_t> item,
                          In<double> score, double fill) {
    const Lists v = Given{offsets, starts, item, score}.view();
    auto out = new_matrix<double>(static_cast<size_t>(v.offsets[v.n_queries]),
                                  static_cast<size_t>(v.n_lists));
    nb::gil_scoped_release release;
    entries_matrix(v, score.data(), fill, out.data());
    return out;
}

Out<int64_t> kemeny_order(In2<double> W) {
    const size_t n = W.shape(0);
    if (n != W.shape(1) || n == 0 || n > 20)
        throw nb::value_error("W must be square, with at most 20 items");
    std::vector<int64_t> order;
    {
        nb::gil_scoped_release release;
        order = best_order(W.data(), static_cast<int>(n));
    }
    return move_array(std::move(order));
}

}  // namespace

#define RANKWISE_LISTS \
    "offsets"_a.noconvert(), "starts"_a.noconvert(), "item"_a.noconvert(), "score"_a.noconvert()

void bind_aggregate(nb::module_& m) {
    m.def("lists_from_matrix", &lists_from_matrix, "R"_a.noconvert(), "offsets"_a.noconvert(),
          "n_threads"_a = 0, "starts, item, score of the entries of score columns.");
    m.def("lists_matrix", &lists_matrix, RANKWISE_LISTS, "fill"_a,
          "The entries as score columns, `fill` where a list does not hold the item.");
    m.def("lists_positional", &lists_positional, RANKWISE_LISTS, "weight"_a.noconvert(), "points"_a,
          "k"_a, "hits"_a, "sigma"_a, "ties"_a, "missing"_a, "n_threads"_a = 0,
          "Sums of the points that items get for their positions.");
    m.def("lists_comb", &lists_comb, RANKWISE_LISTS, "weight"_a.noconvert(), "name"_a, "missing"_a,
          "n_threads"_a = 0, "Sums, extremes or medians of scores.");
    m.def("lists_normalise", &lists_normalise, RANKWISE_LISTS, "name"_a, "n_threads"_a = 0,
          "Scores of every list on one scale, and the first list without one (or -1).");
    m.def("lists_ranks", &lists_ranks, RANKWISE_LISTS, "ties"_a, "n_threads"_a = 0,
          "Ranks from 1 of every entry in its list.");
    m.def("lists_copeland", &lists_copeland, RANKWISE_LISTS, "weight"_a.noconvert(), "missing"_a,
          "n_threads"_a = 0, "Majorities won minus lost.");
    m.def("lists_condorcet", &lists_condorcet, RANKWISE_LISTS, "weight"_a.noconvert(), "missing"_a,
          "n_threads"_a = 0, "Places after sorting by majority.");
    m.def("lists_markov", &lists_markov, RANKWISE_LISTS, "weight"_a.noconvert(), "missing"_a,
          "kind"_a, "eps"_a, "tolerance"_a, "max_sweeps"_a, "n_threads"_a = 0,
          "Stationary chances, and the number of queries that did not converge.");
    m.def("lists_chain", &lists_chain, RANKWISE_LISTS, "weight"_a.noconvert(), "missing"_a,
          "kind"_a, "query"_a, "The matrix of steps of one query's Markov chain.");
    m.def("lists_preferences", &lists_preferences, RANKWISE_LISTS, "weight"_a.noconvert(),
          "missing"_a, "query"_a, "n_threads"_a = 0,
          "W[i, j]: the weight of the lists that rank i before j.");
    m.def("best_order", &kemeny_order, "W"_a.noconvert(),
          "The order with the least sum of W[j, i] over i before j.");
}
