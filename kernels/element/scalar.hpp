#pragma once
// The element formulas on plain float and double: one CUDA thread, the scalar CPU loops, and the tests' reference.
#include <gradfuse/loss_scale.hpp>
#include <gradfuse/step_outcome.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#define GF_ELEMENT __host__ __device__ inline
#else
#define GF_ELEMENT inline
#endif

namespace gradfuse::element {

// Qualified calls below: an unqualified `fma` of floats is the C library's *double* version on the host.
GF_ELEMENT float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
GF_ELEMENT double fma(double a, double b, double c) { return ::fma(a, b, c); }
GF_ELEMENT float sqrt(float a) { return ::sqrtf(a); }
GF_ELEMENT double sqrt(double a) { return ::sqrt(a); }
/// `b` when either is NaN: one rule for every machine (CUDA's fmaxf drops a NaN, x86's maxps returns the second).
GF_ELEMENT float max(float a, float b) { return a > b ? a : b; }
GF_ELEMENT double max(double a, double b) { return a > b ? a : b; }
GF_ELEMENT float if_at_most(float a, float b, float yes, float no) { return a <= b ? yes : no; }
GF_ELEMENT double if_at_most(double a, double b, double yes, double no) { return a <= b ? yes : no; }
GF_ELEMENT std::uint32_t select_if_greater(std::uint32_t a, std::uint32_t b, std::uint32_t yes, std::uint32_t no) {
  return a > b ? yes : no;
}
GF_ELEMENT std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
GF_ELEMENT float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The names that the formulas use for any arithmetic type.
GF_ELEMENT std::uint32_t bits_of(float value) { return bits_of_float(value); }
GF_ELEMENT float float_of(std::uint32_t bits) { return float_of_bits(bits); }
template <class F>
GF_ELEMENT F constant(float value) {
  return value;
}

#include "kernels/element/accumulate.hpp"
#include "kernels/element/adam.hpp"
#include "kernels/element/convert.hpp"
#include "kernels/element/half.hpp"
#include "kernels/element/power.hpp"
#include "kernels/element/sgd.hpp"
#include "kernels/element/transcendental.hpp"

#include "kernels/element/activation.hpp"
#include "kernels/element/control.hpp"
#include "kernels/element/normalise.hpp"

}  // namespace gradfuse::element
