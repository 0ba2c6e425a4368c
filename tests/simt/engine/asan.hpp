#pragma once
// What AddressSanitizer is told, where it is there.
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

/// An access to the memory is a fault from now on.
inline void close_memory([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t num_bytes) {
#if defined(SIMT_ASAN)
  __asan_poison_memory_region(begin, num_bytes);
#endif
}
inline void open_memory([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t num_bytes) {
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(begin, num_bytes);
#endif
}

}  // namespace simt
