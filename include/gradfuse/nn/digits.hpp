#pragma once
// The UCI handwritten digits, and one reproducible train/test split of them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace gradfuse::nn {

inline constexpr std::size_t kDigitsInputs = 64;   // 8 x 8 pixels, row-major
inline constexpr std::size_t kDigitsClasses = 10;  // label 7 is a picture of a 7

/// Row-major features [rows, inputs] beside one label a row.
struct LabelledRows {
  std::vector<float> features;
  std::vector<std::int32_t> labels;

  std::size_t num_rows() const noexcept { return labels.size(); }
};

struct DigitsSplit {
  LabelledRows train;
  LabelledRows test;
};

/// Reads rows of 64 pixels 0..16 and a label 0..9, separated by commas, one row a line (LF or CRLF; the last line may
/// lack it). Pixels are divided by 16, so every feature is an exact float in [0, 1].
///
/// @throws Error  naming path and line: not a readable regular file, fewer than 10 rows, a line that is not 65 integers
///                in range.
/// Source: E. Alpaydin & C. Kaynak, Optical Recognition of Handwritten Digits, UCI 1998, doi 10.24432/C50P49.
LabelledRows load_digits(const std::filesystem::path& path);

/// Shuffles the rows by `seed` and gives the first four fifths (rounded down) to `train`, the rest to `test`: 1437 and
/// 360 of the 1797 digits. The same seed gives the same split on every machine and compiler.
///
/// @throws Error  features are not 64 a label.
DigitsSplit split_digits(const LabelledRows& digits, std::uint64_t seed);

}  // namespace gradfuse::nn
