#pragma once
// The passes on a CUDA device: tables of what a pass is to do, and one launch.
#include "src/backend/backend.hpp"
#include "src/backend/cuda/cuda_memory.hpp"
#include "src/backend/cuda/cuda_work_table.hpp"

namespace gradfuse {

/// "13.0", of CUDA's way to write versions as a number.
std::string version_text(int version);

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, cudaStream_t stream);

  BackendInfo info() const override;
  Device device() const override { return {Device::Kind::kCuda, static_cast<std::int16_t>(memory_.device())}; }
  const DeviceMemory& memory() const override { return memory_; }
  std::unique_ptr<WorkTable> make_work_table(std::span<const std::size_t> numels) const override;
  std::unique_ptr<Stopwatch> make_stopwatch() const override;

  void add(const AddPass&) const override;
  void stats(const StatsPass&) const override;
  void fold_sums(const WorkTable&, const Sums&) const override;
  void adam(const AdamPass&) const override;
  void sgd(const SgdPass&) const override;

  void zero(const WorkTable&, std::span<const TensorView> out) const override;
  void scale(const WorkTable&, float factor, std::span<const ConstTensorView> in, std::span<const TensorView> out,
             bool* found_nonfinite) const override;
  void axpby(const WorkTable&, float a, std::span<const ConstTensorView> x, float b, std::span<const ConstTensorView> y,
             std::span<const TensorView> out) const override;
  double max_magnitude(const WorkTable&, std::span<const ConstTensorView> x) const override;

  cuda::Target target() const noexcept { return {memory_.stream(), num_sms_}; }

 private:
  /// `control` null: nobody asks who claimed what.
  cuda::ValueArgs value_args(const Values& values, const ControlPass* control) const;
  double* fold_scratch(const WorkTable& table) const;
  cuda::ControlArgs control_args(const WorkTable& table, const ControlPass& pass) const;
  template <class Args, class Pass>
  void control_and_step(const Args& args, const Pass& pass,
                        cudaError_t (*update)(const cuda::Target&, const Args&, const ControlBlock*)) const;

  CudaMemory memory_;
  int num_sms_ = 0;
};

}  // namespace gradfuse
