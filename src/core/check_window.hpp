#pragma once
// What must be true of a micro-batch and of a step before anything is changed, fused or not.
#include <gradfuse/optimizer.hpp>
#include <gradfuse/window.hpp>

namespace gradfuse {

/// Whether gradients can be divided by it: positive, and neither it nor its inverse beyond float32.
bool is_total(double value);

/// @param sum_of_counts  of the window so far.
/// @throws Error  the weight or count is negative, not finite or too small for float32, or the window's total would not
///                be finite.
void check_micro_batch(const MicroBatch& micro_batch, double sum_of_counts);

/// @throws Error  the window holds no micro-batch, or `max_grad_norm` is negative or NaN.
void check_step(std::size_t micro_batches, const StepOptions& options);

}  // namespace gradfuse
