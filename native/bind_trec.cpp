#include "arrays.hpp"

void bind_trec(nanobind::module_&) {}
