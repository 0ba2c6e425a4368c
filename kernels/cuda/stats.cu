// The stats pass: the sum of squares of every chunk. Limited by memory: it reads 4 bytes an element of the accumulator
// and 2 of a 16-bit pending gradient. One FP64 fma an element: a sixth of what GPUs for training can do at that rate.
#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/value.hpp"

namespace gradfuse::cuda {
namespace {

template <class Acc>
__device__ inline double sum_of_squares(const Value<Acc>& value, int numel) {
  const Place place = place_in_row();
  const int head = head_of(value);
  double lane[kSlots] = {};
  for_each_row(numel, head, is_aligned_at(value, head), [&](const Row& row, auto kind) {
    const Values8<float> x = load_values(value, row, place, kind);
    // The product of two FP32 numbers is exact in FP64. What is outside the row adds +0, which changes no bit.
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      const double wide = x.slot[s];
      lane[s] = element::fma(wide, wide, lane[s]);
    }
  });
  return fold_row_lanes(lane);
}

// Four blocks allow 128 registers a thread, 16 of which are the sums; Blackwell takes 123, Hopper 80. 16 warps, with 48
// bytes in flight a thread, are 24 KiB: enough, as in the add. Reference work in FP64 may take more registers.
template <class Acc>
__global__ void __launch_bounds__(kBlockSize, sizeof(Acc) == sizeof(float) ? 4 : 2)
    stats_kernel(ValueArgs args, SumsArgs sums) {
  for_each_chunk(args.work.chunks, 0, args.work.num_chunks, [&](const Chunk& chunk, std::uint64_t index) {
    const Value<Acc> value = value_of<Acc>(args.values + chunk.tensor, args.weight, chunk.begin);
    const double sum = value.is_absent() ? 0.0 : sum_of_squares(value, static_cast<int>(chunk.numel));
    if (threadIdx.x % kWarpSize != 0) return;
    store(sums.by_chunk + index, sum);
    if (chunk.begin == 0) store(sums.by_tensor + chunk.tensor, sum);  // final if the tensor has no other chunk
  });
}

}  // namespace

cudaError_t stats(const Target& target, const ValueArgs& values, const SumsArgs& sums) {
  const std::uint64_t num_chunks = values.work.num_chunks;
  return values.acc_is_float64
             ? launch_for_warps("stats_kernel<double>", target, num_chunks, stats_kernel<double>, values, sums)
             : launch_for_warps("stats_kernel", target, num_chunks, stats_kernel<float>, values, sums);
}

}  // namespace gradfuse::cuda
