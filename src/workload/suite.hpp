#pragma once
// The short selection of cases behind `gradfuse bench`: fused against unfused, with the bound, in under a minute.
#include <gradfuse/backend.hpp>
#include <gradfuse/dtype.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/workload/bandwidth.hpp"

namespace gradfuse::workload {

struct SuiteOptions {
  std::shared_ptr<const Backend> backend = cpu_backend();
  double seconds = 30.0;  ///< What the timed rounds may take; making the models comes on top.
};

struct WindowResult {
  std::string tensor_list;  ///< "one tensor", "GPT-2", …
  std::size_t parameters = 0, tensors = 0;
  DType grad_dtype = DType::kFloat16;
  std::size_t micro_batches = 1;
  double fused_seconds = 0.0, unfused_seconds = 0.0;  ///< 0 when skipped
  double bandwidth = 0.0;                             ///< Bytes per second that the memory did between the rounds.
  std::size_t fused_bytes_per_parameter = 0, unfused_bytes_per_parameter = 0;
  std::string why_skipped;  ///< empty: it was measured
};

/// A single pass, which has no unfused counterpart.
struct PassResult {
  std::string name;
  std::size_t parameters = 0, tensors = 0;
  DType grad_dtype = DType::kFloat32;
  double seconds = 0.0;
  double bandwidth = 0.0;  ///< As above.
  std::size_t bytes_per_parameter = 0;
  std::string why_skipped;
};

struct SuiteResult {
  std::vector<WindowResult> windows;
  std::vector<PassResult> passes;
};

/// Runs the suite; the sweeps of `meter` take turns with the cases. A case that does not fit into memory is skipped.
/// @param progress  Told what is measured next.
SuiteResult run_suite(const SuiteOptions& options, BandwidthMeter& meter,
                      const std::function<void(const std::string&)>& progress);

}  // namespace gradfuse::workload
