#pragma once
// A launch under way: its blocks, and the threads with what each waits for.
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <simt/collectives.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/fiber.hpp"
#include "engine/grid.hpp"

namespace simt {

inline constexpr unsigned kWarpSize = 32;

struct Block;

/// An emulated thread, and what it waits for.
struct Thread {
  enum class State { kReady, kAtBarrier, kAtWarpOp, kReturned };

  std::unique_ptr<Fiber> fiber;
  Block* block = nullptr;
  unsigned index = 0;  // in the block
  State state = State::kReady;
  Site site{};
  // At a barrier:
  Barrier barrier{};
  int predicate = 0, result = 0;
  // At a collective operation of the warp:
  WarpOp op{};
  unsigned mask = 0;
  int argument = 0;
  std::array<std::byte, 16> value{};
  std::size_t num_bytes = 0;

  unsigned lane() const { return index % kWarpSize; }
};

struct SharedVariable {
  const void* key;
  std::unique_ptr<std::byte[]> storage;
  void* data;
};

struct Block {
  unsigned index = 0;
  std::vector<Thread*> threads;
  std::vector<SharedVariable> shared;
  unsigned num_live = 0, num_at_barrier = 0;

  std::span<Thread* const> warp_of(const Thread& thread) const {
    const std::size_t first = std::size_t{thread.index} / kWarpSize * kWarpSize;
    return std::span(threads).subspan(first, std::min<std::size_t>(kWarpSize, threads.size() - first));
  }
};

/// A launch under way.
struct Grid {
  const GridShape& shape;
  const std::function<void()>& kernel;
  std::mt19937_64 random;
  Fiber scheduler;
  std::vector<std::unique_ptr<Block>> blocks;  // resident
  std::vector<Thread*> ready;
  Thread* running = nullptr;
  std::exception_ptr fault;
};

extern Grid* grid;  // null while none runs

void make_ready(Thread& thread);
/// "thread 3 of block 1 of add_kernel"
std::string name_of(const Thread& thread);
/// "kernel.cu:12"
std::string text_of(Site site);
/// @throws Fault
[[noreturn]] void diverged(const std::string& what);

}  // namespace simt
