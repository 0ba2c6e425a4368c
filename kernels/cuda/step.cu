// The optimizer steps and the model copy. Limited by memory: Adam reads 12 bytes an element of parameter and moments
// beside the value (4 accumulated, 2 pending), and writes 12 and 2 of the model copy: 32. SGD with momentum: 24.
#include <type_traits>

#include "kernels/cuda/grid.hpp"
#include "kernels/cuda/value.hpp"

namespace gradfuse::cuda {
namespace {

/// A 16-bit copy of the parameters, if there is one.
struct Model {
  void* data;  // at the chunk's first element
  DType dtype;
};
template <class Entry>
__device__ inline Model model_of(const Entry* entry, std::int64_t begin) {
  void* data = load(&entry->model);
  return {data == nullptr ? nullptr : static_cast<Float16*>(data) + begin, load(&entry->model_dtype)};
}
__device__ inline bool is_aligned_at(const Model& model, int head) {
  return model.data == nullptr || is_vector(static_cast<const Float16*>(model.data) + head);
}
template <class Kind>
__device__ inline void store_model(const Model& model, const Row& row, const Place& place, Kind kind,
                                   const Values8<float>& param) {
  if (model.data == nullptr) return;
  if (model.dtype == DType::kFloat16) {
    store_values(static_cast<Float16*>(model.data) + row.begin, row, place, kind, param);
  } else {
    store_values(static_cast<BFloat16*>(model.data) + row.begin, row, place, kind, param);
  }
}

template <class Kind>
__device__ inline Values8<float> load_state(const float* data, const Row& row, const Place& place, Kind kind) {
  return widen<float>(load_raw<Hint::kNone>(data + row.begin, row, place, kind), place);
}

/// Where rows may begin: at a boundary of the 16-bit tensor, if there is one.
template <class Acc>
__device__ inline int head_of_step(const Value<Acc>& value, const Model& model, const float* param) {
  const bool is_16_bit = value.pending_dtype == DType::kFloat16 || value.pending_dtype == DType::kBFloat16;
  if (value.pending != nullptr && is_16_bit) return head_of(value);
  return model.data != nullptr ? head_of(static_cast<const Float16*>(model.data)) : head_of(param);
}

/// Calls `body` with the flag as a constant: for a choice between formulas. The whole warp makes the same one, and it
/// makes it inside the row, so that the variants share their loads, stores and registers.
template <class Body>
__device__ inline void with_flag(bool flag, Body body) {
  flag ? body(std::true_type{}) : body(std::false_type{});
}

template <class Acc>
__device__ inline void adam_chunk(const AdamEntry& to, const element::AdamCoefs<float>& coefs, bool has_l2_decay,
                                  const Value<Acc>& value, const Model& model, int numel) {
  const Place place = place_in_row();
  const int head = head_of_step(value, model, to.param);
  const bool amsgrad = to.max_exp_avg_sq != nullptr;
  const bool is_aligned = is_aligned_at(value, head) && is_aligned_at(model, head) && is_vector(to.param + head) &&
                          is_vector(to.exp_avg + head) && is_vector(to.exp_avg_sq + head) &&
                          (!amsgrad || is_vector(to.max_exp_avg_sq + head));
  for_each_row(numel, head, is_aligned, [&](const Row& row, auto kind) {
    Values8<float> p = load_state(to.param, row, place, kind), m = load_state(to.exp_avg, row, place, kind),
                   v = load_state(to.exp_avg_sq, row, place, kind), v_max{};
    if (amsgrad) v_max = load_state(to.max_exp_avg_sq, row, place, kind);
    const Values8<float> x = load_values(value, row, place, kind);
    with_flag(has_l2_decay, [&](auto l2) {
      with_flag(amsgrad, [&](auto with_max) {
        GF_UNROLL
        for (int s = 0; s < kSlots; ++s) {
          element::adam_update<l2, with_max>(x.slot[s], p.slot[s], m.slot[s], v.slot[s], v_max.slot[s], coefs);
        }
      });
    });
    store_values(to.param + row.begin, row, place, kind, p);
    store_values(to.exp_avg + row.begin, row, place, kind, m);
    store_values(to.exp_avg_sq + row.begin, row, place, kind, v);
    if (amsgrad) store_values(to.max_exp_avg_sq + row.begin, row, place, kind, v_max);
    store_model(model, row, place, kind, p);
  });
}

// Three blocks allow 168 registers a thread: 12 warps on an SM, with 144 bytes in flight a thread, are 54 KiB,
// where 3.3 TB/s at 800 ns on 132 SMs need 20 KiB (Little's law). With 128 registers Blackwell spills. Reference work
// in FP64 may take more.
template <class Acc>
inline constexpr int kBlocksPerSm = sizeof(Acc) == sizeof(float) ? 3 : 2;

template <class Acc>
__global__ void __launch_bounds__(kBlockSize, kBlocksPerSm<Acc>)
    adam_kernel(AdamArgs args, const element::ControlBlock* verdict) {
  if (verdict != nullptr && load(&verdict->outcome) != StepOutcome::kApplied) return;
  const ValueArgs& values = args.values;
  for_each_chunk(values.work.chunks, 0, values.work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const Value<Acc> value = value_of<Acc>(values.values + chunk.tensor, values.weight, chunk.begin);
    if (value.is_absent()) return;
    const AdamEntry* entry = args.entries + chunk.tensor;
    const element::AdamHyperParameters* group = args.groups + load(&entry->group);
    const element::AdamCoefs<float> coefs = load(args.coefs + chunk.tensor);
    float* max_exp_avg_sq = load(&entry->max_exp_avg_sq);
    const AdamEntry to{load(&entry->param) + chunk.begin,
                       load(&entry->exp_avg) + chunk.begin,
                       load(&entry->exp_avg_sq) + chunk.begin,
                       max_exp_avg_sq == nullptr ? nullptr : max_exp_avg_sq + chunk.begin,
                       nullptr,
                       DType::kFloat16,
                       0};
    const bool has_l2_decay = !load(&group->is_decoupled) && load(&group->weight_decay) != 0.0;
    adam_chunk(to, coefs, has_l2_decay, value, model_of(entry, chunk.begin), static_cast<int>(chunk.numel));
  });
}

/// The variant of SGD's formula that a tensor takes.
struct SgdVariant {
  bool has_l2_decay, nesterov;
  element::Momentum momentum;
};

template <class Acc>
__device__ inline void sgd_chunk(float* param, float* momentum_buffer, const element::SgdCoefs<float>& coefs,
                                 const SgdVariant& variant, const Value<Acc>& value, const Model& model, int numel) {
  using enum element::Momentum;
  const Place place = place_in_row();
  const int head = head_of_step(value, model, param);
  const bool has_momentum = variant.momentum != kNone;
  const bool is_aligned = is_aligned_at(value, head) && is_aligned_at(model, head) && is_vector(param + head) &&
                          (!has_momentum || is_vector(momentum_buffer + head));
  for_each_row(numel, head, is_aligned, [&](const Row& row, auto kind) {
    Values8<float> p = load_state(param, row, place, kind), buffer{};
    if (variant.momentum == kLater) buffer = load_state(momentum_buffer, row, place, kind);
    const Values8<float> x = load_values(value, row, place, kind);
    with_flag(variant.has_l2_decay, [&](auto l2) {
      const auto update = [&](auto momentum, auto nesterov) {
        GF_UNROLL
        for (int s = 0; s < kSlots; ++s) {
          element::sgd_update<l2, decltype(momentum)::value, nesterov>(x.slot[s], p.slot[s], buffer.slot[s], coefs);
        }
      };
      with_flag(variant.nesterov, [&](auto nesterov) {
        switch (variant.momentum) {
          case kNone: return update(std::integral_constant<element::Momentum, kNone>{}, nesterov);
          case kFirst: return update(std::integral_constant<element::Momentum, kFirst>{}, nesterov);
          case kLater: return update(std::integral_constant<element::Momentum, kLater>{}, nesterov);
        }
      });
    });
    store_values(param + row.begin, row, place, kind, p);
    if (has_momentum) store_values(momentum_buffer + row.begin, row, place, kind, buffer);
    store_model(model, row, place, kind, p);
  });
}

// Up to 112 bytes in flight a thread, and registers as above.
template <class Acc>
__global__ void __launch_bounds__(kBlockSize, kBlocksPerSm<Acc>)
    sgd_kernel(SgdArgs args, const element::ControlBlock* verdict) {
  using enum element::Momentum;
  if (verdict != nullptr && load(&verdict->outcome) != StepOutcome::kApplied) return;
  const ValueArgs& values = args.values;
  for_each_chunk(values.work.chunks, 0, values.work.num_chunks, [&](const Chunk& chunk, std::uint64_t) {
    const Value<Acc> value = value_of<Acc>(values.values + chunk.tensor, values.weight, chunk.begin);
    if (value.is_absent()) return;
    const SgdEntry* entry = args.entries + chunk.tensor;
    const element::SgdHyperParameters* group = args.groups + load(&entry->group);
    float* momentum_buffer = load(&entry->momentum_buffer);
    const bool has_momentum = momentum_buffer != nullptr;
    const bool is_first = load(args.is_first_step + chunk.tensor) != 0;
    const SgdVariant variant{load(&group->weight_decay) != 0.0, load(&group->nesterov),
                             !has_momentum ? kNone
                             : is_first    ? kFirst
                                           : kLater};
    sgd_chunk(load(&entry->param) + chunk.begin, has_momentum ? momentum_buffer + chunk.begin : nullptr,
              load(args.coefs + chunk.tensor), variant, value, model_of(entry, chunk.begin),
              static_cast<int>(chunk.numel));
  });
}

}  // namespace

cudaError_t adam(const Target& target, const AdamArgs& args, const element::ControlBlock* verdict) {
  const std::uint64_t num_chunks = args.values.work.num_chunks;
  return args.values.acc_is_float64
             ? launch_for_warps("adam_kernel<double>", target, num_chunks, adam_kernel<double>, args, verdict)
             : launch_for_warps("adam_kernel", target, num_chunks, adam_kernel<float>, args, verdict);
}
cudaError_t sgd(const Target& target, const SgdArgs& args, const element::ControlBlock* verdict) {
  const std::uint64_t num_chunks = args.values.work.num_chunks;
  return args.values.acc_is_float64
             ? launch_for_warps("sgd_kernel<double>", target, num_chunks, sgd_kernel<double>, args, verdict)
             : launch_for_warps("sgd_kernel", target, num_chunks, sgd_kernel<float>, args, verdict);
}

}  // namespace gradfuse::cuda
