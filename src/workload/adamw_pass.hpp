#pragma once
// AdamW alone, from FP32 gradients: what torch's AdamW(fused=True) does on the CPU.
#include <gradfuse/passes.hpp>

#include <cstdint>

#include "src/workload/synthetic_model.hpp"

namespace gradfuse::workload {

class AdamWPass {
 public:
  AdamWPass(const TensorShapes& tensors, const std::shared_ptr<const Backend>& backend);
  void run();

  static std::size_t num_bytes(std::size_t numel) { return numel * 4 * sizeof(float); }

 private:
  FlatArray param_memory_, grad_memory_, exp_avg_memory_, exp_avg_sq_memory_;
  TensorList param_, grad_, exp_avg_, exp_avg_sq_;
  std::int64_t step_ = 0;
};

}  // namespace gradfuse::workload
