#include "loss_arrays.hpp"
#include "pairs_hinge.hpp"
#include "pairs_logistic.hpp"

using namespace rankwise;
using namespace nb::literals;

void bind_losses(nb::module_& m) {
    bind_loss<SquaredLoss, ConvexLoss>(m, "SquaredLoss");
    bind_loss<ListNetLoss, ConvexLoss>(m, "ListNetLoss");
    bind_loss<SquaredHingeLoss, ConvexLoss>(m, "SquaredHingeLoss");
    bind_loss<RankNetLoss, ConvexLoss, double>(m, "RankNetLoss", "sigma"_a);
    bind_given<SquaredHingePair>(m, "SquaredHingePairs");
    bind_given<LogisticPair, double>(m, "LogisticPairs", "sigma"_a);
}
