// Every allocation of the program comes through here. In a file of its own, lest the compiler inline one half of a
// pair.
#include "tests/steady_state/counted_new.hpp"

#include <cstdlib>
#include <new>

std::atomic<std::size_t> num_allocations = 0;

void* operator new(std::size_t num_bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(num_bytes)) return memory;
  throw std::bad_alloc();
}
// AddressSanitizer's own would not come through the one above (g++ 13), yet what it gave would go to the one below.
void* operator new(std::size_t num_bytes, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(num_bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
