#include "arrays.hpp"

void bind_pairs(nanobind::module_&) {}
