#pragma once
// Loading and storing a thread's 8 elements of a row, of any dtype and alignment. Loading and widening are two steps,
// so that a kernel can have the loads of all its tensors under way before it waits for the first.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gradfuse/dtype.hpp>

#include <cstdint>

#include "kernels/cuda/row.hpp"
#include "kernels/element/scalar.hpp"

namespace gradfuse::cuda {

/// A thread's elements as they were loaded; of 16-bit types the 8 consecutive ones.
template <class T>
struct Raw {
  uint4 eight;
};
template <>
struct Raw<float> {
  float4 fours[2];
};
template <>
struct Raw<double> {
  double2 twos[4];
};

/// Data that is used once is streamed.
enum class Hint { kNone, kStreaming };
template <Hint kHint, class T>
__device__ inline T load_hinted(const T* from) {
  return kHint == Hint::kStreaming ? load_streaming(from) : load(from);
}

/// `row_data`: where the row begins. Elements outside the row's part are zero.
template <Hint kHint, class Kind>
__device__ inline Raw<float> load_raw(const float* row_data, const Row& row, const Place& place, Kind) {
  Raw<float> raw{};
  GF_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int first = place.fours + 8 * half;
    if (Kind::kIsWhole || (is_vector(row_data) && row.holds(first, 4))) {
      raw.fours[half] = load_hinted<kHint>(reinterpret_cast<const float4*>(row_data + first));
    } else {
      float* values = &raw.fours[half].x;
      GF_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (row.holds(first + i, 1)) values[i] = load(row_data + first + i);
      }
    }
  }
  return raw;
}
template <Hint kHint, class Kind>
__device__ inline Raw<double> load_raw(const double* row_data, const Row& row, const Place& place, Kind) {
  Raw<double> raw{};
  GF_UNROLL
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int first = element_of_slot(place, 2 * quarter);
    if (Kind::kIsWhole || (is_vector(row_data) && row.holds(first, 2))) {
      raw.twos[quarter] = load_hinted<kHint>(reinterpret_cast<const double2*>(row_data + first));
    } else {
      if (row.holds(first, 1)) raw.twos[quarter].x = load(row_data + first);
      if (row.holds(first + 1, 1)) raw.twos[quarter].y = load(row_data + first + 1);
    }
  }
  return raw;
}
template <Hint kHint, class T, class Kind>
__device__ inline Raw<T> load_raw(const T* row_data, const Row& row, const Place& place, Kind) {
  static_assert(sizeof(T) == 2);
  Raw<T> raw{};
  if (Kind::kIsWhole || (is_vector(row_data) && row.holds(place.eight, kSlots))) {
    raw.eight = load_hinted<kHint>(reinterpret_cast<const uint4*>(row_data + place.eight));
  } else {
    const auto bits_at = [row_data](int i) -> std::uint32_t {
      return load(reinterpret_cast<const unsigned short*>(row_data + i));
    };
    std::uint32_t* words = &raw.eight.x;
    GF_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      if (row.holds(place.eight + i, 1)) words[i / 2] |= bits_at(place.eight + i) << (i % 2 * 16);
    }
  }
  return raw;
}

/// The 8 consecutive elements of each thread of a pair, from and to the pair's layout; two 16-bit elements a word.
struct Words {
  std::uint32_t word[4];  // slots 0 and 1, 2 and 3, …
};
__device__ inline Words to_slots(const uint4& eight, const Place& place) {
  const std::uint32_t other0 = __shfl_xor_sync(kWholeWarp, place.is_odd ? eight.x : eight.z, 1);
  const std::uint32_t other1 = __shfl_xor_sync(kWholeWarp, place.is_odd ? eight.y : eight.w, 1);
  if (place.is_odd) return {{other0, other1, eight.z, eight.w}};
  return {{eight.x, eight.y, other0, other1}};
}
__device__ inline uint4 to_eight(const Words& slots, const Place& place) {
  const std::uint32_t other0 = __shfl_xor_sync(kWholeWarp, place.is_odd ? slots.word[0] : slots.word[2], 1);
  const std::uint32_t other1 = __shfl_xor_sync(kWholeWarp, place.is_odd ? slots.word[1] : slots.word[3], 1);
  if (place.is_odd) return {other0, other1, slots.word[2], slots.word[3]};
  return {slots.word[0], slots.word[1], other0, other1};
}

__device__ inline float widened(Float16, std::uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
__device__ inline float widened(BFloat16, std::uint32_t bits) {
  return element::float_of_bits(element::float_bits_from_bfloat16(bits));
}
__device__ inline std::uint32_t narrowed(Float16, float value) { return __half_as_ushort(__float2half_rn(value)); }
__device__ inline std::uint32_t narrowed(BFloat16, float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

/// A thread's elements by slot, as numbers. `F` is float, or double with an FP64 accumulator; an FP64 gradient is
/// rounded to FP32 for the former.
template <class F>
struct Values8 {
  F slot[kSlots];
};
template <class F, class T>
__device__ inline Values8<F> converted(const T* values) {
  Values8<F> out;
  GF_UNROLL
  for (int s = 0; s < kSlots; ++s) out.slot[s] = static_cast<F>(values[s]);
  return out;
}
template <class F>
__device__ inline Values8<F> widen(const Raw<float>& raw, const Place&) {
  return converted<F>(&raw.fours[0].x);
}
template <class F>
__device__ inline Values8<F> widen(const Raw<double>& raw, const Place&) {
  return converted<F>(&raw.twos[0].x);
}
template <class F, class T>
__device__ inline Values8<F> widen(const Raw<T>& raw, const Place& place) {
  const Words words = to_slots(raw.eight, place);
  Values8<F> out;
  GF_UNROLL
  for (int s = 0; s < kSlots; ++s) {
    out.slot[s] = static_cast<F>(widened(T{}, (words.word[s / 2] >> (s % 2 * 16)) & 0xffffu));
  }
  return out;
}

template <class Kind>
__device__ inline void store_values(float* row_data, const Row& row, const Place& place, Kind,
                                    const Values8<float>& values) {
  GF_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int first = place.fours + 8 * half;
    const float* v = values.slot + 4 * half;
    if (Kind::kIsWhole || (is_vector(row_data) && row.holds(first, 4))) {
      store(reinterpret_cast<float4*>(row_data + first), float4{v[0], v[1], v[2], v[3]});
    } else {
      GF_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (row.holds(first + i, 1)) store(row_data + first + i, v[i]);
      }
    }
  }
}
template <class Kind>
__device__ inline void store_values(double* row_data, const Row& row, const Place& place, Kind,
                                    const Values8<double>& values) {
  GF_UNROLL
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int first = element_of_slot(place, 2 * quarter);
    const double* v = values.slot + 2 * quarter;
    if (Kind::kIsWhole || (is_vector(row_data) && row.holds(first, 2))) {
      store(reinterpret_cast<double2*>(row_data + first), double2{v[0], v[1]});
    } else {
      if (row.holds(first, 1)) store(row_data + first, v[0]);
      if (row.holds(first + 1, 1)) store(row_data + first + 1, v[1]);
    }
  }
}
/// Rounds to nearest even. All threads of the warp must take part.
template <class T, class Kind>
__device__ inline void store_values(T* row_data, const Row& row, const Place& place, Kind,
                                    const Values8<float>& values) {
  Words slots;
  GF_UNROLL
  for (int w = 0; w < 4; ++w) {
    slots.word[w] = narrowed(T{}, values.slot[2 * w]) | narrowed(T{}, values.slot[2 * w + 1]) << 16;
  }
  const uint4 eight = to_eight(slots, place);
  if (Kind::kIsWhole || (is_vector(row_data) && row.holds(place.eight, kSlots))) {
    store(reinterpret_cast<uint4*>(row_data + place.eight), eight);
  } else {
    const std::uint32_t* words = &eight.x;
    GF_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      if (!row.holds(place.eight + i, 1)) continue;
      const auto bits = static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16));
      store(reinterpret_cast<unsigned short*>(row_data + place.eight + i), bits);
    }
  }
}

/// Calls `body` with a value of the element type; the whole warp takes the same way.
template <class Body>
__device__ inline void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32: return body(float{});
    case DType::kFloat16: return body(Float16{});
    case DType::kBFloat16: return body(BFloat16{});
    case DType::kFloat64: return body(double{});
  }
}

}  // namespace gradfuse::cuda
