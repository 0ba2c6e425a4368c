#include "src/backend/cuda/staging_ring.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gradfuse {

void StagingRing::upload(void* to, const void* from, std::size_t num_bytes, cudaStream_t stream) {
  if (num_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  std::optional<Slot>& slot = slots_[next_];
  next_ = (next_ + 1) % kNumSlots;
  if (slot) check_cuda(cudaEventSynchronize(slot->sent.get()), "waiting for an upload");
  if (!slot || slot->bytes.num_bytes() < num_bytes) {
    constexpr std::size_t kLeastBytes = 4096;
    slot.emplace(Slot{PinnedBuffer(std::max(kLeastBytes, std::bit_ceil(num_bytes))), Event()});
  }
  std::memcpy(slot->bytes.data(), from, num_bytes);
  check_cuda(cudaMemcpyAsync(to, slot->bytes.data(), num_bytes, cudaMemcpyHostToDevice, stream), "uploading a table");
  check_cuda(cudaEventRecord(slot->sent.get(), stream), "recording an event");
}

}  // namespace gradfuse
