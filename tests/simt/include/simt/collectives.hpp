#pragma once
// What threads do together. Called by the device code's wrappers, implemented by the engine.
#include <cstddef>

namespace simt {

/// A place in the source. (std::source_location needs a newer clang.)
struct Site {
  const char* file;
  unsigned line;
  static constexpr Site here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Barrier { kPlain, kOr, kAnd, kCount };
int block_barrier(Barrier kind, int predicate, Site site);

enum class WarpOp { kSync, kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot, kAny, kAll };
/// `value` goes in and comes out; `argument` is the lane, distance or predicate.
void warp_collective(WarpOp op, unsigned mask, int argument, void* value, std::size_t num_bytes, Site site);

/// Shared memory of the running block, by the address of a key: one for each variable. Filled with 0xFF.
void* shared_memory(const void* key, std::size_t num_bytes, std::size_t alignment);
/// What the launch gave each block, as large as it said; aligned to 16 bytes.
void* dynamic_shared_memory();

}  // namespace simt
