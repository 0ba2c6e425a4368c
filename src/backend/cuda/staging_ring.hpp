#pragma once
// Pinned slots through which small tables travel to the device without anybody waiting.
#include <array>
#include <cstddef>
#include <mutex>
#include <optional>

#include "src/backend/cuda/handles.hpp"

namespace gradfuse {

class StagingRing {
 public:
  /// Queues the copy; `from` may be changed at once. Waits only if every slot is still on its way.
  void upload(void* to, const void* from, std::size_t num_bytes, cudaStream_t stream);

 private:
  struct Slot {
    PinnedBuffer bytes;
    Event sent;
  };
  static constexpr std::size_t kNumSlots = 8;

  std::mutex mutex_;
  std::array<std::optional<Slot>, kNumSlots> slots_;
  std::size_t next_ = 0;
};

}  // namespace gradfuse
