#include "src/workload/huge_pages.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>
#include <gradfuse/error.hpp>
#include <utility>

namespace gradfuse::workload {
namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t round_up(std::size_t value) { return (value + kHugePage - 1) / kHugePage * kHugePage; }
}  // namespace

HugePages::HugePages(std::size_t num_bytes) : num_bytes_(num_bytes) {
  mapped_bytes_ = round_up(num_bytes) + kHugePage;  // one more than needed, so that the part in use can begin at one
  void* mapping = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw Error(fmt::format("cannot allocate {} bytes for a benchmark", num_bytes));
  mapping_ = mapping;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  data_ = static_cast<std::byte*>(mapping) + (round_up(address) - address);
  ::madvise(data_, mapped_bytes_ - kHugePage, MADV_HUGEPAGE);  // a wish; without it the pages are small
}

HugePages::HugePages(HugePages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      num_bytes_(std::exchange(other.num_bytes_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

HugePages& HugePages::operator=(HugePages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

HugePages::~HugePages() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

}  // namespace gradfuse::workload
