#pragma once
// Each access of a kernel to memory is checked and counted.
#include <cstddef>

namespace simt {

/// @throws Fault  as FaultKind says. `alignment` is that of the access.
void check_load(const void* from, std::size_t num_bytes, std::size_t alignment);
void check_store(const void* to, std::size_t num_bytes, std::size_t alignment);
void check_atomic(const void* at, std::size_t num_bytes);

/// Of shared memory.
void check_shared_load(const void* from, std::size_t num_bytes);
void check_shared_store(const void* to, std::size_t num_bytes);

/// Copies past AddressSanitizer, to which device memory is closed.
void copy_checked(void* to, const void* from, std::size_t num_bytes);

}  // namespace simt
