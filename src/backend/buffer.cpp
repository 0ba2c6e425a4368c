#include "src/backend/buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <gradfuse/error.hpp>

namespace gradfuse {
namespace {
constexpr std::size_t kAlignment = 64;  // a cache line and the widest vector
constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void out_of_memory(std::size_t num_bytes) {
  throw Error(fmt::format("cannot allocate {} bytes of host memory; use a smaller model or free memory", num_bytes));
}
constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }
}  // namespace

Buffer allocate_host(std::size_t num_bytes) {
  if (num_bytes > SIZE_MAX / 2) out_of_memory(num_bytes);
  if (num_bytes < kHugePage) {
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, round_up(num_bytes, kAlignment)));
    if (data == nullptr && num_bytes > 0) out_of_memory(num_bytes);
    if (num_bytes > 0) std::memset(data, 0, num_bytes);
    return {data, num_bytes, [](std::byte* p) { std::free(p); }};
  }
  // Mapped memory comes zero-filled at first touch, by the thread that will work there. One huge page more than needed,
  // so that the part in use can begin at one.
  const std::size_t mapped = round_up(num_bytes, kHugePage) + kHugePage;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) out_of_memory(num_bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  auto* data = static_cast<std::byte*>(base) + (round_up(address, kHugePage) - address);
  ::madvise(data, mapped - kHugePage, MADV_HUGEPAGE);  // a wish; without it the pages are small
  return {data, num_bytes, [base, mapped](std::byte*) { ::munmap(base, mapped); }};
}

}  // namespace gradfuse
