#pragma once
// An independent reference for a whole window: one element after the other, no chunks, no vectors, no threads; only the
// element formulas are the library's. What it gives, every machine must give, bit for bit.
#include <gradfuse/optimizer.hpp>

#include <optional>
#include <variant>
#include <vector>

#include "tests/support.hpp"

namespace gradfuse::test {

/// The promised order of a sum: 4096 terms at a time, 256 lanes, folded in halves, and again on the results.
double reference_sum(std::vector<double> terms);

struct ReferenceTensor {
  HostTensor param;
  HostTensor model;  // numel 0: none
  HostTensor exp_avg, exp_avg_sq, max_exp_avg_sq, momentum_buffer;
  std::int64_t step = 0;
  std::vector<double> acc;  // of the accumulator's dtype
  bool has_value = false;
};

class ReferenceTrainer {
 public:
  using Options = std::variant<AdamWOptions, AdamOptions, SgdOptions>;
  ReferenceTrainer(DType accumulate, Options options) : accumulate_(accumulate), options_(options) {}

  void add_tensor(const HostTensor& param, DType model, bool has_model);
  /// `grads[t] == nullptr`: no gradient.
  void add(const std::vector<const HostTensor*>& grads, double weight, double count);
  StepReport step(std::optional<double> max_norm, double loss_scale);

  std::vector<ReferenceTensor> tensors;

 private:
  void update(ReferenceTensor& tensor, double grad_scale);

  DType accumulate_;
  Options options_;
  double total_ = 0.0;
};

}  // namespace gradfuse::test
