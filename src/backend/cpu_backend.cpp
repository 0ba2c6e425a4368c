#include "src/backend/cpu_backend.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "src/backend/canonical_sum.hpp"
#include "src/backend/chunk_access.hpp"
#include "src/backend/parallel.hpp"

namespace gradfuse {
namespace {

// A streaming store sends what it writes to memory. That saves reading the line first, but only pays if the line would
// have left the caches anyway before its next use: if the pass writes more than they hold.
constexpr std::size_t kStreamingBytes = std::size_t{32} << 20;

cpu::Store store_for(std::int64_t numel, DType dtype) {
  const auto num_bytes = static_cast<std::size_t>(numel) * element_size(dtype);
  return num_bytes > kStreamingBytes ? cpu::Store::kStreaming : cpu::Store::kCached;
}

// The step takes a chunk in parts, so that a part's parameters are in the L1 cache when they are copied to the model.
constexpr std::uint32_t kStepRun = 1024;

/// Calls `update(tensor, begin, value, numel)` for each part that has a value, then writes its model copy.
template <class Tensors, class Update>
void step_pass(const cpu::Loops& loops, int threads, const Values& values, const Tensors& tensors, Update update) {
  const cpu::Store store = store_for(values.table.numel(), DType::kFloat16);
  for_each_chunk(values.table, values.table.all_chunks(), threads, [&](const Chunk& chunk, std::size_t) {
    const ValueSlot& slot = values.slots[chunk.tensor];
    if (slot.is_absent()) return;
    const auto& tensor = tensors[chunk.tensor];
    for (std::uint32_t done = 0; done < chunk.numel; done += kStepRun) {
      const std::int64_t begin = chunk.begin + done;
      const std::size_t numel = std::min(kStepRun, chunk.numel - done);
      update(chunk.tensor, begin, value_at(slot, values.accumulator, begin), numel);
      if (tensor.model.data == nullptr) continue;
      loops.scale[index_of(DType::kFloat32)][index_of(tensor.model.dtype)](
          1.0f, tensor.param + begin, element_at(tensor.model.data, tensor.model.dtype, begin), numel, store);
    }
  });
}

}  // namespace

BackendInfo CpuBackend::info() const { return {"cpu", std::string(loops_.target), threads_}; }

void CpuBackend::add(const AddPass& pass) const {
  const ChunkRange range{pass.table.chunks_of(pass.first_tensor).begin, pass.table.chunks_of(pass.end_tensor - 1).end};
  const cpu::Store store = store_for(pass.table.numel(), DType::kFloat32);
  for_each_chunk(pass.table, range, threads_, [&](const Chunk& chunk, std::size_t) {
    const AddSlot& slot = pass.slots[chunk.tensor];
    if (slot.grad.is_absent()) return;
    const auto type = index_of(slot.grad.dtype);
    const void* grad = chunk_of(slot.grad, chunk);
    const bool is_first = slot.position == WindowPosition::kFirst;
    bool found_nonfinite = false;
    if (pass.accumulator == DType::kFloat64) {
      double* acc = static_cast<double*>(slot.acc) + chunk.begin;
      found_nonfinite = is_first ? loops_.accumulate_first_f64[type](pass.weight, grad, acc, chunk.numel)
                                 : loops_.accumulate_later_f64[type](pass.weight, grad, acc, acc, chunk.numel);
    } else {
      float* acc = static_cast<float*>(slot.acc) + chunk.begin;
      found_nonfinite = is_first ? loops_.accumulate_first[type](pass.weight, grad, acc, chunk.numel, store)
                                 : loops_.accumulate_later[type](pass.weight, grad, acc, acc, chunk.numel);
    }
    if (!found_nonfinite) return;
    std::atomic_ref<std::uint32_t> first(pass.first_nonfinite[chunk.tensor]);  // shared by the tensor's chunks
    if (first.load(std::memory_order_relaxed) == kNoIndex) first.store(pass.micro_batch, std::memory_order_relaxed);
  });
}

void CpuBackend::stats(const StatsPass& pass) const {
  const Values& values = pass.values;
  for_each_chunk(values.table, values.table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t index) {
    const ValueSlot& slot = values.slots[chunk.tensor];
    pass.chunk_sums[index] =
        slot.is_absent() ? 0.0 : loops_.sum_of_squares(value_at(slot, values.accumulator, chunk.begin), chunk.numel);
  });
  for (std::size_t tensor = 0; tensor < pass.tensor_sums.size(); ++tensor) {
    const ChunkRange range = values.table.chunks_of(tensor);
    pass.tensor_sums[tensor] = canonical_sum(pass.chunk_sums.subspan(range.begin, range.end - range.begin));
  }
}

void CpuBackend::adam(const AdamPass& pass) const {
  if (pass.control.outcome != StepOutcome::kApplied) return;
  step_pass(loops_, threads_, pass.values, pass.tensors,
            [&](std::uint32_t tensor, std::int64_t begin, const cpu::ValueRun& value, std::size_t numel) {
              const AdamTensor& t = pass.tensors[tensor];
              const auto& hyper = pass.groups[pass.group_of[tensor]];
              const bool has_l2_decay = !hyper.is_decoupled && hyper.weight_decay != 0.0;
              const bool amsgrad = t.max_exp_avg_sq != nullptr;
              const cpu::AdamRun run{t.param + begin, t.exp_avg + begin, t.exp_avg_sq + begin,
                                     amsgrad ? t.max_exp_avg_sq + begin : nullptr};
              loops_.adam[has_l2_decay][amsgrad](pass.coefs[tensor], value, run, numel);
            });
}

void CpuBackend::sgd(const SgdPass& pass) const {
  if (pass.control.outcome != StepOutcome::kApplied) return;
  step_pass(loops_, threads_, pass.values, pass.tensors,
            [&](std::uint32_t tensor, std::int64_t begin, const cpu::ValueRun& value, std::size_t numel) {
              using enum element::Momentum;
              const SgdTensor& t = pass.tensors[tensor];
              const auto& hyper = pass.groups[pass.group_of[tensor]];
              const bool has_momentum = t.momentum_buffer != nullptr;
              const auto momentum = !has_momentum ? kNone : pass.step_counts[tensor] == 1 ? kFirst : kLater;
              const cpu::SgdRun run{t.param + begin, has_momentum ? t.momentum_buffer + begin : nullptr};
              loops_.sgd[hyper.weight_decay != 0.0][static_cast<std::size_t>(momentum)][hyper.nesterov](
                  pass.coefs[tensor], value, run, numel);
            });
}

void CpuBackend::zero(const WorkTable& table, std::span<const TensorView> out) const {
  const cpu::Store store = store_for(table.numel(), DType::kFloat32);
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t) {
    const TensorView& view = out[chunk.tensor];
    void* at = chunk_of(view, chunk);
    if (element_size(view.dtype) >= sizeof(float)) {
      loops_.zero(static_cast<float*>(at), chunk.numel * (element_size(view.dtype) / sizeof(float)), store);
    } else {
      std::memset(at, 0, chunk.numel * element_size(view.dtype));
    }
  });
}

bool CpuBackend::scale(const WorkTable& table, float factor, std::span<const ConstTensorView> in,
                       std::span<const TensorView> out) const {
  std::atomic<bool> found_nonfinite = false;
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t) {
    const ConstTensorView& from = in[chunk.tensor];
    const TensorView& to = out[chunk.tensor];
    const bool in_place = from.data == to.data;
    const cpu::Store store = in_place ? cpu::Store::kCached : store_for(table.numel(), to.dtype);
    const auto loop = loops_.scale[index_of(from.dtype)][index_of(to.dtype)];
    if (loop(factor, chunk_of(from, chunk), chunk_of(to, chunk), chunk.numel, store)) {
      found_nonfinite.store(true, std::memory_order_relaxed);
    }
  });
  return found_nonfinite;
}

void CpuBackend::axpby(const WorkTable& table, float a, std::span<const ConstTensorView> x, float b,
                       std::span<const ConstTensorView> y, std::span<const TensorView> out) const {
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t) {
    const std::size_t t = chunk.tensor;
    loops_.axpby[index_of(x[t].dtype)](a, chunk_of(x[t], chunk), b, static_cast<const float*>(chunk_of(y[t], chunk)),
                                       static_cast<float*>(chunk_of(out[t], chunk)), chunk.numel);
  });
}

double CpuBackend::max_magnitude(const WorkTable& table, std::span<const ConstTensorView> x) const {
  std::atomic<std::uint32_t> seen = 0;
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t) {
    const ConstTensorView& view = x[chunk.tensor];
    const std::uint32_t here = loops_.max_magnitude_bits[index_of(view.dtype)](chunk_of(view, chunk), chunk.numel);
    std::uint32_t known = seen.load(std::memory_order_relaxed);
    while (known < here && !seen.compare_exchange_weak(known, here, std::memory_order_relaxed)) {
    }
  });
  return element::float_of_bits(seen);
}

}  // namespace gradfuse
