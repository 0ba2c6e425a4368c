#include "engine/grid.hpp"

#include <algorithm>
#include <simt/device_code.hpp>
#include <simt/fault.hpp>

#include "engine/access.hpp"
#include "engine/launch_state.hpp"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace simt {

Builtins builtins;
Grid* grid = nullptr;

std::string text_of(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

std::string name_of(const Thread& thread) {
  return "thread " + std::to_string(thread.index) + " of block " + std::to_string(thread.block->index) + " of " +
         grid->shape.name;
}

void diverged(const std::string& what) { throw Fault(FaultKind::kDivergence, what); }

void make_ready(Thread& thread) {
  thread.state = Thread::State::kReady;
  grid->ready.push_back(&thread);
}

namespace {

constexpr std::size_t kStackBytes = 128 << 10;

RunningThread running{};
std::vector<std::unique_ptr<Thread>> idle_threads;  // their stacks are used again

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

int running_device() noexcept { return grid == nullptr ? -1 : grid->shape.device; }
const RunningThread* running_thread() noexcept { return grid == nullptr ? nullptr : &running; }

}  // namespace simt
