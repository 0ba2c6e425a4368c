#pragma once
// Is a window of N micro-batches what one batch N times as large would have been?
#include <gradfuse/train/train_mlp.hpp>

#include <cstddef>
#include <functional>

namespace gradfuse::train {

struct LargeBatchDifference {
  std::size_t epoch = 0;  ///< From 1.
  double max_abs = 0;     ///< Largest absolute difference of a parameter.
  double relative = 0;    ///< L2 norm of the difference over that of the parameters.
};
}  // namespace gradfuse::train
