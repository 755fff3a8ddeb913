#include "arrays.hpp"

void bind_correlation(nanobind::module_& m) { (void)m; }
