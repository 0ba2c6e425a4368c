#include "src/backend/cuda/cuda_work_table.hpp"

namespace gradfuse {
namespace {

template <class T>
void fill(DeviceArray<T>& array, const CudaMemory& memory, std::span<const T> values) {
  array.grow(memory, values.size());
  memory.upload(array.data(), values.data(), values.size_bytes());
}

}  // namespace

CudaWorkTable::CudaWorkTable(const CudaMemory& memory, std::span<const std::size_t> numels) : WorkTable(numels) {
  std::vector<std::uint64_t> first_chunk{0};
  for (std::size_t tensor = 0; tensor < numels.size(); ++tensor) first_chunk.push_back(chunks_of(tensor).end);
  fill(chunks_, memory, chunks());
  fill<std::uint64_t>(first_chunk_, memory, first_chunk);
  fill(multi_chunk_tensors_, memory, multi_chunk_tensors());
  list_ = {.chunks = chunks_.data(),
           .first_chunk = first_chunk_.data(),
           .multi_chunk_tensors = multi_chunk_tensors_.data(),
           .num_chunks = chunks().size(),
           .num_tensors = static_cast<std::uint32_t>(numels.size()),
           .num_multi_chunk_tensors = static_cast<std::uint32_t>(multi_chunk_tensors().size())};
}

}  // namespace gradfuse
