#include "src/workload/bandwidth.hpp"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <gradfuse/error.hpp>

#include "src/workload/available_memory.hpp"
#include "src/workload/stream_loops.hpp"

namespace gradfuse::workload {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

constexpr Stream kDeviceStreams[] = {Stream::kCopy};

/// Eight times the last-level cache: at four times, a cache that does not evict the oldest line still serves a part.
/// Of a GPU, more than any cache there is.
std::size_t memory_to_sweep(const Backend& backend) {
  if (backend.device() != Device::kCpu) return 1024 * kMiB;
  const long last_level = ::sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1 where it is not told
  const std::size_t cache = last_level > 0 ? static_cast<std::size_t>(last_level) : 32 * kMiB;
  return std::clamp(8 * cache, 128 * kMiB, 512 * kMiB);
}

FlatArray allocate(const Backend& backend) {
  const std::size_t num_bytes = memory_to_sweep(backend);
  const std::string shortage = memory_shortage(num_bytes);
  if (!shortage.empty()) throw Error("measuring the memory bandwidth " + shortage);
  return {one_tensor(num_bytes / sizeof(float)), DType::kFloat32, backend, 0};
}

/// Calls `body(begin, numel)` on each thread for its part of `[0, numel)`, in units of `kStreamUnit`.
template <class Body>
void in_parts(std::size_t numel, int threads, Body body) {
  const std::size_t units = numel / kStreamUnit;
#pragma omp parallel num_threads(threads)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto num_threads = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t begin = units * thread / num_threads, end = units * (thread + 1) / num_threads;
    body(begin * kStreamUnit, (end - begin) * kStreamUnit);
  }
}

}  // namespace

std::string_view stream_name(Stream stream) {
  constexpr std::array<std::string_view, kStreams.size()> kNames{
      "read", "copy", "copy_streaming", "triad", "triad_streaming", "update", "update_streaming"};
  return kNames[static_cast<std::size_t>(stream)];
}

BandwidthMeter::BandwidthMeter(std::shared_ptr<const Backend> backend)
    : backend_(std::move(backend)),
      threads_(describe(*backend_).threads),
      memory_(allocate(*backend_)),
      stopwatch_(backend_->make_stopwatch()) {}

std::span<const Stream> BandwidthMeter::streams() const {
  return backend_->device() == Device::kCpu ? std::span<const Stream>(kStreams) : kDeviceStreams;
}

std::size_t BandwidthMeter::sweep(Stream stream) {
  using enum Stream;
  const TensorView& memory = memory_.views().front();
  const std::size_t all = memory.numel;
  const std::size_t half = all / 2, third = all / 3 / kStreamUnit * kStreamUnit;
  auto* x = static_cast<float*>(memory.data);
  if (backend_->device() != Device::kCpu) {
    backend_->memory().copy(x, x + half, half * sizeof(float));
    return 2 * half * sizeof(float);
  }
  const bool is_streaming = stream == kCopyStreaming || stream == kTriadStreaming || stream == kUpdateStreaming;
  const Store store = is_streaming ? Store::kStreaming : Store::kCached;
  switch (stream) {
    case kRead: {
      std::atomic<float> kept = 0.0f;
      in_parts(all, threads_, [&](std::size_t i, std::size_t numel) { kept = stream_read(x + i, numel); });
      return all * sizeof(float);
    }
    case kCopy:
    case kCopyStreaming:
      in_parts(half, threads_,
               [&](std::size_t i, std::size_t numel) { stream_copy(x + i, x + half + i, numel, store); });
      return 2 * half * sizeof(float);
    case kTriad:
    case kTriadStreaming:
      in_parts(third, threads_, [&](std::size_t i, std::size_t numel) {
        stream_triad(x + i, x + third + i, x + 2 * third + i, numel, store);
      });
      return 3 * third * sizeof(float);
    case kUpdate:
    case kUpdateStreaming:
      in_parts(all, threads_, [&](std::size_t i, std::size_t numel) { stream_update(x + i, numel, store); });
      return 2 * all * sizeof(float);
  }
  return 0;
}

void BandwidthMeter::measure_next() {
  const Stream stream = streams()[next_++ % streams().size()];
  stopwatch_->start();
  const std::size_t num_bytes = sweep(stream);
  const double rate = static_cast<double>(num_bytes) / stopwatch_->stop();
  double& fastest = fastest_[static_cast<std::size_t>(stream)];
  fastest = std::max(fastest, rate);
  if (stream == Stream::kUpdate || stream == Stream::kUpdateStreaming) return;
  bound_ = std::max(bound_, rate);
  case_bound_ = std::max(case_bound_, rate);
}

void BandwidthMeter::measure_all(std::size_t rounds) {
  for (std::size_t i = 0; i < rounds * streams().size(); ++i) measure_next();
}

}  // namespace gradfuse::workload
