#pragma once
// CUDA's device side for plain C++: what kernel sources get where there is no nvcc.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <simt/access.hpp>
#include <simt/collectives.hpp>
#include <tuple>
#include <type_traits>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.

// CUDA's headers make the qualifiers empty in host code. An empty __shared__ would be a local variable: an error.
#undef __shared__
#define __shared__ SIMT_use_GF_SHARED_instead_of_shared
#define __launch_bounds__(...)

namespace simt {

struct Builtins {
  uint3 thread_idx, block_idx;
  dim3 block_dim, grid_dim;
};
extern Builtins builtins;  // of the running thread

/// Queues a launch, as cudaLaunchKernelEx does.
cudaError_t queue_launch(const char* name, unsigned num_blocks, unsigned threads_per_block,
                         unsigned dynamic_shared_bytes, cudaStream_t stream, std::function<void()> kernel);
template <class... Params, class... Args>
cudaError_t launch(const char* name, unsigned num_blocks, unsigned threads_per_block, unsigned dynamic_shared_bytes,
                   cudaStream_t stream, void (*kernel)(Params...), const Args&... args) {
  return queue_launch(name, num_blocks, threads_per_block, dynamic_shared_bytes, stream,
                      [kernel, params = std::tuple<Params...>(args...)] { std::apply(kernel, params); });
}

template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int argument, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  warp_collective(op, mask, argument, &value, sizeof value, site);
  return value;
}
inline unsigned vote(WarpOp op, unsigned mask, int predicate, Site site) {
  unsigned result = 0;
  warp_collective(op, mask, predicate, &result, sizeof result, site);
  return result;
}
template <class T, class Change>
T atomic(T* at, Change change) {
  static_assert(std::is_integral_v<T>, "atomics of floating-point numbers have no order, and so no fixed result");
  check_atomic(at, sizeof(T));
  T before;
  copy_checked(&before, at, sizeof before);
  const T after = change(before);
  copy_checked(at, &after, sizeof after);
  return before;
}

/// A variable in shared memory.
template <class T>
class Shared {
 public:
  explicit Shared(const void* key) : data_(static_cast<T*>(shared_memory(key, sizeof(T), alignof(T)))) {}
  T get() const {
    check_shared_load(data_, sizeof(T));
    return *data_;
  }
  void set(const T& value) {
    check_shared_store(data_, sizeof(T));
    *data_ = value;
  }
  T& storage() { return *data_; }

 private:
  T* data_;
};

template <class T>
class SharedArray {
 public:
  explicit SharedArray(void* data) : data_(static_cast<T*>(data)) {}
  T get(unsigned index) const {
    check_shared_load(data_ + index, sizeof(T));
    return data_[index];
  }
  void set(unsigned index, T value) {
    check_shared_store(data_ + index, sizeof(T));
    data_[index] = value;
  }

 private:
  T* data_;
};

}  // namespace simt

#define threadIdx (::simt::builtins.thread_idx)
#define blockIdx (::simt::builtins.block_idx)
#define blockDim (::simt::builtins.block_dim)
#define gridDim (::simt::builtins.grid_dim)

inline void __syncthreads(simt::Site site = simt::Site::here()) { simt::block_barrier(simt::Barrier::kPlain, 0, site); }
inline int __syncthreads_or(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Barrier::kOr, predicate, site);
}
inline int __syncthreads_and(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Barrier::kAnd, predicate, site);
}
inline int __syncthreads_count(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Barrier::kCount, predicate, site);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, simt::Site site = simt::Site::here()) {
  simt::warp_collective(simt::WarpOp::kSync, mask, 0, nullptr, 0, site);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, simt::Site site = simt::Site::here()) {
  return simt::shuffle(simt::WarpOp::kShuffle, mask, value, lane, site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, simt::Site site = simt::Site::here()) {
  return simt::shuffle(simt::WarpOp::kShuffleUp, mask, value, static_cast<int>(by), site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, simt::Site site = simt::Site::here()) {
  return simt::shuffle(simt::WarpOp::kShuffleDown, mask, value, static_cast<int>(by), site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, simt::Site site = simt::Site::here()) {
  return simt::shuffle(simt::WarpOp::kShuffleXor, mask, value, with, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  return simt::vote(simt::WarpOp::kBallot, mask, predicate, site);
}
inline int __any_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  return static_cast<int>(simt::vote(simt::WarpOp::kAny, mask, predicate, site));
}
inline int __all_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  return static_cast<int>(simt::vote(simt::WarpOp::kAll, mask, predicate, site));
}

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T before) { return static_cast<T>(before + value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T before) { return before < value ? value : before; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T before) { return value < before ? value : before; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T before) { return static_cast<T>(before | value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T) { return value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return simt::atomic(at, [compare, value](T before) { return before == compare ? value : before; });
}

// NOLINTEND(bugprone-reserved-identifier)

#define GF_SHARED(name, ...)  \
  static char name##_key = 0; \
  ::simt::Shared<__VA_ARGS__> name(&name##_key)

#define GF_SHARED_ARRAY(name, type, size) \
  static char name##_key = 0;             \
  ::simt::SharedArray<type> name(::simt::shared_memory(&name##_key, (size) * sizeof(type), alignof(type)))
#define GF_DYNAMIC_SHARED(name, type) ::simt::SharedArray<type> name(::simt::dynamic_shared_memory())

namespace gradfuse::cuda {

template <class T>
using Shared = ::simt::Shared<T>;

template <class T>
T load(const T* from) {
  simt::check_load(from, sizeof(T), alignof(T));
  T value;
  simt::copy_checked(&value, from, sizeof value);
  return value;
}
template <class T>
T load_streaming(const T* from) {
  return load(from);
}
template <class T>
void store(T* to, const std::type_identity_t<T>& value) {
  simt::check_store(to, sizeof(T), alignof(T));
  simt::copy_checked(to, &value, sizeof value);
}

}  // namespace gradfuse::cuda
