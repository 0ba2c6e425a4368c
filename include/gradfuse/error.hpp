#pragma once
// The one exception type of the library.
#include <stdexcept>

namespace gradfuse {

/// Thrown before anything is changed. The message names the tensor or the option, what came, what was expected, and
/// what to do about it. Non-finite gradients are not errors: they are a skipped step, told by `StepReport`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gradfuse
