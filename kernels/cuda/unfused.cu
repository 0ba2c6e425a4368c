// The single-purpose passes. Limited by memory: the bytes of what goes in and out.
#include <cub/block/block_reduce.cuh>

#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/row_access.hpp"
#include "kernels/cuda/value.hpp"

namespace gradfuse::cuda {
namespace {

__global__ void __launch_bounds__(kBlockSize) zero_kernel(WorkList work, const OutEntry* out) {
  for_each_chunk(work.chunks, 0, work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const OutEntry* entry = out + chunk.tensor;
    void* data = load(&entry->data);
    with_type(load(&entry->dtype), [&](auto type) {
      using T = decltype(type);
      using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
      T* to = static_cast<T*>(data) + chunk.begin;
      const Place place = place_in_row();
      for_each_row(static_cast<int>(chunk.numel), head_of(to), true,
                   [&](const Row& row, auto kind) { store_values(to + row.begin, row, place, kind, Values8<F>{}); });
    });
  });
}

/// What an element becomes when it is stored.
template <class T>
__device__ inline float rounded_to(T type, float value) {
  return widened(type, narrowed(type, value));
}
__device__ inline float rounded_to(float, float value) { return value; }

template <class In, class Out>
__device__ inline bool scale_chunk(float factor, const In* in, Out* out, int numel) {
  const Place place = place_in_row();
  const int head = sizeof(In) < sizeof(Out) ? head_of(in) : head_of(out);
  bool found_nonfinite = false;
  for_each_row(numel, head, is_vector(in + head) && is_vector(out + head), [&](const Row& row, auto kind) {
    Values8<float> x = widen<float>(load_raw<Hint::kNone>(in + row.begin, row, place, kind), place);
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      x.slot[s] = factor * x.slot[s];
      const float stored = rounded_to(Out{}, x.slot[s]);
      // Slots outside the row hold 0 times the factor, which nobody stores.
      const bool is_stored = row.holds(element_of_slot(place, s), 1);
      found_nonfinite = found_nonfinite || (is_stored && stored - stored != 0.0f);
    }
    store_values(out + row.begin, row, place, kind, x);
  });
  return found_nonfinite;
}

// Six blocks allow 80 registers. Without a bound nvcc 13 takes fewer and spills on sm_120.
__global__ void __launch_bounds__(kBlockSize, 6)
    scale_kernel(WorkList work, float factor, const InEntry* in, const OutEntry* out, std::uint32_t* found) {
  for_each_chunk(work.chunks, 0, work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const InEntry* from = in + chunk.tensor;
    const OutEntry* to = out + chunk.tensor;
    const void* in_data = load(&from->data);
    void* out_data = load(&to->data);
    const DType out_dtype = load(&to->dtype);
    bool found_nonfinite = false;
    with_type(load(&from->dtype), [&](auto type) {
      const auto* typed_in = static_cast<const decltype(type)*>(in_data) + chunk.begin;
      const int numel = static_cast<int>(chunk.numel);
      if (out_dtype == DType::kFloat32) {
        found_nonfinite = scale_chunk(factor, typed_in, static_cast<float*>(out_data) + chunk.begin, numel);
      } else if (out_dtype == DType::kFloat16) {
        found_nonfinite = scale_chunk(factor, typed_in, static_cast<Float16*>(out_data) + chunk.begin, numel);
      } else {
        found_nonfinite = scale_chunk(factor, typed_in, static_cast<BFloat16*>(out_data) + chunk.begin, numel);
      }
    });
    const bool any = __any_sync(kWholeWarp, found_nonfinite);
    if (any && threadIdx.x % kWarpSize == 0) atomicOr(found, 1u);
  });
}

__global__ void __launch_bounds__(kBlockSize, 6)
    axpby_kernel(WorkList work, float a, const InEntry* x, float b, const InEntry* y, const OutEntry* out) {
  for_each_chunk(work.chunks, 0, work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const InEntry* x_entry = x + chunk.tensor;
    const void* x_data = load(&x_entry->data);
    const float* y_data = static_cast<const float*>(load(&y[chunk.tensor].data)) + chunk.begin;
    float* out_data = static_cast<float*>(load(&out[chunk.tensor].data)) + chunk.begin;
    with_type(load(&x_entry->dtype), [&](auto type) {
      const auto* typed_x = static_cast<const decltype(type)*>(x_data) + chunk.begin;
      const Place place = place_in_row();
      const int head = head_of(typed_x);
      const bool is_aligned = is_vector(y_data + head) && is_vector(out_data + head);
      for_each_row(static_cast<int>(chunk.numel), head, is_aligned, [&](const Row& row, auto kind) {
        const auto raw_x = load_raw<Hint::kStreaming>(typed_x + row.begin, row, place, kind);
        const Raw<float> raw_y = load_raw<Hint::kNone>(y_data + row.begin, row, place, kind);
        const Values8<float> vx = widen<float>(raw_x, place), vy = widen<float>(raw_y, place);
        Values8<float> sum;
        GF_UNROLL
        for (int s = 0; s < kSlots; ++s) sum.slot[s] = element::fma(a, vx.slot[s], b * vy.slot[s]);
        store_values(out_data + row.begin, row, place, kind, sum);
      });
    });
  });
}

struct Larger {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a > b ? a : b; }
};

__global__ void __launch_bounds__(kBlockSize)
    max_magnitude_kernel(WorkList work, const InEntry* x, std::uint32_t* bits) {
  using FindLargest = cub::BlockReduce<std::uint32_t, kBlockSize>;
  GF_SHARED(find_largest, typename FindLargest::TempStorage);
  std::uint32_t largest = 0;
  for_each_chunk(work.chunks, 0, work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const InEntry* entry = x + chunk.tensor;
    const void* data = load(&entry->data);
    with_type(load(&entry->dtype), [&](auto type) {
      const auto* typed = static_cast<const decltype(type)*>(data) + chunk.begin;
      const Place place = place_in_row();
      for_each_row(static_cast<int>(chunk.numel), head_of(typed), true, [&](const Row& row, auto kind) {
        const auto values = widen<float>(load_raw<Hint::kNone>(typed + row.begin, row, place, kind), place);
        GF_UNROLL
        for (int s = 0; s < kSlots; ++s) {
          largest = Larger{}(largest, element::bits_of_float(values.slot[s]) & 0x7fffffffu);
        }
      });
    });
  });
  const std::uint32_t of_block = FindLargest(find_largest.storage()).Reduce(largest, Larger{});
  if (threadIdx.x == 0) atomicMax(bits, of_block);
}

}  // namespace

cudaError_t zero(const Target& target, const WorkList& work, const OutEntry* out) {
  return launch_for_warps("zero_kernel", target, work.num_chunks, zero_kernel, work, out);
}
cudaError_t scale(const Target& target, const WorkList& work, float factor, const InEntry* in, const OutEntry* out,
                  std::uint32_t* found_nonfinite) {
  return launch_for_warps("scale_kernel", target, work.num_chunks, scale_kernel, work, factor, in, out,
                          found_nonfinite);
}
cudaError_t axpby(const Target& target, const WorkList& work, float a, const InEntry* x, float b, const InEntry* y,
                  const OutEntry* out) {
  return launch_for_warps("axpby_kernel", target, work.num_chunks, axpby_kernel, work, a, x, b, y, out);
}
cudaError_t max_magnitude(const Target& target, const WorkList& work, const InEntry* x, std::uint32_t* bits) {
  return launch_for_warps("max_magnitude_kernel", target, work.num_chunks, max_magnitude_kernel, work, x, bits);
}

}  // namespace gradfuse::cuda
