#pragma once
// A work table that the device walks too, and what belongs to its tensors there.
#include <optional>
#include <span>

#include "kernels/cuda/passes.hpp"
#include "src/backend/cuda/table_cache.hpp"
#include "src/backend/device_array.hpp"
#include "src/backend/work_table.hpp"

namespace gradfuse {

class CudaWorkTable final : public WorkTable {
 public:
  CudaWorkTable(const CudaMemory& memory, std::span<const std::size_t> numels);

  const cuda::WorkList& on_device() const noexcept { return list_; }

  /// Of the passes over this table.
  struct Scratch {
    TableCache tables;
    std::vector<cuda::AddEntry> adds;  // the entries of one pass are put together here
    std::vector<cuda::ValueEntry> values;
    std::vector<cuda::AdamEntry> adams;
    std::vector<cuda::SgdEntry> sgds;
    std::vector<cuda::InEntry> ins;
    std::vector<cuda::OutEntry> outs;
    DeviceArray<double> sums;  // of the control kernel
    DeviceArray<element::AdamCoefs<float>> adam_coefs;
    DeviceArray<element::SgdCoefs<float>> sgd_coefs;
    DeviceArray<std::uint32_t> is_first_step;
    DeviceArray<std::uint32_t> found;  // one: a flag or the bits of a magnitude
  };
  /// Passes over one table are made by one thread at a time, as everything else on a window.
  Scratch& scratch() const noexcept { return scratch_; }

 private:
  DeviceArray<Chunk> chunks_;
  DeviceArray<std::uint64_t> first_chunk_;
  DeviceArray<std::uint32_t> multi_chunk_tensors_;
  cuda::WorkList list_{};
  mutable Scratch scratch_;
};

}  // namespace gradfuse
