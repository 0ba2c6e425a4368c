#pragma once
// How the end of a window went.

namespace gradfuse {

enum class StepOutcome {
  kApplied,
  kNonFinite,   ///< Skipped: a gradient was inf or NaN, or their norm is above the largest FP32 number.
  kEmptyTotal,  ///< Skipped: the counts of the window add up to 0, so there is nothing to divide by.
};

}  // namespace gradfuse
