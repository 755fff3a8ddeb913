#include "loss_arrays.hpp"
#include "losses_approx.hpp"
#include "losses_listwise.hpp"
#include "losses_pointwise.hpp"
#include "pairs_exponential.hpp"
#include "pairs_hinge.hpp"
#include "pairs_logistic.hpp"

using namespace rankwise;
using namespace nb::literals;

namespace {

int64_t n_queries(const In<int64_t>& offsets) { return static_cast<int64_t>(offsets.shape(0)) - 1; }

int64_t longest(const In<int64_t>& offsets) {
    int64_t most = 0;
    for (int64_t q = 0; q < n_queries(offsets); ++q)
        most = std::max(most, offsets.data()[q + 1] - offsets.data()[q]);
    return most;
}

ListMleLoss* new_list_mle(Column y, In<int64_t> offsets, std::optional<Column> weight,
                          std::optional<Column> position) {
    check_offsets(offsets, y.shape(0));
    if (weight) check_length("weight", *weight, static_cast<int64_t>(y.shape(0)));
    if (position) check_length("position", *position, longest(offsets));
    nb::gil_scoped_release release;
    return new ListMleLoss(y.data(), offsets.data(), n_queries(offsets),
                           weight ? weight->data() : nullptr,
                           position ? position->data() : nullptr);
}

ApproxNdcgLoss* new_approx_ndcg(Column gain, In<int64_t> offsets, Column scale, double alpha) {
    check_offsets(offsets, gain.shape(0));
    check_length("scale", scale, n_queries(offsets));
    nb::gil_scoped_release release;
    return new ApproxNdcgLoss(gain.data(), offsets.data(), n_queries(offsets), scale.data(), alpha);
}

BoltzRankLoss* new_boltz_rank(Column y, In<int64_t> offsets, std::optional<Column> weight,
                              In<int32_t> place, Column lost, int64_t n_samples,
                              double metric_weight, double sigma) {
    check_offsets(offsets, y.shape(0));
    if (weight) check_length("weight", *weight, static_cast<int64_t>(y.shape(0)));
    if (n_samples < 1 || place.shape(0) != y.shape(0) * static_cast<size_t>(n_samples))
        throw nb::value_error("place must hold n_samples rankings of every document");
    check_length("lost", lost, n_queries(offsets) * n_samples);
    nb::gil_scoped_release release;
    return new BoltzRankLoss(y.data(), offsets.data(), n_queries(offsets),
                             weight ? weight->data() : nullptr, place.data(), lost.data(),
                             n_samples, metric_weight, sigma);
}

void bind_pairwise(nb::module_& m) {
    bind_loss<SquaredHingeLoss, ConvexLoss>(m, "SquaredHingeLoss");
    bind_loss<HingeLoss, QueryLoss>(m, "HingeLoss");
    bind_loss<ExponentialLoss, ConvexLoss>(m, "ExponentialLoss");
    bind_loss<RankNetLoss, ConvexLoss, double, bool>(m, "RankNetLoss", "sigma"_a, "even"_a);
    bind_loss<FidelityLoss, QueryLoss, double>(m, "FidelityLoss", "sigma"_a);
    bind_given<SquaredHingePair>(m, "SquaredHingePairs");
    bind_given<HingePair>(m, "HingePairs");
    bind_given<ExponentialPair>(m, "ExponentialPairs");
    bind_given<LogisticPair, double>(m, "LogisticPairs", "sigma"_a);
    bind_given<FidelityPair, double>(m, "FidelityPairs", "sigma"_a);
}

}  // namespace

void bind_losses(nb::module_& m) {
    bind_loss<PointwiseLoss<SquaredPoint>, ConvexLoss>(m, "SquaredLoss");
    bind_loss<PointwiseLoss<LogisticPoint>, ConvexLoss>(m, "LogisticLoss");
    bind_loss<PointwiseLoss<PoissonPoint>, ConvexLoss>(m, "PoissonLoss");
    bind_pairwise(m);
    bind_loss<SoftmaxLoss, ConvexLoss, bool>(m, "SoftmaxLoss", "exponential"_a);
    nb::class_<ListMleLoss, ConvexLoss>(m, "ListMleLoss")
        .def(nb::new_(&new_list_mle), "y"_a.noconvert(), "offsets"_a.noconvert(),
             "weight"_a.noconvert().none(), "position"_a.noconvert().none());
    nb::class_<ApproxNdcgLoss, QueryLoss>(m, "ApproxNdcgLoss")
        .def(nb::new_(&new_approx_ndcg), "gain"_a.noconvert(), "offsets"_a.noconvert(),
             "scale"_a.noconvert(), "alpha"_a);
    nb::class_<BoltzRankLoss, QueryLoss>(m, "BoltzRankLoss")
        .def(nb::new_(&new_boltz_rank), "y"_a.noconvert(), "offsets"_a.noconvert(),
             "weight"_a.noconvert().none(), "place"_a.noconvert(), "lost"_a.noconvert(),
             "n_samples"_a, "metric_weight"_a, "sigma"_a);
}
