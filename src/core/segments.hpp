#pragma once
// One array beside the parameters: the accumulator, or an optimizer state. Flat, with an aligned segment for each
// tensor; tensors that join later get a further block, so no segment ever moves.
#include <gradfuse/parameter_set.hpp>

#include <vector>

#include "src/backend/backend.hpp"

namespace gradfuse {

class Segments {
 public:
  explicit Segments(DType dtype) : dtype_(dtype) {}

  /// Gives zero-filled segments to the tensors that joined `params` since the last call and that `wants`.
  template <class Wants>
  void grow(const ParameterSet& params, Wants wants);
  void grow(const ParameterSet& params) {
    grow(params, [](std::size_t) { return true; });
  }

  std::span<void* const> data() const noexcept { return data_; }
  /// Null for a tensor that did not want one.
  void* operator[](std::size_t tensor) const { return data_[tensor]; }
  TensorView view(const ParameterSet& params, std::size_t tensor) const {
    return {data_[tensor], params[tensor].param.numel, dtype_, params.backend()->device()};
  }

 private:
  static constexpr std::size_t kAlignment = 256;  // whole cache lines, and the unit of the GPU's allocator

  DType dtype_;
  std::vector<Buffer> blocks_;
  std::vector<void*> data_;
};

template <class Wants>
void Segments::grow(const ParameterSet& params, Wants wants) {
  if (data_.size() == params.size()) return;
  const std::size_t joined = data_.size();
  std::vector<std::size_t> offsets;
  std::size_t num_bytes = 0;
  for (std::size_t tensor = joined; tensor < params.size(); ++tensor) {
    offsets.push_back(num_bytes);
    if (!wants(tensor)) continue;
    const std::size_t used = params[tensor].param.numel * element_size(dtype_);
    num_bytes += (used + kAlignment - 1) / kAlignment * kAlignment;
  }
  // One byte at least: a segment of no elements still has an address, so that it is not taken for a missing one.
  blocks_.push_back(params.backend()->memory().allocate(num_bytes + 1));
  auto* block = blocks_.back().as<std::byte>();
  data_.reserve(params.size());
  for (std::size_t tensor = joined; tensor < params.size(); ++tensor) {
    data_.push_back(wants(tensor) ? block + offsets[tensor - joined] : nullptr);
  }
}

}  // namespace gradfuse
