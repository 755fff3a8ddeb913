#include "arrays.hpp"

void bind_metrics(nanobind::module_&) {}
