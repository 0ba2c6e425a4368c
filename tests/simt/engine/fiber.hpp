#pragma once
// A stack of its own for each emulated thread, and switching between them.
#include <cstddef>
#include <memory>

namespace simt {

/// One of the stacks that code runs on: an emulated thread's, or the one of the thread of the process.
class Fiber {
 public:
  using Entry = void (*)(void*);

  Fiber();  // the running thread's own stack
  explicit Fiber(std::size_t stack_bytes);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Makes the next switch to this fiber call `entry(argument)` on an empty stack. `entry` must end by `leave_to`.
  void reset(Entry entry, void* argument);
  /// Forgets what a thread that was given up half-way has marked on the stack.
  void clean();
  /// Goes on there, until somebody switches back here.
  void switch_to(Fiber& other) { switch_stacks(other, false); }
  /// The same, and this one's stack holds nothing any more.
  void leave_to(Fiber& other) { switch_stacks(other, true); }

 private:
  friend void fiber_main();
  void switch_stacks(Fiber& other, bool is_left);
  void arrived();

  struct Context;
  std::unique_ptr<Context> context_;
  std::byte* stack_ = nullptr;  // above a guard page; null: the thread's own
  std::size_t stack_bytes_ = 0;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  [[maybe_unused]] void* fake_stack_ = nullptr;  // of AddressSanitizer
};

}  // namespace simt
