#pragma once
// A stand-in for cub::BlockReduce: the result is valid in thread 0 alone, and a barrier must pass before the storage is
// used again.
#include <array>
#include <cstring>
#include <simt/device_code.hpp>

namespace cub {

template <class T, int kThreads>
class BlockReduce {
 public:
  struct TempStorage {
    std::array<T, kThreads> values;
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Combine>
  T Reduce(T value, Combine combine) {
    const unsigned thread = threadIdx.x;
    T& own = storage_.values[thread];
    simt::check_shared_store(&own, sizeof own);
    own = value;
    __syncthreads();
    T result;
    std::memset(&result, 0xFF, sizeof result);  // what the other threads get is undefined
    if (thread != 0) return result;
    result = value;
    for (int i = 1; i < kThreads; ++i) {
      const T& other = storage_.values[static_cast<unsigned>(i)];
      simt::check_shared_load(&other, sizeof other);
      result = combine(result, other);
    }
    return result;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
