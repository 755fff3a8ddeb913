#include "arrays.hpp"

void bind_letor(nanobind::module_&) {}
