#include <nanobind/stl/tuple.h>

#include <cmath>

#include "arrays.hpp"
#include "assignment.hpp"
#include "parallel.hpp"

using namespace rankwise;
using namespace nb::literals;

namespace {

void check_weights(const char* name, const In<double>& weights, int64_t longest) {
    const double* w = weights.data();
    bool ok = static_cast<int64_t>(weights.shape(0)) >= longest;
    for (size_t i = 0; ok && i < weights.shape(0); ++i)
        ok = std::isfinite(w[i]) && (i == 0 || w[i] <= w[i - 1]);
    if (!ok)
        throw nb::value_error(
            (std::string(name) + " must hold a finite weight for each place, never rising")
                .c_str());
}

std::tuple<Out<int64_t>, Out<double>> most_violated(In<double> score, In<double> gain,
                                                    In<int64_t> offsets, In<double> measure,
                                                    In<double> place, int n_threads) {
    check_offsets(offsets, score.shape(0));
    if (gain.shape(0) != score.shape(0)) throw nb::value_error("score and gain must pair up");
    for (size_t i = 0; i < score.shape(0); ++i)
        if (!std::isfinite(score.data()[i]) || !std::isfinite(gain.data()[i]))
            throw nb::value_error("scores and gains must be finite");
    const int64_t n_queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    const int64_t* at = offsets.data();
    int64_t longest = 0;
    for (int64_t q = 0; q < n_queries; ++q) longest = std::max(longest, at[q + 1] - at[q]);
    check_weights("measure", measure, longest);
    check_weights("place", place, longest);
    auto ranking = new_array<int64_t>(score.shape(0));
    auto cost = new_array<double>(n_queries);
    {
        nb::gil_scoped_release release;
        const int64_t work = static_cast<int64_t>(score.shape(0)) * 200;
        parallel_for(n_queries, work, n_threads, [&](int64_t q) {
            thread_local Assignment assignment;
            const int64_t begin = at[q];
            cost.data()[q] =
                assignment.solve(score.data() + begin, gain.data() + begin, at[q + 1] - begin,
                                 measure.data(), place.data(), ranking.data() + begin);
        });
    }
    return {ranking, cost};
}

}  // namespace

void bind_assignment(nb::module_& m) {
    m.def("most_violated", &most_violated, "score"_a.noconvert(), "gain"_a.noconvert(),
          "offsets"_a.noconvert(), "measure"_a.noconvert(), "place"_a.noconvert(),
          "n_threads"_a = 0,
          "Of each query the ranking that minimises sum a b - c f over places, and that cost. "
          "Rankings count documents inside their query.");
}
