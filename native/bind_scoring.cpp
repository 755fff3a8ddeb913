#include "arrays.hpp"
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

}  // namespace

void bind_scoring(nb::module_& m) {
    m.def("rank_within", &ranks, "score"_a.noconvert(), "offsets"_a.noconvert(), "k"_a = -1,
          "n_threads"_a = 0,
          "1-based ranks by descending score inside each query; 0 below the first k.");
}
