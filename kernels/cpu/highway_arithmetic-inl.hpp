// The arithmetic type of one SIMD target, as a thin skin over Highway: what the element formulas and loops need.
// Included once per target inside its namespace: no guard, no includes.
// Highway's `MulAdd` is one rounding on the targets that are compiled here (AVX2, AVX-512, NEON), and only there.

namespace hn = hwy::HWY_NAMESPACE;
using D32 = hn::ScalableTag<float>;
using DU32 = hn::RebindToUnsigned<D32>;
using D64 = hn::ScalableTag<double>;
inline constexpr std::size_t kLanes = hn::MaxLanes(D32{});

struct F32 {
  hn::Vec<D32> v;
};
struct U32 {
  hn::Vec<DU32> v;
  explicit U32(std::uint32_t value) : v(hn::Set(DU32{}, value)) {}
  explicit U32(hn::Vec<DU32> vec) : v(vec) {}
};

HWY_INLINE F32 operator+(F32 a, F32 b) { return {hn::Add(a.v, b.v)}; }
HWY_INLINE F32 operator-(F32 a, F32 b) { return {hn::Sub(a.v, b.v)}; }
HWY_INLINE F32 operator*(F32 a, F32 b) { return {hn::Mul(a.v, b.v)}; }
HWY_INLINE F32 operator/(F32 a, F32 b) { return {hn::Div(a.v, b.v)}; }
HWY_INLINE F32 fma(F32 a, F32 b, F32 c) { return {hn::MulAdd(a.v, b.v, c.v)}; }
HWY_INLINE F32 sqrt(F32 a) { return {hn::Sqrt(a.v)}; }
HWY_INLINE F32 max(F32 a, F32 b) { return {hn::IfThenElse(hn::Gt(a.v, b.v), a.v, b.v)}; }
HWY_INLINE F32 splat(float value) { return {hn::Set(D32{}, value)}; }
template <class F>
HWY_INLINE F constant(float value) {
  return splat(value);
}
HWY_INLINE F32 if_at_most(F32 a, F32 b, F32 yes, F32 no) { return {hn::IfThenElse(hn::Le(a.v, b.v), yes.v, no.v)}; }

HWY_INLINE U32 operator+(U32 a, U32 b) { return U32(hn::Add(a.v, b.v)); }
HWY_INLINE U32 operator&(U32 a, U32 b) { return U32(hn::And(a.v, b.v)); }
HWY_INLINE U32 operator|(U32 a, U32 b) { return U32(hn::Or(a.v, b.v)); }
HWY_INLINE U32 operator>>(U32 a, int bits) { return U32(hn::ShiftRightSame(a.v, bits)); }
HWY_INLINE U32 operator<<(U32 a, int bits) { return U32(hn::ShiftLeftSame(a.v, bits)); }
HWY_INLINE U32 max(U32 a, U32 b) { return U32(hn::Max(a.v, b.v)); }
HWY_INLINE U32 select_if_greater(U32 a, U32 b, U32 yes, U32 no) {
  return U32(hn::IfThenElse(hn::Gt(a.v, b.v), yes.v, no.v));
}
HWY_INLINE U32 bits_of(F32 a) { return U32(hn::BitCast(DU32{}, a.v)); }
HWY_INLINE F32 float_of(U32 a) { return {hn::BitCast(D32{}, a.v)}; }

HWY_INLINE bool any_nan(F32 a) { return !hn::AllFalse(D32{}, hn::IsNaN(a.v)); }
HWY_INLINE float largest(F32 a) { return hn::GetLane(hn::MaxOfLanes(D32{}, a.v)); }
HWY_INLINE std::uint32_t largest(U32 a) { return hn::GetLane(hn::MaxOfLanes(DU32{}, a.v)); }

#include "kernels/element/convert.hpp"

HWY_INLINE F32 load_vector(const float* from) { return {hn::LoadU(D32{}, from)}; }
HWY_INLINE F32 load_vector(const Float16* from) {
  const hn::Rebind<hwy::float16_t, D32> half;
  return {hn::PromoteTo(D32{}, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from)))};
}
HWY_INLINE F32 load_vector(const BFloat16* from) {
  const hn::Rebind<std::uint16_t, D32> half;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
  return float_of(float_bits_from_bfloat16(U32(hn::PromoteTo(DU32{}, bits))));
}
HWY_INLINE F32 load_vector(const double* from) {
  HWY_ALIGN float narrowed[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) narrowed[l] = static_cast<float>(from[l]);
  return {hn::Load(D32{}, narrowed)};
}

/// Writes whole vectors, through the caches or around them.
template <Store kStore, class D, class V, class T>
HWY_INLINE void put(D d, V v, T* to) {
  if constexpr (kStore == Store::kStreaming) {
    hn::Stream(v, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}
template <Store kStore>
HWY_INLINE void store_vector(F32 a, float* to) {
  put<kStore>(D32{}, a.v, to);
}
template <Store kStore>
HWY_INLINE void store_vector(F32 a, Float16* to) {
  const hn::Rebind<hwy::float16_t, D32> half;
  // As 16-bit integers: Highway 1.0 has no Stream of float16.
  const hn::Rebind<std::uint16_t, D32> bits;
  put<kStore>(bits, hn::BitCast(bits, hn::DemoteTo(half, a.v)), reinterpret_cast<std::uint16_t*>(to));
}
template <Store kStore>
HWY_INLINE void store_vector(F32 a, BFloat16* to) {
  // On the bits: Highway 1.0's DemoteTo(bfloat16) truncates, and vcvtneps2bf16 flushes denormals.
  const hn::Rebind<std::uint16_t, D32> half;
  const hn::Rebind<std::int32_t, D32> wide;
  const U32 bits = bfloat16_from_float_bits(bits_of(a));
  put<kStore>(half, hn::DemoteTo(half, hn::BitCast(wide, bits.v)), reinterpret_cast<std::uint16_t*>(to));
}

/// What a reader of the stored value sees.
template <class Out>
HWY_INLINE F32 rounded_to(F32 a) {
  if constexpr (std::is_same_v<Out, Float16>) {
    const hn::Rebind<hwy::float16_t, D32> half;
    return {hn::PromoteTo(D32{}, hn::DemoteTo(half, a.v))};
  } else if constexpr (std::is_same_v<Out, BFloat16>) {
    return float_of(float_bits_from_bfloat16(bfloat16_from_float_bits(bits_of(a))));
  } else {
    return a;
  }
}

/// kLanes sums in FP64, where the square of a float is exact.
struct F64Lanes {
  hn::Vec<D64> low, high;
  // Not the implicit ones: g++ compiles those without this target's instructions, and on NEON refuses to.
  HWY_INLINE F64Lanes() {}
  HWY_INLINE F64Lanes(hn::Vec<D64> low_, hn::Vec<D64> high_) : low(low_), high(high_) {}
};
HWY_INLINE F64Lanes operator+(F64Lanes a, F64Lanes b) { return {hn::Add(a.low, b.low), hn::Add(a.high, b.high)}; }
HWY_INLINE F64Lanes zero_lanes() { return {hn::Zero(D64{}), hn::Zero(D64{})}; }
HWY_INLINE F64Lanes load_lanes(const double* from) {  // aligned to a vector
  return {hn::Load(D64{}, from), hn::Load(D64{}, from + kLanes / 2)};
}
HWY_INLINE void store_lanes(F64Lanes a, double* to) {
  hn::Store(a.low, D64{}, to);
  hn::Store(a.high, D64{}, to + kLanes / 2);
}
/// The upper half of the lanes onto the lower, until one is left.
template <class D>
HWY_INLINE hn::TFromD<D> fold_vector(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D{}) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return fold_vector(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
HWY_INLINE float fold(F32 a) { return fold_vector(D32{}, a.v); }
HWY_INLINE double fold(F64Lanes a) { return fold_vector(D64{}, hn::Add(a.low, a.high)); }
HWY_INLINE F64Lanes add_squares(F32 x, F64Lanes sums) {
  const auto low = hn::PromoteTo(D64{}, hn::LowerHalf(x.v));
  const auto high = hn::PromoteTo(D64{}, hn::UpperHalf(hn::Half<D32>{}, x.v));
  return {hn::MulAdd(low, low, sums.low), hn::MulAdd(high, high, sums.high)};
}

HWY_INLINE void prefetch(const void* from) { hwy::Prefetch(static_cast<const char*>(from)); }
HWY_INLINE void finish_streaming() { hwy::FlushStream(); }
