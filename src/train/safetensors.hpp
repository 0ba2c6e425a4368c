#pragma once
// Files of named tensors in the safetensors format (https://github.com/huggingface/safetensors): a JSON header with
// types, shapes and places, then the bytes.
#include <gradfuse/dtype.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gradfuse::train {

struct SavedTensor {
  DType dtype = DType::kFloat32;
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;
};
struct SavedTensors {
  std::map<std::string, SavedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes a new file beside the path and puts it in its place, so that the old one stays whole until the new one is.
/// @throws Error  naming path and reason.
void write_safetensors(const std::filesystem::path& path, const SavedTensors& saved);
/// @throws Error  naming the path: it cannot be read, or is no whole safetensors file.
SavedTensors read_safetensors(const std::filesystem::path& path);

}  // namespace gradfuse::train
