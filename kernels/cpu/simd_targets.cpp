// The loops compiled once per SIMD target, and the choice among them at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd_targets.cpp"  // foreach_target.h includes this file again per target
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/loops.hpp"
#include "kernels/element/lane_sum.hpp"

// Highway always compiles a baseline; where that has no fused multiply-add, scalar_target.cpp stands in for it.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace gradfuse::cpu {
namespace HWY_NAMESPACE {
namespace {
#undef GF_ELEMENT
#define GF_ELEMENT HWY_INLINE
#undef GF_ATTR
#define GF_ATTR HWY_ATTR
#undef GF_NOINLINE
#define GF_NOINLINE HWY_NOINLINE
#include "kernels/cpu/highway_arithmetic-inl.hpp"
#include "kernels/cpu/loops-inl.hpp"
}  // namespace

const Loops& loops(std::string_view target) {
  static const Loops table = make_loops(target);
  return table;
}
}  // namespace HWY_NAMESPACE
}  // namespace gradfuse::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace gradfuse::cpu {
namespace {
std::vector<const Loops*> find_available_loops() {
  std::vector<const Loops*> available;
  [[maybe_unused]] const auto supported = hwy::SupportedTargets();
#if HWY_TARGETS & HWY_AVX3
  if (supported & HWY_AVX3) available.push_back(&N_AVX3::loops("avx512"));
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supported & HWY_AVX2) available.push_back(&N_AVX2::loops("avx2"));
#endif
#if HWY_TARGETS & HWY_NEON
  if (supported & HWY_NEON) available.push_back(&N_NEON::loops("neon"));
#endif
  available.push_back(&scalar_loops());
  return available;
}
}  // namespace

std::span<const Loops* const> available_loops() {
  static const std::vector<const Loops*> available = find_available_loops();
  return available;
}

}  // namespace gradfuse::cpu
#endif
