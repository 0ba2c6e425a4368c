#pragma once
// What the memory of a backend's device can move: measured in the run that it judges.
#include <gradfuse/backend.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "src/backend/backend.hpp"
#include "src/workload/synthetic_model.hpp"

namespace gradfuse::workload {

enum class Stream { kRead, kCopy, kCopyStreaming, kTriad, kTriadStreaming, kUpdate, kUpdateStreaming };
inline constexpr std::array kStreams{Stream::kRead,           Stream::kCopy,   Stream::kCopyStreaming,  Stream::kTriad,
                                     Stream::kTriadStreaming, Stream::kUpdate, Stream::kUpdateStreaming};
/// "read", "copy", "copy_streaming", …; streaming stores go around the caches.
std::string_view stream_name(Stream stream);

/// Sweeps over memory of several times the last-level cache: on the CPU of every kind, with all threads; on a GPU
/// copies by its driver. Bytes are counted as STREAM does (McCalpin 1995): what is read and what is written, not the
/// line that an ordinary store fetches before it writes.
class BandwidthMeter {
 public:
  /// @throws Error  there is not enough memory.
  explicit BandwidthMeter(std::shared_ptr<const Backend> backend);

  /// The kinds of sweeps that there are on this device.
  std::span<const Stream> streams() const;

  /// One sweep; returns the bytes it moved.
  std::size_t sweep(Stream stream);
  /// Times one sweep of the kind whose turn it is.
  void measure_next();
  /// Every kind so many times.
  void measure_all(std::size_t rounds);

  /// Bytes per second; 0 before the first measurement.
  double fastest(Stream stream) const { return fastest_[static_cast<std::size_t>(stream)]; }
  /// The bound: the best of read, copy and triad. An update in place, which some machines do faster than any of them,
  /// is measured beside it.
  double bound() const { return bound_; }

  /// The bound as measured from here on until the next call: a shared machine is not equally fast from case to case.
  void start_case() { case_bound_ = 0.0; }
  double case_bound() const { return case_bound_; }

 private:
  std::shared_ptr<const Backend> backend_;
  int threads_;
  FlatArray memory_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::size_t next_ = 0;
  std::array<double, kStreams.size()> fastest_{};
  double bound_ = 0.0, case_bound_ = 0.0;
};

}  // namespace gradfuse::workload
