#pragma once
// Memory as large models have it: mapped, on huge pages where the system has them, zero-filled at first touch.
#include <cstddef>

namespace gradfuse::workload {

class HugePages {
 public:
  /// @throws Error  the system does not give so much memory.
  explicit HugePages(std::size_t num_bytes);
  HugePages(HugePages&& other) noexcept;
  HugePages& operator=(HugePages&& other) noexcept;
  ~HugePages();

  /// Aligned to 2 MiB.
  std::byte* data() const noexcept { return data_; }
  std::size_t num_bytes() const noexcept { return num_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace gradfuse::workload
