#pragma once
// What the optimizers differ in: hyper-parameters, states, and the step pass.
#include <gradfuse/optimizer.hpp>

#include <vector>

#include "src/backend/backend.hpp"

namespace gradfuse {

/// What the step pass of every rule needs.
struct StepInputs {
  Values values;
  std::span<const std::uint32_t> group_of;
  const ControlPass& control;
};

class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  /// Takes in groups that joined. @throws Error  a group's hyper-parameters are out of range.
  virtual void check_groups(const ParameterSet& params) = 0;
  /// Gives states to the tensors that joined.
  virtual void grow(const ParameterSet& params) = 0;
  /// Writes the groups as they are now to where the step pass reads them.
  virtual void publish(const DeviceMemory& memory) = 0;
  /// The step pass, with the groups as they are now.
  virtual void step(const Backend& backend, const StepInputs& inputs) = 0;
  virtual std::vector<OptimizerState> state(const ParameterSet& params, std::size_t tensor) const = 0;
};

}  // namespace gradfuse
