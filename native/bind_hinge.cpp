#include "loss_arrays.hpp"
#include "pairs_hinge.hpp"

using namespace rankwise;
using namespace nb::literals;

namespace {

SmoothHingePairs* new_smooth_pairs(In<int64_t> offsets, std::optional<Column> weight,
                                   In<int64_t> winner, In<int64_t> loser,
                                   std::optional<Column> pair_weight,
                                   std::optional<Column> target) {
    const PairColumns pairs = check_pairs(offsets, weight, winner, loser, pair_weight, target);
    nb::gil_scoped_release release;
    return new SmoothHingePairs(offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1,
                                weight ? weight->data() : nullptr, pairs);
}

}  // namespace

void bind_hinge(nb::module_& m) {
    nb::class_<SmoothHinge, ConvexLoss>(m, "SmoothHinge", "The hinge of pairs, its corner rounded.")
        .def("set_width", &SmoothHinge::set_width, "mu"_a, "Width of the parabola, above 0.")
        .def("width", &SmoothHinge::width)
        .def("hinge", &SmoothHinge::hinge, "The hinge itself where last evaluated.")
        .def("slack", &SmoothHinge::slack,
             "Sum over pairs of t - a t, t the hinge and a the slope, where last evaluated.");
    bind_loss<SmoothHingeLoss, SmoothHinge>(m, "SmoothHingeLoss");
    nb::class_<SmoothHingePairs, SmoothHinge>(m, "SmoothHingePairs")
        .def(nb::new_(&new_smooth_pairs), "offsets"_a.noconvert(), "weight"_a.noconvert().none(),
             "winner"_a.noconvert(), "loser"_a.noconvert(), "pair_weight"_a.noconvert().none(),
             "target"_a.noconvert().none());
}
