#include "src/workload/adamw_pass.hpp"

namespace gradfuse::workload {
namespace {
// Of the size that clipped gradients have: their squares are far from denormal, and so is what becomes of them.
constexpr int kParamExponent = -6, kGradExponent = -10;
}  // namespace

AdamWPass::AdamWPass(const TensorShapes& tensors, const std::shared_ptr<const Backend>& backend)
    : param_memory_(tensors, DType::kFloat32, *backend, kParamExponent),
      grad_memory_(tensors, DType::kFloat32, *backend, kGradExponent),
      exp_avg_memory_(tensors, DType::kFloat32, *backend),
      exp_avg_sq_memory_(tensors, DType::kFloat32, *backend),
      param_(param_memory_.views(), backend),
      grad_(grad_memory_.views(), backend),
      exp_avg_(exp_avg_memory_.views(), backend),
      exp_avg_sq_(exp_avg_sq_memory_.views(), backend) {}

void AdamWPass::run() { adamw_step({param_, grad_, exp_avg_, exp_avg_sq_}, AdamWOptions{}, ++step_); }

}  // namespace gradfuse::workload
