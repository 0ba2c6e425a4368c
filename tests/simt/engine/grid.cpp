#include "engine/grid.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <simt/collectives.hpp>
#include <simt/device_code.hpp>
#include <simt/fault.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/access.hpp"
#include "engine/fiber.hpp"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace simt {

Builtins builtins;

namespace {

constexpr unsigned kWarpSize = 32;
constexpr std::size_t kStackBytes = 128 << 10;

std::string text_of(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

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
    const std::size_t first = thread.index / kWarpSize * kWarpSize;
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

Grid* grid = nullptr;
RunningThread running{};
std::vector<std::unique_ptr<Thread>> idle_threads;  // their stacks are used again

std::string name_of(const Thread& thread) {
  return "thread " + std::to_string(thread.index) + " of block " + std::to_string(thread.block->index) + " of " +
         grid->shape.name;
}

[[noreturn]] void diverged(const std::string& what) { throw Fault(FaultKind::kDivergence, what); }

void make_ready(Thread& thread) {
  thread.state = Thread::State::kReady;
  grid->ready.push_back(&thread);
}

void wait(Thread::State state) {
  Thread& self = *grid->running;
  self.state = state;
  self.fiber->switch_to(grid->scheduler);
}

void complete_barrier(Block& block) {
  int any = 0, all = 1, count = 0;
  for (const Thread* thread : block.threads) {
    if (thread->state != Thread::State::kAtBarrier) continue;
    any |= thread->predicate != 0;
    all &= thread->predicate != 0;
    count += thread->predicate != 0;
  }
  for (Thread* thread : block.threads) {
    if (thread->state != Thread::State::kAtBarrier) continue;
    switch (thread->barrier) {
      case Barrier::kPlain: thread->result = 0; break;
      case Barrier::kOr: thread->result = any; break;
      case Barrier::kAnd: thread->result = all; break;
      case Barrier::kCount: thread->result = count; break;
    }
    make_ready(*thread);
  }
  block.num_at_barrier = 0;
  passed_barrier(block.index);
}

/// What lane `lane` of a shuffle gets its value from; itself where the source is outside the warp.
unsigned source_of(const Thread& thread) {
  const unsigned lane = thread.lane();
  const auto by = static_cast<unsigned>(thread.argument);
  switch (thread.op) {
    case WarpOp::kShuffle: return by % kWarpSize;
    case WarpOp::kShuffleUp: return lane < by ? lane : lane - by;
    case WarpOp::kShuffleDown: return lane + by >= kWarpSize ? lane : lane + by;
    case WarpOp::kShuffleXor: return (lane ^ by) % kWarpSize;
    default: return lane;
  }
}

void complete_warp_op(const Thread& last) {
  const auto warp = last.block->warp_of(last);
  std::array<std::array<std::byte, 16>, kWarpSize> values{};
  unsigned ballot = 0;
  for (const Thread* thread : warp) {
    if (((last.mask >> thread->lane()) & 1) == 0) continue;
    values[thread->lane()] = thread->value;
    if (thread->argument != 0) ballot |= 1u << thread->lane();
  }
  for (Thread* thread : warp) {
    if (((last.mask >> thread->lane()) & 1) == 0) continue;
    unsigned vote = 0;
    switch (last.op) {
      case WarpOp::kSync: break;
      case WarpOp::kBallot: vote = ballot; break;
      case WarpOp::kAny: vote = ballot != 0; break;
      case WarpOp::kAll: vote = ballot == last.mask; break;
      default: {
        const unsigned source = source_of(*thread);
        if (((last.mask >> source) & 1) == 0) {
          diverged(name_of(*thread) + " reads lane " + std::to_string(source) + ", which takes no part, at " +
                   text_of(thread->site));
        }
        thread->value = values[source];
      }
    }
    if (last.op == WarpOp::kBallot || last.op == WarpOp::kAny || last.op == WarpOp::kAll) {
      std::memcpy(thread->value.data(), &vote, sizeof vote);
    }
    if (thread != &last) make_ready(*thread);
  }
  if (last.op == WarpOp::kSync) passed_warp_sync(last.block->index, last.index / kWarpSize);
  passed_warp_op(last.block->index, last.index / kWarpSize, last.mask);
}

void thread_main(void* argument) {
  Thread& self = *static_cast<Thread*>(argument);
  try {
    grid->kernel();
  } catch (...) {
    if (!grid->fault) grid->fault = std::current_exception();
  }
  self.state = Thread::State::kReturned;
  Block& block = *self.block;
  --block.num_live;
  if (!grid->fault) {
    for (const Thread* other : block.threads) {
      const bool waits =
          other->state == Thread::State::kAtBarrier ||
          (other->state == Thread::State::kAtWarpOp && other->index / kWarpSize == self.index / kWarpSize &&
           ((other->mask >> self.lane()) & 1) != 0);
      if (!waits) continue;
      grid->fault = std::make_exception_ptr(
          Fault(FaultKind::kDivergence, name_of(self) + " has returned while thread " + std::to_string(other->index) +
                                            " waits for it at " + text_of(other->site)));
      break;
    }
  }
  self.fiber->leave_to(grid->scheduler);
}

void start_block(unsigned index) {
  auto block = std::make_unique<Block>();
  block->index = index;
  block->num_live = grid->shape.threads_per_block;
  for (unsigned thread = 0; thread < grid->shape.threads_per_block; ++thread) {
    if (idle_threads.empty()) {
      idle_threads.push_back(std::make_unique<Thread>());
      idle_threads.back()->fiber = std::make_unique<Fiber>(kStackBytes);
    }
    Thread* self = idle_threads.back().release();
    idle_threads.pop_back();
    self->block = block.get();
    self->index = thread;
    self->fiber->reset(thread_main, self);
    block->threads.push_back(self);
    make_ready(*self);
  }
  grid->blocks.push_back(std::move(block));
}

void retire(Block& block) {
  for (Thread* thread : block.threads) {
    if (thread->state != Thread::State::kReturned) thread->fiber->clean();
    thread->state = Thread::State::kReturned;
    idle_threads.emplace_back(thread);
  }
}

void run_thread(Thread& thread) {
  grid->running = &thread;
  running = {thread.block->index, thread.index};
  builtins.thread_idx = {thread.index, 0, 0};
  builtins.block_idx = {thread.block->index, 0, 0};
  grid->scheduler.switch_to(*thread.fiber);
  grid->running = nullptr;
}

/// Nobody can go on: says who waits where.
[[noreturn]] void deadlock() {
  std::string waiting;
  for (const auto& block : grid->blocks) {
    for (const Thread* thread : block->threads) {
      if (thread->state == Thread::State::kReturned || waiting.size() > 400) continue;
      waiting += "\n  " + name_of(*thread) + " at " + text_of(thread->site);
    }
  }
  diverged(std::string("threads wait for each other at different places:") + waiting);
}

void run_blocks() {
  std::vector<unsigned> order(grid->shape.num_blocks);
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), grid->random);
  const std::size_t max_resident = 1 + grid->random() % 4;
  while (true) {
    std::erase_if(grid->blocks, [](const auto& block) {
      if (block->num_live > 0) return false;
      retire(*block);
      return true;
    });
    while (grid->blocks.size() < max_resident && !order.empty()) {
      start_block(order.back());
      order.pop_back();
    }
    if (grid->blocks.empty()) return;
    if (grid->ready.empty()) deadlock();
    // Until a block has ended.
    for (bool has_ended = false; !has_ended && !grid->ready.empty();) {
      std::swap(grid->ready[grid->random() % grid->ready.size()], grid->ready.back());
      Thread& thread = *grid->ready.back();
      grid->ready.pop_back();
      run_thread(thread);
      if (grid->fault) std::rethrow_exception(grid->fault);
      has_ended = thread.block->num_live == 0;
    }
  }
}

}  // namespace

void run_grid(const GridShape& shape, const std::function<void()>& kernel, std::uint64_t seed) {
  constexpr unsigned kMaxThreads = 1024;
  if (shape.threads_per_block == 0 || shape.threads_per_block > kMaxThreads || shape.num_blocks == 0 ||
      shape.threads_per_block % kWarpSize != 0) {
    throw Fault(FaultKind::kBadLaunch, std::string(shape.name) + ": " + std::to_string(shape.num_blocks) +
                                           " blocks of " + std::to_string(shape.threads_per_block) + " threads");
  }
  Grid here{shape, kernel, std::mt19937_64(seed), {}, {}, {}, nullptr, nullptr};
  grid = &here;
  builtins.block_dim = {shape.threads_per_block, 1, 1};
  builtins.grid_dim = {shape.num_blocks, 1, 1};
  begin_launch(shape);
  struct End {
    ~End() {
      for (const auto& block : grid->blocks) retire(*block);  // abandoned stacks are simply used again
      end_launch();
      grid = nullptr;
    }
  } end;
  run_blocks();
}

const char* running_kernel() noexcept { return grid == nullptr ? "" : grid->shape.name; }
int running_device() noexcept { return grid == nullptr ? -1 : grid->shape.device; }
const RunningThread* running_thread() noexcept { return grid == nullptr ? nullptr : &running; }

int block_barrier(Barrier kind, int predicate, Site site) {
  Thread& self = *grid->running;
  Block& block = *self.block;
  self.barrier = kind;
  self.predicate = predicate;
  self.site = site;
  for (const Thread* other : block.threads) {
    if (other->state == Thread::State::kReturned) {
      diverged(name_of(self) + " waits at " + text_of(site) + " for thread " + std::to_string(other->index) +
               ", which has returned");
    }
    if (other->state == Thread::State::kAtBarrier &&
        (other->site.line != site.line || other->barrier != kind || std::strcmp(other->site.file, site.file) != 0)) {
      diverged(name_of(self) + " is at the barrier at " + text_of(site) + ", thread " + std::to_string(other->index) +
               " at that at " + text_of(other->site));
    }
    if (other != &self && other->state == Thread::State::kAtBarrier) break;  // it was compared with the others itself
  }
  self.state = Thread::State::kAtBarrier;
  if (++block.num_at_barrier == block.num_live) complete_barrier(block);
  wait(self.state == Thread::State::kReady ? Thread::State::kReady : Thread::State::kAtBarrier);
  return self.result;
}

void warp_collective(WarpOp op, unsigned mask, int argument, void* value, std::size_t num_bytes, Site site) {
  Thread& self = *grid->running;
  self.op = op;
  self.mask = mask;
  self.argument = argument;
  self.num_bytes = num_bytes;
  self.site = site;
  if (num_bytes > 0) std::memcpy(self.value.data(), value, num_bytes);
  if (((mask >> self.lane()) & 1) == 0) diverged(name_of(self) + " is not in its own mask at " + text_of(site));
  bool is_last = true;
  for (const Thread* other : self.block->warp_of(self)) {
    if (other == &self || ((mask >> other->lane()) & 1) == 0) continue;
    if (other->state == Thread::State::kReturned) {
      diverged(name_of(self) + " waits at " + text_of(site) + " for thread " + std::to_string(other->index) +
               ", which has returned");
    }
    if (other->state != Thread::State::kAtWarpOp) {
      is_last = false;
      continue;
    }
    if (other->op != op || other->mask != mask || other->num_bytes != num_bytes) {
      diverged(name_of(self) + " at " + text_of(site) + " and thread " + std::to_string(other->index) + " at " +
               text_of(other->site) + " do different things together");
    }
  }
  if (is_last) {
    complete_warp_op(self);  // it goes on at once
  } else {
    wait(Thread::State::kAtWarpOp);
  }
  if (num_bytes > 0) std::memcpy(value, self.value.data(), num_bytes);
}

void* shared_memory(const void* key, std::size_t num_bytes, std::size_t alignment) {
  Block& block = *grid->running->block;
  for (const SharedVariable& variable : block.shared) {
    if (variable.key == key) return variable.data;
  }
  // 0xFF: NaN in every format. At 8 modulo 16 unless more is asked for, so that a vector access to it shows.
  auto storage = std::make_unique<std::byte[]>(num_bytes + alignment + 16);
  std::memset(storage.get(), 0xFF, num_bytes + alignment + 16);
  auto address = reinterpret_cast<std::uintptr_t>(storage.get());
  address = (address + alignment - 1) / alignment * alignment;
  if (alignment <= 8 && address % 16 == 0) address += 8;
  void* data = storage.get() + (address - reinterpret_cast<std::uintptr_t>(storage.get()));
  block.shared.push_back({key, std::move(storage), data});
  made_shared_memory(block.index, data, num_bytes);
  return data;
}

}  // namespace simt
