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
constexpr std::size_t kStepRun = 1024;

/// What the control pass made of it, this step included.
template <class Pass>
std::int64_t step_of(const Pass& pass, std::uint32_t tensor) {
  return pass.control == nullptr ? pass.step : pass.control->step_counts[tensor];
}
template <class Pass>
double grad_scale_of(const Pass& pass) {
  return pass.control == nullptr ? 1.0 : pass.control->control->grad_scale;
}

/// Calls `update(tensor, begin, value, numel)` for each part that has a value, then writes its model copy. Each thread
/// has its own copy of `update`.
template <class Pass, class Update>
void step_pass(const cpu::Loops& loops, int threads, const Pass& pass, Update update) {
  if (pass.control != nullptr && pass.control->control->outcome != StepOutcome::kApplied) return;
  const Values& values = pass.values;
  const cpu::Store store = store_for(values.table.numel(), DType::kFloat16);
  const auto is_in_run = [&pass, &values](std::uint32_t tensor) {
    return !pass.joins.empty() && pass.joins[tensor] != 0 && step_of(pass, tensor) == step_of(pass, tensor - 1) &&
           is_joined(values, tensor);
  };
  for_each_run(values.table, values.table.all_chunks(), threads, is_in_run,
               [&loops, &pass, &values, store, update](std::span<const Chunk> run, std::size_t run_numel) mutable {
                 const Chunk& first = run.front();
                 if (values.is_absent(first.tensor)) return;
                 const auto& tensor = pass.tensors[first.tensor];
                 for (std::size_t done = 0; done < run_numel; done += kStepRun) {
                   const std::int64_t begin = first.begin + static_cast<std::int64_t>(done);
                   const std::size_t numel = std::min(kStepRun, run_numel - done);
                   update(first.tensor, begin, value_at(values, first.tensor, begin), numel);
                   if (tensor.model.data == nullptr) continue;
                   loops.scale[index_of(DType::kFloat32)][index_of(tensor.model.dtype)](
                       1.0f, tensor.param + begin, element_at(tensor.model.data, tensor.model.dtype, begin), numel,
                       store);
                 }
               });
}

/// The coefficients of a tensor. Neighbours mostly share group and step count, so the powers and roots are worked out
/// once for a run of them.
template <class Coefs>
class KnownCoefs {
 public:
  template <class Compute>
  const Coefs& get(std::uint32_t group, std::int64_t step, Compute compute) {
    if (group != group_ || step != step_) coefs_ = compute();
    group_ = group;
    step_ = step;
    return coefs_;
  }

 private:
  std::uint32_t group_ = kNoIndex;
  std::int64_t step_ = 0;
  Coefs coefs_{};
};

/// Adds a run that begins with `chunk`; the result tells whether any sum is not finite.
bool add_run(const cpu::Loops& loops, const AddPass& pass, const Chunk& chunk, std::size_t numel, cpu::Store store) {
  const ConstTensorView& view = pass.grads[chunk.tensor];
  const auto type = index_of(view.dtype);
  const void* grad = chunk_of(view, chunk);
  void* to = element_at(pass.acc.data[chunk.tensor], pass.acc.dtype, chunk.begin);
  const bool is_first = pass.acc.is_written[chunk.tensor] == 0;
  if (pass.acc.dtype == DType::kFloat64) {
    auto* acc = static_cast<double*>(to);
    return is_first ? loops.accumulate_first_f64[type](pass.weight, grad, acc, numel)
                    : loops.accumulate_later_f64[type](pass.weight, grad, acc, acc, numel);
  }
  auto* acc = static_cast<float*>(to);
  return is_first ? loops.accumulate_first[type](pass.weight, grad, acc, numel, store)
                  : loops.accumulate_later[type](pass.weight, grad, acc, acc, numel);
}

bool is_finite(const cpu::Loops& loops, const AccumulatorTable& acc, const Chunk& chunk) {
  const float* data = static_cast<const float*>(acc.data[chunk.tensor]) + chunk.begin;
  return loops.max_magnitude_bits[index_of(DType::kFloat32)](data, chunk.numel) < 0x7f800000u;
}

}  // namespace

BackendInfo CpuBackend::info() const { return {"cpu", std::string(loops_.target), threads_}; }

void CpuBackend::add(const AddPass& pass) const {
  const ChunkRange range{pass.table.chunks_of(pass.first_tensor).begin, pass.table.chunks_of(pass.end_tensor - 1).end};
  const cpu::Store store = store_for(pass.table.numel(), DType::kFloat32);
  // With the FP64 accumulator, for reference work, each tensor by itself: `is_finite` knows FP32.
  const Joins joins = pass.acc.dtype == DType::kFloat32 ? pass.grad_joins : Joins{};
  const auto is_in_run = [acc = pass.acc, joins](std::uint32_t tensor) {
    return !joins.empty() && joins[tensor] != 0 && is_joined(acc, tensor);
  };
  for_each_run(pass.table, range, threads_, is_in_run, [&](std::span<const Chunk> run, std::size_t numel) {
    const Chunk& first = run.front();
    if (pass.grads[first.tensor].is_absent()) return;
    if (!add_run(loops_, pass, first, numel, store)) return;
    for (const Chunk& chunk : run) {
      if (run.size() > 1 && is_finite(loops_, pass.acc, chunk)) continue;
      std::atomic_ref<std::uint32_t> found(pass.first_nonfinite[chunk.tensor]);  // shared by the tensor's chunks
      if (found.load(std::memory_order_relaxed) == 0) found.store(pass.micro_batch + 1, std::memory_order_relaxed);
    }
  });
}

void CpuBackend::stats(const StatsPass& pass) const {
  const Values& values = pass.values;
  const WorkTable& table = values.table;
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t index) {
    const double sum = values.is_absent(chunk.tensor)
                           ? 0.0
                           : loops_.sum_of_squares(value_at(values, chunk.tensor, chunk.begin), chunk.numel);
    pass.sums.by_chunk[index] = sum;
    if (chunk.begin == 0) pass.sums.by_tensor[chunk.tensor] = sum;  // final if the tensor has no other chunk
  });
}

void CpuBackend::fold_sums(const WorkTable& table, const Sums& sums) const {
  for (const std::uint32_t tensor : table.multi_chunk_tensors()) {
    const ChunkRange range = table.chunks_of(tensor);
    sums.by_tensor[tensor] = canonical_sum({sums.by_chunk + range.begin, range.end - range.begin});
  }
}

void CpuBackend::adam(const AdamPass& pass) const {
  if (pass.control != nullptr) control(pass.values, *pass.control);
  step_pass(loops_, threads_, pass,
            [this, &pass, known = KnownCoefs<element::AdamCoefs<float>>()](
                std::uint32_t tensor, std::int64_t begin, const cpu::ValueRun& value, std::size_t numel) mutable {
              const AdamTensor& t = pass.tensors[tensor];
              const auto& hyper = pass.groups[pass.group_of[tensor]];
              const std::int64_t step = step_of(pass, tensor);
              const auto& coefs = known.get(pass.group_of[tensor], step,
                                            [&] { return element::adam_coefs(hyper, step, grad_scale_of(pass)); });
              const bool has_l2_decay = !hyper.is_decoupled && hyper.weight_decay != 0.0;
              const bool amsgrad = t.max_exp_avg_sq != nullptr;
              const cpu::AdamRun run{t.param + begin, t.exp_avg + begin, t.exp_avg_sq + begin,
                                     amsgrad ? t.max_exp_avg_sq + begin : nullptr};
              loops_.adam[has_l2_decay][amsgrad](coefs, value, run, numel);
            });
}

void CpuBackend::sgd(const SgdPass& pass) const {
  if (pass.control != nullptr) control(pass.values, *pass.control);
  step_pass(loops_, threads_, pass,
            [this, &pass, known = KnownCoefs<element::SgdCoefs<float>>()](
                std::uint32_t tensor, std::int64_t begin, const cpu::ValueRun& value, std::size_t numel) mutable {
              using enum element::Momentum;
              const SgdTensor& t = pass.tensors[tensor];
              const auto& hyper = pass.groups[pass.group_of[tensor]];
              const std::int64_t step = step_of(pass, tensor);
              const auto& coefs = known.get(pass.group_of[tensor], step,
                                            [&] { return element::sgd_coefs(hyper, grad_scale_of(pass)); });
              const bool has_momentum = t.momentum_buffer != nullptr;
              const auto momentum = !has_momentum ? kNone : step == 1 ? kFirst : kLater;
              const cpu::SgdRun run{t.param + begin, has_momentum ? t.momentum_buffer + begin : nullptr};
              loops_.sgd[hyper.weight_decay != 0.0][static_cast<std::size_t>(momentum)][hyper.nesterov](coefs, value,
                                                                                                        run, numel);
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

void CpuBackend::scale(const WorkTable& table, float factor, std::span<const ConstTensorView> in,
                       std::span<const TensorView> out, bool* found_nonfinite) const {
  std::atomic<bool> found = false;
  for_each_chunk(table, table.all_chunks(), threads_, [&](const Chunk& chunk, std::size_t) {
    const ConstTensorView& from = in[chunk.tensor];
    const TensorView& to = out[chunk.tensor];
    const bool in_place = from.data == to.data;
    const cpu::Store store = in_place ? cpu::Store::kCached : store_for(table.numel(), to.dtype);
    const auto loop = loops_.scale[index_of(from.dtype)][index_of(to.dtype)];
    if (loop(factor, chunk_of(from, chunk), chunk_of(to, chunk), chunk.numel, store)) {
      found.store(true, std::memory_order_relaxed);
    }
  });
  if (found && found_nonfinite != nullptr) *found_nonfinite = true;
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
