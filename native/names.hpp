// Words that Python passes for a choice.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "metrics_ranking.hpp"

namespace rankwise {

template <class Value>
Value look_up(const std::map<std::string, Value>& names, const std::string& name) {
    const auto found = names.find(name);
    if (found == names.end()) throw nanobind::value_error(("unknown name '" + name + "'").c_str());
    return found->second;
}

inline const std::map<std::string, Ties> kTies = {
    {"average", Ties::average},
    {"stable", Ties::stable},
    {"worst", Ties::worst},
    {"best", Ties::best},
};

}  // namespace rankwise
