#pragma once
// torch.optim's formulas for one element, in FP64 and written as torch documents them, not as the library computes
// them.
#include <gradfuse/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace gradfuse::test {

struct TorchElement {
  double p = 0.0, exp_avg = 0.0, exp_avg_sq = 0.0, max_exp_avg_sq = 0.0, momentum_buffer = 0.0;
  std::int64_t step = 0;
};

template <class Options>  // AdamOptions or AdamWOptions
void torch_step(TorchElement& e, double grad, const Options& o) {
  ++e.step;
  if (o.maximize) grad = -grad;
  if constexpr (std::is_same_v<Options, AdamWOptions>) {
    e.p *= 1.0 - o.lr * o.weight_decay;
  } else {
    grad += o.weight_decay * e.p;
  }
  e.exp_avg = o.beta1 * e.exp_avg + (1.0 - o.beta1) * grad;
  e.exp_avg_sq = o.beta2 * e.exp_avg_sq + (1.0 - o.beta2) * grad * grad;
  e.max_exp_avg_sq = std::max(e.max_exp_avg_sq, e.exp_avg_sq);
  const auto t = static_cast<double>(e.step);
  const double correction1 = o.bias_correction ? 1.0 - std::pow(o.beta1, t) : 1.0;
  const double correction2 = o.bias_correction ? 1.0 - std::pow(o.beta2, t) : 1.0;
  const double denom = std::sqrt(o.amsgrad ? e.max_exp_avg_sq : e.exp_avg_sq) / std::sqrt(correction2) + o.eps;
  e.p -= o.lr / correction1 * e.exp_avg / denom;
}

inline void torch_step(TorchElement& e, double grad, const SgdOptions& o) {
  ++e.step;
  if (o.maximize) grad = -grad;
  grad += o.weight_decay * e.p;
  if (o.momentum != 0.0) {
    e.momentum_buffer = e.step == 1 ? grad : o.momentum * e.momentum_buffer + (1.0 - o.dampening) * grad;
    grad = o.nesterov ? grad + o.momentum * e.momentum_buffer : e.momentum_buffer;
  }
  e.p -= o.lr * grad;
}

}  // namespace gradfuse::test
