#include "arrays.hpp"

void bind_lambdas(nanobind::module_&) {}
