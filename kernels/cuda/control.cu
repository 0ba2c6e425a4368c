// The control pass: one block that makes of the sums a verdict, and of the verdict what the step needs. Limited by
// latency: a few microseconds for any model of less than 10^10 parameters or 10^5 tensors.
#include <cub/block/block_reduce.cuh>

#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/passes.hpp"

namespace gradfuse::cuda {
namespace {

// All the threads that a block can have: the sums are read by one SM.
constexpr unsigned kControlSize = 1024;

/// The sums of the tensors of several chunks: a warp for each, the whole block for one of more than 16M elements.
__device__ inline void fold_tensors(const WorkList& work, const SumsArgs& sums, double* scratch) {
  const std::uint32_t warp = threadIdx.x / kWarpSize, num_warps = blockDim.x / kWarpSize;
  const auto chunks_of = [&work](std::uint32_t tensor) {
    return ChunkRange{load(work.first_chunk + tensor), load(work.first_chunk + tensor + 1)};
  };
  for (std::uint32_t i = warp; i < work.num_multi_chunk_tensors; i += num_warps) {
    const std::uint32_t tensor = load(work.multi_chunk_tensors + i);
    const ChunkRange range = chunks_of(tensor);
    if (range.end - range.begin > kFoldSize) continue;
    const double sum = fold_values(sums.by_chunk + range.begin, range.end - range.begin);
    if (threadIdx.x % kWarpSize == 0) store(sums.by_tensor + tensor, sum);
  }
  for (std::uint32_t i = 0; i < work.num_multi_chunk_tensors; ++i) {
    const std::uint32_t tensor = load(work.multi_chunk_tensors + i);
    const ChunkRange range = chunks_of(tensor);
    if (range.end - range.begin <= kFoldSize) continue;
    const double sum = fold_by_block(sums.by_chunk + range.begin, range.end - range.begin, scratch);
    if (threadIdx.x == 0) store(sums.by_tensor + tensor, sum);
  }
  __syncthreads();
}

/// The part of the tensors that falls to this thread: neighbours, whose coefficients are mostly the same.
struct TensorRange {
  std::uint32_t begin, end;
};
__device__ inline TensorRange tensors_of_thread(std::uint32_t num_tensors) {
  const std::uint32_t each = (num_tensors + blockDim.x - 1) / blockDim.x;
  const std::uint32_t begin = each * threadIdx.x < num_tensors ? each * threadIdx.x : num_tensors;
  return {begin, each < num_tensors - begin ? begin + each : num_tensors};
}

/// What brought the first value that is not finite: a number that is the smaller the earlier the micro-batch, and among
/// equals the tensor, was; all ones if there is none.
__device__ inline unsigned long long find_nonfinite(const ValueArgs& values, const ControlArgs& args) {
  unsigned long long first = ~0ull;
  const TensorRange range = tensors_of_thread(values.work.num_tensors);
  for (std::uint32_t tensor = range.begin; tensor < range.end; ++tensor) {
    const double sum = load(args.sums.by_tensor + tensor);
    if (sum <= 1.7976931348623157e308) continue;  // the largest double
    std::uint32_t micro_batch = load(args.first_nonfinite + tensor) - 1;
    const bool has_pending = load(&values.values[tensor].pending) != nullptr;
    if (micro_batch == element::kNoIndex && has_pending) micro_batch = args.last_micro_batch;
    const unsigned long long key = static_cast<unsigned long long>(micro_batch) << 32 | tensor;
    first = key < first ? key : first;
  }
  return first;
}

struct Smaller {
  __device__ unsigned long long operator()(unsigned long long a, unsigned long long b) const { return a < b ? a : b; }
};

template <class StepArgs>
struct Rule;
template <>
struct Rule<AdamArgs> {
  using Coefs = element::AdamCoefs<float>;
  __device__ static Coefs coefs(const AdamArgs& step, std::uint32_t group, std::int64_t count, double grad_scale) {
    return element::adam_coefs(load(step.groups + group), count, grad_scale);
  }
  __device__ static void note_step(const AdamArgs&, std::uint32_t, std::int64_t) {}
};
template <>
struct Rule<SgdArgs> {
  using Coefs = element::SgdCoefs<float>;
  __device__ static Coefs coefs(const SgdArgs& step, std::uint32_t group, std::int64_t, double grad_scale) {
    return element::sgd_coefs(load(step.groups + group), grad_scale);
  }
  __device__ static void note_step(const SgdArgs& step, std::uint32_t tensor, std::int64_t count) {
    store(step.is_first_step + tensor, count == 1 ? 1u : 0u);
  }
};

/// Writes the coefficients of this thread's tensors for the step whose number `count_of(tensor)` tells; 0: it has none.
template <class StepArgs, class CountOf>
__device__ inline void write_coefs(const StepArgs& step, double grad_scale, CountOf count_of) {
  typename Rule<StepArgs>::Coefs coefs{};
  std::uint32_t known_group = element::kNoIndex;
  std::int64_t known_count = 0;
  const TensorRange range = tensors_of_thread(step.values.work.num_tensors);
  for (std::uint32_t tensor = range.begin; tensor < range.end; ++tensor) {
    const std::int64_t count = count_of(tensor);
    if (count == 0) continue;
    const std::uint32_t group = load(&step.entries[tensor].group);
    if (group != known_group || count != known_count) {
      coefs = Rule<StepArgs>::coefs(step, group, count, grad_scale);
      known_group = group;
      known_count = count;
    }
    store(step.coefs + tensor, coefs);
    Rule<StepArgs>::note_step(step, tensor, count);
  }
}

template <class StepArgs>
__global__ void __launch_bounds__(kControlSize) control_kernel(StepArgs step, ControlArgs args) {
  using FindFirst = cub::BlockReduce<unsigned long long, kControlSize>;
  GF_SHARED(find_first, typename FindFirst::TempStorage);
  GF_SHARED(shared_verdict, element::ControlBlock);
  const WorkList& work = step.values.work;

  fold_tensors(work, args.sums, args.scratch);
  const double sum = fold_by_block(args.sums.by_tensor, work.num_tensors, args.scratch);
  if (threadIdx.x == 0) {
    const float loss_scale = args.loss_scale == nullptr ? 1.0f : load(&args.loss_scale->scale);
    shared_verdict.set(element::judge(sum, loss_scale, args.total_count, args.max_norm));
  }
  __syncthreads();

  element::ControlBlock verdict = shared_verdict.get();
  if (verdict.outcome == StepOutcome::kNonFinite) {
    const unsigned long long first =
        FindFirst(find_first.storage()).Reduce(find_nonfinite(step.values, args), Smaller{});
    if (threadIdx.x == 0 && first != ~0ull) {
      const auto tensor = static_cast<std::uint32_t>(first);
      // What a producer wrote by itself nobody looked at in between.
      const bool is_unseen = load(&step.values.values[tensor].is_claimed) != 0;
      verdict.nonfinite_tensor = tensor;
      verdict.nonfinite_micro_batch = is_unseen ? element::kNoIndex : static_cast<std::uint32_t>(first >> 32);
    }
    __syncthreads();  // `first_nonfinite` was read by all
  } else if (verdict.outcome == StepOutcome::kApplied) {
    write_coefs(step, verdict.grad_scale, [&](std::uint32_t tensor) -> std::int64_t {
      const ValueEntry* value = step.values.values + tensor;
      if (load(&value->acc) == nullptr && load(&value->pending) == nullptr) return 0;
      const std::int64_t count = load(args.step_counts + tensor) + 1;
      store(args.step_counts + tensor, count);
      return count;
    });
  }
  const TensorRange range = tensors_of_thread(work.num_tensors);
  for (std::uint32_t tensor = range.begin; tensor < range.end; ++tensor) store(args.first_nonfinite + tensor, 0u);
  if (threadIdx.x != 0) return;
  store(args.control, verdict);
  // A window with nothing to divide by says nothing about the loss scale.
  if (args.loss_scale_is_dynamic && verdict.outcome != StepOutcome::kEmptyTotal) {
    store(args.loss_scale, element::next_loss_scale(load(args.loss_scale), args.loss_scale_rule,
                                                    verdict.outcome == StepOutcome::kNonFinite));
  }
}

template <class StepArgs>
__global__ void __launch_bounds__(kControlSize) prepare_kernel(StepArgs step, std::int64_t count) {
  write_coefs(step, 1.0, [count](std::uint32_t) { return count; });
}

__global__ void __launch_bounds__(kControlSize) fold_kernel(WorkList work, SumsArgs sums, double* scratch) {
  fold_tensors(work, sums, scratch);
}

LaunchShape one_block(const char* name, const Target& target) { return {name, 1, kControlSize, target.stream}; }

}  // namespace

std::size_t fold_scratch_size(const WorkList& work) {
  return std::max(fold_scratch_size(work.num_chunks), fold_scratch_size(work.num_tensors));
}

cudaError_t fold_sums(const Target& target, const WorkList& work, const SumsArgs& sums, double* scratch) {
  return launch(one_block("fold_kernel", target), fold_kernel, work, sums, scratch);
}
cudaError_t control(const Target& target, const AdamArgs& step, const ControlArgs& args) {
  return launch(one_block("control_kernel<AdamArgs>", target), control_kernel<AdamArgs>, step, args);
}
cudaError_t control(const Target& target, const SgdArgs& step, const ControlArgs& args) {
  return launch(one_block("control_kernel<SgdArgs>", target), control_kernel<SgdArgs>, step, args);
}
cudaError_t prepare(const Target& target, const AdamArgs& step, std::int64_t count) {
  return launch(one_block("prepare_kernel<AdamArgs>", target), prepare_kernel<AdamArgs>, step, count);
}
cudaError_t prepare(const Target& target, const SgdArgs& step, std::int64_t count) {
  return launch(one_block("prepare_kernel<SgdArgs>", target), prepare_kernel<SgdArgs>, step, count);
}

}  // namespace gradfuse::cuda
