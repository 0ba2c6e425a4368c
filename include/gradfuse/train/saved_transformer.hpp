#pragma once
// A Transformer in a file, in the safetensors format: its FP32 parameters, and the shape of the model as metadata.
#include <gradfuse/nn/transformer.hpp>

#include <filesystem>
#include <memory>

namespace gradfuse::train {

/// The old file stays whole until the new one is. @throws Error  naming path and reason, such as a full disk.
void save_transformer(const std::filesystem::path& path, const nn::Transformer& model,
                      const nn::TransformerOptions& options);

struct SavedTransformer {
  nn::TransformerOptions options;  ///< Without gradients.
  nn::Transformer model;
};
/// @throws Error  naming the path: it cannot be read, is damaged, or is no Transformer's.
SavedTransformer load_transformer(const std::filesystem::path& path,
                                  std::shared_ptr<const Backend> backend = cpu_backend());

}  // namespace gradfuse::train
