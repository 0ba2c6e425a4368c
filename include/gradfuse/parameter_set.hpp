#pragma once
// The tensors to be trained: views of memory that the caller owns, with names and groups.
#include <gradfuse/backend.hpp>
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradfuse {

struct Parameter {
  std::string name = {};
  TensorView param = {};  ///< float32 [numel], the master copy that the optimizer updates.
  TensorView model = {};  ///< float16 or bfloat16 [numel], rewritten by each applied step; absent when there is none.
  std::size_t group = 0;  ///< Tensors of one group share hyper-parameters.
};

/// Tensors are known by their index, in the order of `add`. A `Window` or an `Optimizer` refers to its set, which must
/// outlive them and stay where it is; tensors may be added while they are in use, and join from then on.
class ParameterSet {
 public:
  explicit ParameterSet(std::shared_ptr<const Backend> backend = cpu_backend());
  ParameterSet(ParameterSet&&) noexcept;
  ParameterSet& operator=(ParameterSet&&) noexcept;
  ~ParameterSet();

  /// Adds a tensor and returns its index. Its memory must stay valid and in place as long as the set is used.
  /// @throws Error  the name is empty or taken; a dtype, size or device does not fit; a pointer is null or not aligned
  ///                to its element; the memory overlaps that of another tensor of the set. The set is then unchanged.
  std::size_t add(Parameter parameter);

  std::size_t size() const noexcept { return parameters_.size(); }
  const Parameter& operator[](std::size_t tensor) const { return parameters_.at(tensor); }
  std::span<const Parameter> parameters() const noexcept { return parameters_; }
  std::optional<std::size_t> find(std::string_view name) const;
  /// Elements of all tensors.
  std::size_t numel() const noexcept { return numel_; }
  /// One more than the highest group in use.
  std::size_t num_groups() const noexcept { return num_groups_; }
  const std::shared_ptr<const Backend>& backend() const noexcept { return backend_; }

  /// The tensor whose parameter or model copy shares memory with `[data, data + num_bytes)`, if any.
  std::optional<std::size_t> overlapping(const void* data, std::size_t num_bytes) const;

 private:
  struct Lookup;
  std::shared_ptr<const Backend> backend_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<Lookup> lookup_;
  std::size_t numel_ = 0;
  std::size_t num_groups_ = 0;
};

}  // namespace gradfuse
