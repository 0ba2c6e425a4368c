#pragma once
// What a window holds, for the window itself and for the optimizer that ends it.
#include <gradfuse/window.hpp>

#include <memory>
#include <vector>

#include "src/backend/backend.hpp"
#include "src/backend/device_array.hpp"
#include "src/core/address_ranges.hpp"
#include "src/core/segments.hpp"

namespace gradfuse {

struct WindowState {
  WindowState(const ParameterSet& params_, WindowOptions options_)
      : params(&params_), options(options_), acc(options_.accumulate) {}

  /// Takes in tensors that joined the set.
  void grow();
  /// Makes ready for the next window, when a step has ended this one.
  void reset() noexcept;
  AccumulatorTable accumulator() const { return {options.accumulate, acc.data(), acc_joins, is_written}; }
  /// What the step reads.
  Values values() const;

  const ParameterSet* params;
  WindowOptions options;

  Segments acc;
  std::vector<std::uint8_t> acc_joins;
  AddressRanges acc_memory;
  std::unique_ptr<WorkTable> table;
  std::vector<std::uint8_t> is_written;  // by tensor: the accumulator holds something of this window
  std::vector<std::uint8_t> is_claimed;  // by tensor: a producer wrote the accumulator itself
  std::vector<ConstTensorView> grads;    // by tensor, of the last micro-batch; they passed the checks, and would again
  std::vector<std::uint8_t> grad_joins;
  std::size_t first_grad = 0, end_grad = 0;  // no other tensor has a gradient
  bool must_check_all = true;                // those that are there may share memory with a tensor that joined since
  bool grads_are_written = false;            // `is_written` knows of all of them
  bool has_pending = false;                  // they are not merged
  float pending_weight = 1.0f;
  DeviceArray<std::uint32_t> first_nonfinite;  // by tensor

  std::size_t micro_batches = 0;
  double sum_of_counts = 0.0;
  bool is_full = false;
  bool has_claims = false;  // or what was folded, since the last add
};

}  // namespace gradfuse
