// Table of contents of rankwise._core: each bind_<topic>.cpp registers one topic.
#include <nanobind/nanobind.h>

#include "parallel.hpp"

namespace nb = nanobind;

void bind_groups(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_letor(nb::module_& m);
void bind_trec(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_hinge(nb::module_& m);
void bind_ordinal(nb::module_& m);
void bind_assignment(nb::module_& m);
void bind_structured(nb::module_& m);
void bind_lambdas(nb::module_& m);
void bind_scoring(nb::module_& m);
void bind_weak(nb::module_& m);
void bind_network(nb::module_& m);
void bind_maps(nb::module_& m);
void bind_aggregate(nb::module_& m);
void bind_fuse(nb::module_& m);
void bind_correlation(nb::module_& m);
void bind_isotonic(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() =
        "Kernels of rankwise over flat arrays and offsets. Private: call the public functions.";
    m.attr("__version__") = RANKWISE_VERSION;
    m.def(
        "max_threads", [] { return rankwise::thread_count(0); },
        "Number of threads the kernels use unless told otherwise.");
    bind_groups(m);
    bind_metrics(m);
    bind_letor(m);
    bind_trec(m);
    bind_pairs(m);
    bind_losses(m);
    bind_hinge(m);
    bind_ordinal(m);
    bind_assignment(m);
    bind_structured(m);
    bind_lambdas(m);
    bind_scoring(m);
    bind_weak(m);
    bind_network(m);
    bind_maps(m);
    bind_aggregate(m);
    bind_fuse(m);
    bind_correlation(m);
    bind_isotonic(m);
}
