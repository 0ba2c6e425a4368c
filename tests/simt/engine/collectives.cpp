// Barriers, operations of a warp, and shared memory: where threads of a block meet.
#include <simt/collectives.hpp>

#include <cstring>

#include "engine/access.hpp"
#include "engine/launch_state.hpp"

namespace simt {
namespace {

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

}  // namespace

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

void* dynamic_shared_memory() {
  static const char key = 0;
  return shared_memory(&key, grid->shape.dynamic_shared_bytes, 16);
}

}  // namespace simt
