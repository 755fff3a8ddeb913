// Fixed-width vectors of doubles. A sum over lanes is taken in one written-down order, whatever
// instruction set the machine has, so that every variant of a kernel returns the same bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace rankwise {

#define RANKWISE_INLINE inline __attribute__((always_inline))

typedef double Lanes __attribute__((vector_size(64)));      // eight doubles
typedef double HalfLanes __attribute__((vector_size(32)));  // four doubles
typedef float HalfFloats __attribute__((vector_size(16)));  // four floats
typedef int64_t HalfMask __attribute__((vector_size(32)));  // what comparing HalfLanes gives

RANKWISE_INLINE void load(const double* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
RANKWISE_INLINE void store(const Lanes& from, double* to) { std::memcpy(to, &from, sizeof from); }
RANKWISE_INLINE void load(const double* from, HalfLanes& to) { std::memcpy(&to, from, sizeof to); }
RANKWISE_INLINE void load(const float* from, HalfLanes& to) {
    HalfFloats narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    to = __builtin_convertvector(narrow, HalfLanes);
}
RANKWISE_INLINE void store(const HalfLanes& from, double* to) {
    std::memcpy(to, &from, sizeof from);
}

RANKWISE_INLINE double sum(const HalfLanes& v) { return (v[0] + v[2]) + (v[1] + v[3]); }

}  // namespace rankwise
