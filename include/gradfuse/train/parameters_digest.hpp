#pragma once
// A short name for the exact bits of a model.
#include <gradfuse/parameter_set.hpp>

#include <string>

namespace gradfuse::train {

/// XXH3 (64 bits, as 16 hexadecimal digits) of the bytes of the float32 parameters in the set's order. Two runs with
/// the same digest ended with the same bits. Not for security. Host memory only.
std::string parameters_digest(const ParameterSet& params);

}  // namespace gradfuse::train
