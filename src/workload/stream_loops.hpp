#pragma once
// Sweeps over memory that do next to nothing with it, at the widest SIMD of this processor: the bound of every pass.
#include <cstddef>

namespace gradfuse::workload {

/// Streaming stores go around the caches, and spare them the line that an ordinary store fetches first.
enum class Store { kCached, kStreaming };

// Pointers are aligned to 64 bytes, `numel` is a multiple of `kStreamUnit`.
inline constexpr std::size_t kStreamUnit = 256;

/// Returns a sum, so that the reads happen.
float stream_read(const float* from, std::size_t numel);
void stream_copy(const float* from, float* to, std::size_t numel, Store store);
/// to = x + 3 * y
void stream_triad(const float* x, const float* y, float* to, std::size_t numel, Store store);
/// data = -data: read, modified and written in place, as accumulators and optimizer states are.
void stream_update(float* data, std::size_t numel, Store store);

}  // namespace gradfuse::workload
