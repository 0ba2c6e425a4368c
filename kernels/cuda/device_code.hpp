#pragma once
// What every kernel source includes first: CUDA itself, or on a machine without a GPU the emulation that the tests
// bring. Kernels keep to what both have: shared memory by these macros, global memory by these functions.
#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include <type_traits>

#define GF_SHARED(name, ...)               \
  __shared__ __VA_ARGS__ name##_in_shared; \
  ::gradfuse::cuda::Shared<__VA_ARGS__> name(name##_in_shared)
#define GF_SHARED_ARRAY(name, type, size) \
  __shared__ type name##_in_shared[size]; \
  ::gradfuse::cuda::SharedArray<type> name(name##_in_shared)
/// The memory that the launch gives each block; one a kernel.
#define GF_DYNAMIC_SHARED(name, type)                                \
  extern __shared__ __align__(16) unsigned char gf_dynamic_shared[]; \
  ::gradfuse::cuda::SharedArray<type> name(reinterpret_cast<type*>(gf_dynamic_shared))
/// Before a loop over a thread's slots: its arrays must end up in registers.
#define GF_UNROLL _Pragma("unroll")

namespace gradfuse::cuda {

/// A variable in shared memory.
template <class T>
class Shared {
 public:
  __device__ explicit Shared(T& storage) : storage_(storage) {}
  __device__ T get() const { return storage_; }
  __device__ void set(const T& value) { storage_ = value; }
  __device__ T& storage() { return storage_; }

 private:
  T& storage_;
};

template <class T>
class SharedArray {
 public:
  __device__ explicit SharedArray(T* storage) : storage_(storage) {}
  __device__ T get(unsigned index) const { return storage_[index]; }
  __device__ void set(unsigned index, T value) { storage_[index] = value; }

 private:
  T* storage_;
};

// That pointers are to global memory is known here and not to the compiler, when they come from a table.
template <class T>
__device__ inline T load(const T* from) {
  __builtin_assume(__isGlobal(from));
  return *from;
}
/// For data that nobody reads again soon: it is the first to leave the caches.
template <class T>
__device__ inline T load_streaming(const T* from) {
  return __ldcs(from);
}
template <class T>
__device__ inline void store(T* to, const std::type_identity_t<T>& value) {
  __builtin_assume(__isGlobal(to));
  *to = value;
}

}  // namespace gradfuse::cuda
#else
#include <simt/device_code.hpp>

#define GF_UNROLL
#endif
