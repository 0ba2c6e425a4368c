// The loops compiled for one element at a time, on any processor.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/loops.hpp"
#include "kernels/element/lane_sum.hpp"

namespace gradfuse::cpu {
namespace scalar_target {
namespace {
#define GF_ATTR
#define GF_NOINLINE
#include "kernels/cpu/scalar_arithmetic-inl.hpp"

#include "kernels/cpu/loops-inl.hpp"
}  // namespace
}  // namespace scalar_target

const Loops& scalar_loops() {
  static const Loops table = scalar_target::make_loops("scalar");
  return table;
}

}  // namespace gradfuse::cpu
