#pragma once
// The passes on host memory: loops of one SIMD target, OpenMP threads, and the fused passes put together from loops
// that hand a chunk on in the L1 cache.
#include "kernels/cpu/loops.hpp"
#include "src/backend/backend.hpp"

namespace gradfuse {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const cpu::Loops& loops, int threads) : loops_(loops), threads_(threads) {}

  BackendInfo info() const override;
  Device device() const override { return Device::kCpu; }
  const DeviceMemory& memory() const override { return host_memory(); }
  std::unique_ptr<WorkTable> make_work_table(std::span<const std::size_t> numels) const override {
    return std::make_unique<WorkTable>(numels);
  }
  std::unique_ptr<Stopwatch> make_stopwatch() const override { return std::make_unique<HostStopwatch>(); }

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

  const cpu::Loops& loops() const noexcept { return loops_; }

 private:
  void control(const Values&, const ControlPass&) const;

  const cpu::Loops& loops_;
  int threads_;
};

}  // namespace gradfuse
