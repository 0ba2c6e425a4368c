#pragma once
// What a window holds, for the window itself and for the optimizer that ends it.
#include <gradfuse/window.hpp>

#include <memory>
#include <vector>

#include "src/backend/backend.hpp"
#include "src/core/address_ranges.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {

struct Window::State {
  State(const ParameterSet& params_, WindowOptions options_)
      : params(&params_), options(options_), acc(options_.accumulate) {}

  /// Takes in tensors that joined the set.
  void grow();
  /// The values that the step reads, by tensor.
  std::span<const ValueSlot> values();
  void reset() noexcept;

  const ParameterSet* params;
  WindowOptions options;

  Segments acc;
  AddressRanges acc_memory;
  std::unique_ptr<WorkTable> table;
  /// By tensor. `grad` is that of the last micro-batch; `position` is kLater once the accumulator holds something of
  /// this window.
  std::vector<AddSlot> slots;
  std::vector<ConstTensorView> checked;  // by tensor: the gradient that passed the checks last, and would again
  bool has_pending = false;              // the gradients in `slots` are not merged
  float pending_weight = 1.0f;
  std::vector<std::uint32_t> first_nonfinite;  // by tensor
  std::vector<ValueSlot> value_slots;          // scratch of `values`

  std::size_t micro_batches = 0;
  double sum_of_counts = 0.0;
  bool is_full = false;
  bool has_claims = false;  // since the last add
};

}  // namespace gradfuse
