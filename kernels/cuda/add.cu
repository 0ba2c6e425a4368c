// The add pass: acc = weight * grad, or fma(weight, grad, acc). Limited by memory: with 16-bit gradients 6 bytes an
// element when first, 10 later.
#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/value.hpp"

namespace gradfuse::cuda {
namespace {

template <class Grad, class Acc>
__device__ inline bool add_chunk(const Grad* grad, Acc* acc, bool is_first, Acc weight, int numel) {
  const Place place = place_in_row();
  const int head = head_of(grad);
  const bool is_aligned = is_vector(acc + head);
  bool found_nonfinite = false;
  for_each_row(numel, head, is_aligned, [&](const Row& row, auto kind) {
    const Raw<Grad> raw = load_raw<Hint::kStreaming>(grad + row.begin, row, place, kind);
    Raw<Acc> before{};
    if (!is_first) before = load_raw<Hint::kNone>(acc + row.begin, row, place, kind);
    const Values8<Acc> g = widen<Acc>(raw, place), a = widen<Acc>(before, place);
    Values8<Acc> sum;
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      sum.slot[s] = is_first ? element::accumulate_first(weight, g.slot[s])
                             : element::accumulate_later(weight, g.slot[s], a.slot[s]);
      const Acc zero_if_finite = sum.slot[s] - sum.slot[s];
      found_nonfinite = found_nonfinite || zero_if_finite != Acc{0};
    }
    store_values(acc + row.begin, row, place, kind, sum);
  });
  return found_nonfinite;
}

// Six blocks allow 80 registers a thread: 24 warps on an SM, with 48 bytes in flight a thread, are 36 KiB, where 3.3
// TB/s at 800 ns on 132 SMs need 20 KiB (Little's law).
template <class Acc>
__global__ void __launch_bounds__(kBlockSize, 6) add_kernel(AddArgs args) {
  for_each_chunk(args.work.chunks, args.first_chunk, args.end_chunk, [&](const Chunk& chunk, std::uint64_t) {
    const AddEntry* entry = args.entries + chunk.tensor;
    const void* grad = load(&entry->grad);
    if (grad == nullptr) return;
    const bool is_first = load(&entry->is_first) != 0;
    Acc* acc = static_cast<Acc*>(load(&entry->acc)) + chunk.begin;
    bool found_nonfinite = false;
    with_type(load(&entry->grad_dtype), [&](auto type) {
      const auto* typed = static_cast<const decltype(type)*>(grad) + chunk.begin;
      found_nonfinite = add_chunk(typed, acc, is_first, static_cast<Acc>(args.weight), static_cast<int>(chunk.numel));
    });
    const bool any = __any_sync(kWholeWarp, found_nonfinite);
    // The first micro-batch stays: passes come one after the other, and all chunks of this one bring the same number.
    if (any && threadIdx.x % kWarpSize == 0) atomicCAS(args.first_nonfinite + chunk.tensor, 0u, args.micro_batch + 1);
  });
}

}  // namespace

cudaError_t add(const Target& target, const AddArgs& args) {
  const std::uint64_t num_chunks = args.end_chunk - args.first_chunk;
  return args.acc_is_float64 ? launch_for_warps("add_kernel<double>", target, num_chunks, add_kernel<double>, args)
                             : launch_for_warps("add_kernel", target, num_chunks, add_kernel<float>, args);
}

}  // namespace gradfuse::cuda
