#pragma once
// Is a window of N micro-batches what one batch N times as large would have been?
#include <gradfuse/train/train_mlp.hpp>

#include <cstddef>
#include <functional>

namespace gradfuse::train {

/// The largest absolute difference of a parameter that passes as rounding.
inline constexpr double kLargeBatchTolerance = 1e-6;

struct LargeBatchDifference {
  std::size_t epoch = 0;  ///< From 1.
  std::size_t steps = 0;  ///< So far.
  double loss = 0;        ///< Of the run in micro-batches, in this epoch.
  double max_abs = 0;     ///< Largest absolute difference of a parameter at the end of the epoch.
  double relative = 0;    ///< L2 norm of the difference over that of the parameters.

  bool is_rounding() const noexcept { return max_abs <= kLargeBatchTolerance; }
};

/// What `compare_large_batch` checks before it starts.
/// @throws Error  as `check_options`; or the precision is not float32, the norm is batch normalisation (its statistics
///                are those of a micro-batch), or a window has but one micro-batch.
void check_comparison(const MlpTrainOptions& options, const nn::DigitsSplit& data);

/// Trains twice in float32 from the same seed on the same order of rows: windows of `accum_steps` micro-batches against
/// windows of one micro-batch that many times as large. Returns the largest differences over all epochs.
///
/// The gradients of the two differ by rounding (another order of summation); what becomes of that is up to the
/// optimizer and the model. Largest difference over 20 seeds and 5 epochs, 4 micro-batches a window, AVX-512, one
/// thread:
/// - AdamW with lr 3e-3 and eps 1e-3, GELU: 2e-7 with micro-batches of 32 rows (60 windows), 3e-7 with 8 rows (225),
///   6e-7 with 4 rows (450); rounding adds up. With layer norm the last is 2e-6.
/// - AdamW with eps 1e-8: 6e-5, above 1e-6 for 4 seeds of 20, from the first epoch on. Where a gradient nearly cancels,
///   `grad / (|grad| + eps)` turns its rounding into a part of lr.
/// - SGD with momentum 0.9: 4e-7 at lr 0.1 and windows of 128 rows; 5e-6 at lr 0.1 and windows of 32 rows, near the
///   edge of stability, where any difference grows; 5e-7 there at lr 0.05.
/// - ReLU over 15 epochs: up to 5e-2 for some seeds. A pre-activation within rounding of 0 opens the gate in one run
///   and closes it in the other.
///
/// @param on_epoch  May be empty.
/// @throws Error    as `check_comparison`, or as `train_mlp` when training diverges.
LargeBatchDifference compare_large_batch(const MlpTrainOptions& options, const nn::DigitsSplit& data,
                                         const std::function<void(const LargeBatchDifference&)>& on_epoch = {});

}  // namespace gradfuse::train
