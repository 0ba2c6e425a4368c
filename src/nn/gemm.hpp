#pragma once
// Matrix product of row-major matrices through oneDNN, or through plain loops in double for gradient checks.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace gradfuse::nn {

/// How an operand lies in memory: as the formula reads it, or with rows and columns exchanged.
enum class Stored : std::uint8_t { kPlain, kTransposed };

/// What stood in C is discarded without being read (beta = 0), or added to (beta = 1).
enum class Destination : std::uint8_t { kOverwrite, kAddTo };

/// C[m, n] = A[m, k] B[k, n] (+ C). All row-major and dense; a transposed operand is stored as [k, m] or [n, k].
struct GemmSpec {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  Stored a = Stored::kPlain;
  Stored b = Stored::kPlain;
  Destination c = Destination::kOverwrite;

  // clang-tidy 14 takes the comparison's hidden 0 for a null pointer.
  friend auto operator<=>(const GemmSpec&, const GemmSpec&) = default;  // NOLINT(modernize-use-nullptr)
};

/// @throws Error  a dimension is 0.
void check_spec(const GemmSpec& spec);

/// Keeps what oneDNN builds for a spec, so each spec is compiled once. One thread at a time.
class Gemm {
 public:
  Gemm();
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  /// @throws Error  before C is written: as `check_spec`, or oneDNN has refused.
  void multiply(const GemmSpec& spec, const float* a, const float* b, float* c);
  void multiply(const GemmSpec& spec, const double* a, const double* b, double* c);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradfuse::nn
