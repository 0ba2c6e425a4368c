#pragma once
// The time between two events of a stream.
#include "src/backend/cuda/cuda_memory.hpp"
#include "src/backend/cuda/handles.hpp"
#include "src/backend/stopwatch.hpp"

namespace gradfuse {

class CudaStopwatch final : public Stopwatch {
 public:
  /// `memory`'s device is the current one.
  explicit CudaStopwatch(const CudaMemory& memory)
      : memory_(memory), start_(cudaEventDefault), stop_(cudaEventDefault) {}
  void start() override { record(start_); }
  double stop() override {
    record(stop_);
    check_cuda(cudaEventSynchronize(stop_.get()), "waiting for an event");
    float milliseconds = 0.0f;
    check_cuda(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "asking for the time between events");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  void record(const Event& event) const {
    const DeviceGuard guard(memory_.device());
    check_cuda(cudaEventRecord(event.get(), memory_.stream()), "recording an event");
  }

  const CudaMemory& memory_;
  Event start_, stop_;
};

}  // namespace gradfuse
