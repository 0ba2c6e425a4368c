#pragma once
// Tables in device memory. One that was used before is found again, so that a loop whose pointers stay the same uploads
// nothing after its first window.
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "src/backend/cuda/cuda_memory.hpp"

namespace gradfuse {

class TableCache {
 public:
  /// The table in device memory; good for what is queued before the next call, and for the graph that is being
  /// captured. @throws Error  a capture is under way and the table is not resident: a pointer or dtype has changed.
  template <class Entry>
  const Entry* resident(const CudaMemory& memory, std::span<const Entry> entries) {
    static_assert(std::has_unique_object_representations_v<Entry>);  // compared byte by byte
    return static_cast<const Entry*>(find_or_upload(memory, std::as_bytes(entries)));
  }

 private:
  struct Table {
    std::vector<std::byte> content;
    Buffer on_device;
    std::uint64_t last_use = 0;
    bool is_in_graph = false;  // which may be replayed at any time: never given up
  };
  const void* find_or_upload(const CudaMemory& memory, std::span<const std::byte> content);
  Table& oldest_or_new();

  std::vector<Table> tables_;
  std::uint64_t clock_ = 0;
};

}  // namespace gradfuse
