#pragma once
// How much memory this process may still use: Linux grants what it does not have and kills who touches it.
#include <cstddef>
#include <string>

namespace gradfuse::workload {

/// Free and reclaimable bytes of the machine, or of the control group if that allows less; SIZE_MAX if neither is told.
std::size_t available_memory();

/// Empty if `num_bytes` fit with a tenth to spare, else a sentence that says how much is missing.
std::string memory_shortage(std::size_t num_bytes);

}  // namespace gradfuse::workload
