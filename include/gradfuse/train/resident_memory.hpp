#pragma once
// How much memory this process occupies.
#include <cstddef>

namespace gradfuse::train {

struct ResidentMemory {
  std::size_t current_bytes = 0;
  std::size_t peak_bytes = 0;  ///< The highest `current_bytes` since the program started.
};

/// Physical memory of the whole process, libraries and data included, as the kernel counts it.
ResidentMemory resident_memory();

}  // namespace gradfuse::train
