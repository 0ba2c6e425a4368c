#include "engine/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine/asan.hpp"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace simt {

namespace {
thread_local Fiber* arriving = nullptr;  // to whom the switch under way goes
#if defined(SIMT_ASAN)
thread_local const void* left_stack = nullptr;  // of the process's thread, learned at the first switch from it
thread_local std::size_t left_stack_bytes = 0;
#endif
}  // namespace

void fiber_main() {
  Fiber* self = arriving;
  self->arrived();
  self->entry_(self->argument_);
  std::fputs("simt: a fiber's entry must not return\n", stderr);
  std::abort();
}

void Fiber::clean() { open_memory(stack_, stack_bytes_); }

#if defined(__x86_64__)
struct Fiber::Context {
  void* stack_pointer = nullptr;
};

// Saves what the System V ABI has a callee keep, and takes it from the other stack.
extern "C" void simt_switch_stacks(void** save_stack_pointer, void* stack_pointer);
asm(R"(
.text
.globl simt_switch_stacks
.type simt_switch_stacks, @function
simt_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch_stacks, .-simt_switch_stacks
)");

void Fiber::reset(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  constexpr std::size_t kEntryFrames = 4096;  // those of the entry, which was left and never returned
  open_memory(stack_ + stack_bytes_ - kEntryFrames, kEntryFrames);
  auto* top = reinterpret_cast<void**>(stack_ + stack_bytes_);
  *--top = nullptr;  // as if called from nowhere: the stack is aligned as a function expects it on entry
  *--top = reinterpret_cast<void*>(&fiber_main);
  top -= 6;  // the kept registers
  for (int i = 0; i < 6; ++i) top[i] = nullptr;
  context_->stack_pointer = top;
}
#else
struct Fiber::Context {
  ucontext_t context;
};

void Fiber::reset(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  getcontext(&context_->context);
  context_->context.uc_stack.ss_sp = stack_;
  context_->context.uc_stack.ss_size = stack_bytes_;
  context_->context.uc_link = nullptr;
  makecontext(&context_->context, &fiber_main, 0);
}
#endif

Fiber::Fiber() : context_(std::make_unique<Context>()) {}

Fiber::Fiber(std::size_t stack_bytes) : context_(std::make_unique<Context>()), stack_bytes_(stack_bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("simt: no memory for a stack");
    std::abort();
  }
  mprotect(memory, page, PROT_NONE);  // a stack that overflows shows
  stack_ = static_cast<std::byte*>(memory) + page;
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  clean();
  munmap(stack_ - page, stack_bytes_ + page);
}

void Fiber::switch_stacks(Fiber& other, bool is_left) {
  arriving = &other;
#if defined(SIMT_ASAN)
  const void* to = other.stack_ == nullptr ? left_stack : other.stack_;
  const std::size_t bytes = other.stack_ == nullptr ? left_stack_bytes : other.stack_bytes_;
  __sanitizer_start_switch_fiber(is_left ? nullptr : &fake_stack_, to, bytes);
#else
  (void)is_left;
#endif
#if defined(__x86_64__)
  simt_switch_stacks(&context_->stack_pointer, other.context_->stack_pointer);
#else
  swapcontext(&context_->context, &other.context_->context);
#endif
  arriving->arrived();
}

void Fiber::arrived() {
#if defined(SIMT_ASAN)
  const void* from = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &from, &bytes);
  fake_stack_ = nullptr;
  if (stack_ != nullptr && left_stack == nullptr) {  // the first switch is one from the process's thread
    left_stack = from;
    left_stack_bytes = bytes;
  }
#endif
}

}  // namespace simt
