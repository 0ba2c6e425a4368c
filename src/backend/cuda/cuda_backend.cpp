#include "src/backend/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include "src/backend/cuda/cuda_stopwatch.hpp"
#include "src/backend/cuda/pass_scope.hpp"

namespace gradfuse {
namespace {

const char* why_not_on_host(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    (void)cudaGetLastError();
    return "";
  }
  return attributes.type == cudaMemoryTypeDevice ? "it points to memory of a GPU" : "";
}

const CudaWorkTable& on_device(const WorkTable& table) { return static_cast<const CudaWorkTable&>(table); }

template <class Entry>
const Entry* resident(const CudaMemory& memory, CudaWorkTable::Scratch& scratch, const std::vector<Entry>& entries) {
  return scratch.tables.resident(memory, std::span<const Entry>(entries));
}

void fill(std::vector<cuda::InEntry>& entries, std::span<const ConstTensorView> views) {
  entries.clear();
  for (const ConstTensorView& view : views) entries.push_back({view.data, view.dtype});
}
void fill(std::vector<cuda::OutEntry>& entries, std::span<const TensorView> views) {
  entries.clear();
  for (const TensorView& view : views) entries.push_back({view.data, view.dtype});
}

}  // namespace

CudaBackend::CudaBackend(int device, cudaStream_t stream) : memory_(device, stream) {
  set_check_of_host_pointers(why_not_on_host);
  const DeviceGuard guard(device);
  check_cuda(cudaDeviceGetAttribute(&num_sms_, cudaDevAttrMultiProcessorCount, device), "asking for the processors");
}

BackendInfo CudaBackend::info() const {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, memory_.device()), "asking for the device's properties");
  int driver = 0, runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  return {.name = "cuda",
          .target = fmt::format("sm_{}{}", properties.major, properties.minor),
          .threads = 0,
          .device = properties.name,
          .driver = version_text(driver),
          .toolkit = version_text(runtime)};
}

std::unique_ptr<WorkTable> CudaBackend::make_work_table(std::span<const std::size_t> numels) const {
  return std::make_unique<CudaWorkTable>(memory_, numels);
}

std::unique_ptr<Stopwatch> CudaBackend::make_stopwatch() const {
  const DeviceGuard guard(memory_.device());
  return std::make_unique<CudaStopwatch>(memory_);
}

void CudaBackend::add(const AddPass& pass) const {
  const PassScope scope("add", memory_.device());
  const CudaWorkTable& table = on_device(pass.table);
  CudaWorkTable::Scratch& scratch = table.scratch();
  scratch.adds.clear();
  for (std::size_t tensor = 0; tensor < pass.grads.size(); ++tensor) {
    const bool is_asked = tensor >= pass.first_tensor && tensor < pass.end_tensor;
    const ConstTensorView& grad = pass.grads[tensor];
    scratch.adds.push_back({.grad = is_asked && grad.numel > 0 ? grad.data : nullptr,
                            .acc = pass.acc.data[tensor],
                            .grad_dtype = grad.dtype,
                            .is_first = pass.acc.is_written[tensor] == 0});
  }
  check_cuda(cuda::add(target(), {.work = table.on_device(),
                                  .first_chunk = table.chunks_of(pass.first_tensor).begin,
                                  .end_chunk = table.chunks_of(pass.end_tensor - 1).end,
                                  .entries = resident(memory_, scratch, scratch.adds),
                                  .acc_is_float64 = pass.acc.dtype == DType::kFloat64,
                                  .weight = pass.weight,
                                  .micro_batch = pass.micro_batch,
                                  .first_nonfinite = pass.first_nonfinite}),
             "launching the add pass");
}

cuda::ValueArgs CudaBackend::value_args(const Values& values, const ControlPass* control) const {
  const CudaWorkTable& table = on_device(values.table);
  CudaWorkTable::Scratch& scratch = table.scratch();
  scratch.values.clear();
  for (std::size_t tensor = 0; tensor < values.acc.data.size(); ++tensor) {
    const bool has_pending = values.has_pending(tensor);
    scratch.values.push_back({.acc = values.acc.is_written[tensor] != 0 ? values.acc.data[tensor] : nullptr,
                              .pending = has_pending ? values.pending[tensor].data : nullptr,
                              .pending_dtype = has_pending ? values.pending[tensor].dtype : DType::kFloat32,
                              .is_claimed = control == nullptr ? 0u : control->is_claimed[tensor]});
  }
  return {.work = table.on_device(),
          .values = resident(memory_, scratch, scratch.values),
          .acc_is_float64 = values.acc.dtype == DType::kFloat64,
          .weight = values.weight};
}

void CudaBackend::stats(const StatsPass& pass) const {
  const PassScope scope("stats", memory_.device());
  check_cuda(cuda::stats(target(), value_args(pass.values, nullptr), {pass.sums.by_chunk, pass.sums.by_tensor}),
             "launching the stats pass");
}

void CudaBackend::fold_sums(const WorkTable& table, const Sums& sums) const {
  const PassScope scope("fold_sums", memory_.device());
  check_cuda(
      cuda::fold_sums(target(), on_device(table).on_device(), {sums.by_chunk, sums.by_tensor}, fold_scratch(table)),
      "launching the folding of sums");
}

double* CudaBackend::fold_scratch(const WorkTable& table) const {
  const CudaWorkTable& work = on_device(table);
  DeviceArray<double>& scratch = work.scratch().sums;
  scratch.grow(memory_, cuda::fold_scratch_size(work.on_device()));
  return scratch.data();
}

cuda::ControlArgs CudaBackend::control_args(const WorkTable& table, const ControlPass& pass) const {
  return {.sums = {pass.sums.by_chunk, pass.sums.by_tensor},
          .scratch = fold_scratch(table),
          .first_nonfinite = pass.first_nonfinite,
          .last_micro_batch = pass.last_micro_batch,
          .total_count = pass.total_count,
          .max_norm = pass.max_norm,
          .loss_scale = pass.loss_scale,
          .loss_scale_is_dynamic = pass.loss_scale_rule != nullptr,
          .loss_scale_rule = pass.loss_scale_rule == nullptr ? element::LossScaleRule{} : *pass.loss_scale_rule,
          .step_counts = pass.step_counts,
          .control = pass.control};
}

template <class Args, class Pass>
void CudaBackend::control_and_step(const Args& args, const Pass& pass,
                                   cudaError_t (*update)(const cuda::Target&, const Args&, const ControlBlock*)) const {
  const ControlPass* control = pass.control;
  if (control == nullptr) {
    check_cuda(cuda::prepare(target(), args, pass.step), "launching the preparation of a step");
  } else {
    check_cuda(cuda::control(target(), args, control_args(pass.values.table, *control)), "launching the control pass");
  }
  check_cuda(update(target(), args, control == nullptr ? nullptr : control->control), "launching the step");
}

void CudaBackend::adam(const AdamPass& pass) const {
  const PassScope scope("adam", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(pass.values.table).scratch();
  scratch.adams.clear();
  for (std::size_t tensor = 0; tensor < pass.tensors.size(); ++tensor) {
    const AdamTensor& t = pass.tensors[tensor];
    scratch.adams.push_back({.param = t.param,
                             .exp_avg = t.exp_avg,
                             .exp_avg_sq = t.exp_avg_sq,
                             .max_exp_avg_sq = t.max_exp_avg_sq,
                             .model = t.model.data,
                             .model_dtype = t.model.dtype,
                             .group = pass.group_of[tensor]});
  }
  scratch.adam_coefs.grow(memory_, pass.tensors.size());
  const cuda::AdamArgs args{.values = value_args(pass.values, pass.control),
                            .entries = resident(memory_, scratch, scratch.adams),
                            .groups = pass.groups,
                            .coefs = scratch.adam_coefs.data()};
  control_and_step(args, pass, cuda::adam);
}

void CudaBackend::sgd(const SgdPass& pass) const {
  const PassScope scope("sgd", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(pass.values.table).scratch();
  scratch.sgds.clear();
  for (std::size_t tensor = 0; tensor < pass.tensors.size(); ++tensor) {
    const SgdTensor& t = pass.tensors[tensor];
    scratch.sgds.push_back({.param = t.param,
                            .momentum_buffer = t.momentum_buffer,
                            .model = t.model.data,
                            .model_dtype = t.model.dtype,
                            .group = pass.group_of[tensor]});
  }
  scratch.sgd_coefs.grow(memory_, pass.tensors.size());
  scratch.is_first_step.grow(memory_, pass.tensors.size());
  const cuda::SgdArgs args{.values = value_args(pass.values, pass.control),
                           .entries = resident(memory_, scratch, scratch.sgds),
                           .groups = pass.groups,
                           .coefs = scratch.sgd_coefs.data(),
                           .is_first_step = scratch.is_first_step.data()};
  control_and_step(args, pass, cuda::sgd);
}

void CudaBackend::zero(const WorkTable& table, std::span<const TensorView> out) const {
  const PassScope scope("zero", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(table).scratch();
  fill(scratch.outs, out);
  check_cuda(cuda::zero(target(), on_device(table).on_device(), resident(memory_, scratch, scratch.outs)),
             "launching the zero pass");
}

void CudaBackend::scale(const WorkTable& table, float factor, std::span<const ConstTensorView> in,
                        std::span<const TensorView> out, bool* found_nonfinite) const {
  const PassScope scope("scale", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(table).scratch();
  fill(scratch.ins, in);
  fill(scratch.outs, out);
  scratch.found.grow(memory_, 1);
  scratch.found.clear(memory_);
  check_cuda(cuda::scale(target(), on_device(table).on_device(), factor, resident(memory_, scratch, scratch.ins),
                         resident(memory_, scratch, scratch.outs), scratch.found.data()),
             "launching the scale pass");
  if (found_nonfinite != nullptr && scratch.found.get(memory_, 0) != 0) *found_nonfinite = true;
}

void CudaBackend::axpby(const WorkTable& table, float a, std::span<const ConstTensorView> x, float b,
                        std::span<const ConstTensorView> y, std::span<const TensorView> out) const {
  const PassScope scope("axpby", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(table).scratch();
  fill(scratch.ins, x);
  const cuda::InEntry* x_entries = resident(memory_, scratch, scratch.ins);
  fill(scratch.ins, y);
  const cuda::InEntry* y_entries = resident(memory_, scratch, scratch.ins);
  fill(scratch.outs, out);
  check_cuda(cuda::axpby(target(), on_device(table).on_device(), a, x_entries, b, y_entries,
                         resident(memory_, scratch, scratch.outs)),
             "launching the axpby pass");
}

double CudaBackend::max_magnitude(const WorkTable& table, std::span<const ConstTensorView> x) const {
  const PassScope scope("max_magnitude", memory_.device());
  CudaWorkTable::Scratch& scratch = on_device(table).scratch();
  fill(scratch.ins, x);
  scratch.found.grow(memory_, 1);
  scratch.found.clear(memory_);
  check_cuda(cuda::max_magnitude(target(), on_device(table).on_device(), resident(memory_, scratch, scratch.ins),
                                 scratch.found.data()),
             "launching the max_magnitude pass");
  return element::float_of_bits(scratch.found.get(memory_, 0));
}

}  // namespace gradfuse
