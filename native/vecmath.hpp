// Cosine, sine, powers of two and a logarithm of whole vectors.
//
// Arguments are in the units in which reduction is exact: turns for the circle functions
// (cos(2 pi t)), powers of two for the exponential (2^y). Taking off the nearest integer then loses
// nothing, however large the argument, and what is left is a polynomial. Nothing is contracted
// to fused multiply-adds: every instruction set returns the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace rankwise {

// 32 bytes of numbers and of integers as wide as they are.
template <class T>
struct Wide;
template <>
struct Wide<double> {
    typedef double Vec __attribute__((vector_size(32)));
    typedef int64_t Int __attribute__((vector_size(32)));
    static constexpr int kLanes = 4;
    static constexpr int kMantissa = 52;
    static constexpr int64_t kBias = 1023;
    static constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to an integer
};
template <>
struct Wide<float> {
    typedef float Vec __attribute__((vector_size(32)));
    typedef int32_t Int __attribute__((vector_size(32)));
    static constexpr int kLanes = 8;
    static constexpr int kMantissa = 23;
    static constexpr int32_t kBias = 127;
    static constexpr float kRound = 0x1.8p23f;
};

// Minimax polynomials, found by Remez's exchange: sin(2 pi s) / s in s^2 for |s| <= 1/4 (relative
// error 3e-19 and 5e-9), and 2^f for |f| <= 1/2 (relative error 3e-18 and 2e-9).
template <class T>
struct Coefficients;
template <>
struct Coefficients<double> {
    static constexpr double kSine[] = {
        0x1.921fb54442d18p+2,  -0x1.4abbce625be52p+5, 0x1.466bc6775aa6ep+6,
        -0x1.32d2cce627542p+6, 0x1.50783485190b6p+5,  -0x1.e3074ddd1ccefp+3,
        0x1.e8f35e9d2e2f0p+1,  -0x1.6f79770622fe1p-1, 0x1.9d1b85dad7d54p-4};
    static constexpr double kPower[] = {
        0x1.0000000000000p+0,  0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5adp-3,  0x1.c6b08d7049fd1p-5,
        0x1.3b2ab6fb9f413p-7,  0x1.5d87fe78cf261p-10, 0x1.43091310bf643p-13, 0x1.ffcbfba7bc040p-17,
        0x1.62bfc3c1d862dp-20, 0x1.b526788439c1cp-24, 0x1.e620fb5daac71p-28, 0x1.e7aa19da01508p-32};
};
template <>
struct Coefficients<float> {
    static constexpr float kSine[] = {0x1.921fb52068fd9p+2f, -0x1.4abbc166dabbfp+5f,
                                      0x1.4668af4e65ee8p+6f, -0x1.324ccabc22866p+6f,
                                      0x1.3daff59dae43dp+5f};
    static constexpr float kPower[] = {
        0x1.00000002614aep+0f, 0x1.62e430c7e8f02p-1f,  0x1.ebfbdadcbfeacp-3f, 0x1.c6aed4b996138p-5f,
        0x1.3b2dbbb64061ap-7f, 0x1.5f456a7232c98p-10f, 0x1.41d33a98bd9acp-13f};
};

template <class V, class T, int N>
RANKWISE_INLINE void polynomial(const V& x, const T (&c)[N], V& p) {
    p = x * c[N - 1] + c[N - 2];
    for (int i = N - 3; i >= 0; --i) p = p * x + c[i];
}

template <class T>
RANKWISE_INLINE void sine_of_quarter(const typename Wide<T>::Vec& s, typename Wide<T>::Vec& out) {
    const typename Wide<T>::Vec square = s * s;
    polynomial(square, Coefficients<T>::kSine, out);
    out *= s;
}

template <class T>
RANKWISE_INLINE void fraction(const typename Wide<T>::Vec& t, typename Wide<T>::Vec& r) {
    r = t - ((t + Wide<T>::kRound) - Wide<T>::kRound);
}

// cos(2 pi t) for |t| below 2^51 (float: 2^22). A quarter of a turn minus the distance to the
// nearest whole turn has the sine we want, between -1/4 and 1/4.
template <class T>
RANKWISE_INLINE void cos_of_turns(const typename Wide<T>::Vec& t, typename Wide<T>::Vec& out) {
    typename Wide<T>::Vec r;
    fraction<T>(t, r);
    const typename Wide<T>::Vec negative = -r;
    r = r < 0 ? negative : r;
    r = T(0.25) - r;
    sine_of_quarter<T>(r, out);
}

// sin(2 pi t): half a turn minus what is left, where that is more than a quarter.
template <class T>
RANKWISE_INLINE void sin_of_turns(const typename Wide<T>::Vec& t, typename Wide<T>::Vec& out) {
    typename Wide<T>::Vec r;
    fraction<T>(t, r);
    const typename Wide<T>::Vec above = T(0.5) - r, below = T(-0.5) - r;
    r = r > T(0.25) ? above : r;
    r = r < T(-0.25) ? below : r;
    sine_of_quarter<T>(r, out);
}

// 2^y for y <= 0. What would be below the smallest normal number is 0.
template <class T>
RANKWISE_INLINE void power_of_two(const typename Wide<T>::Vec& y, typename Wide<T>::Vec& out) {
    typedef typename Wide<T>::Vec Vec;
    typedef typename Wide<T>::Int Int;
    const T lowest = T(1 - Wide<T>::kBias);
    const Vec floor = Vec{} + lowest;
    const Vec bounded = y > lowest ? y : floor;
    const Vec shifted = bounded + Wide<T>::kRound;
    const Vec f = bounded - (shifted - Wide<T>::kRound);
    Vec p;
    polynomial(f, Coefficients<T>::kPower, p);
    // The integer sits in the low bits of the shifted number; it moves into the exponent.
    const Int scale =
        (((Int)shifted) << Wide<T>::kMantissa) + (Int{} + (Wide<T>::kBias << Wide<T>::kMantissa));
    p *= (Vec)scale;
    const Vec zero = {};
    out = y >= lowest ? p : zero;
}

// log(1 + r) for 0 <= r <= 1 with full relative accuracy: 2 atanh of the ratio below, centred at
// r = 0 or at r = sqrt(2) - 1.
RANKWISE_INLINE void log_one_plus(const HalfLanes& r, HalfLanes& out) {
    const HalfLanes zero = {}, one = zero + 1.0;
    const HalfMask high = r > 0.41421356237309503;
    const HalfLanes c = high ? zero + 1.4142135623730951 : one;
    const HalfLanes log_c = high ? zero + 0.34657359027997270 : zero;
    const HalfLanes top = high ? (one + r) - c : r;
    const HalfLanes z = top / ((one + r) + c), z2 = z * z;
    HalfLanes series = zero + 1.0 / 21;
    for (int odd = 19; odd >= 1; odd -= 2) series = series * z2 + 1.0 / odd;
    out = log_c + 2.0 * z * series;
}

}  // namespace rankwise
