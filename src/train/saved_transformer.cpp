#include <fmt/format.h>

#include <charconv>
#include <gradfuse/error.hpp>
#include <gradfuse/train/saved_transformer.hpp>
#include <utility>

#include "src/train/safetensors.hpp"

namespace gradfuse::train {
namespace {

/// The shape of a model, as metadata by name.
template <class Options, class Visit>
void for_each_extent(Options& options, Visit visit) {
  visit("vocabulary", options.vocabulary);
  visit("context", options.context);
  visit("width", options.width);
  visit("layers", options.layers);
  visit("heads", options.heads);
}

nn::TransformerOptions options_of(const SavedTensors& saved) {
  if (const auto kind = saved.metadata.find("gradfuse.model");
      kind == saved.metadata.end() || kind->second != "transformer") {
    throw Error("holds no Transformer of gradfuse");
  }
  nn::TransformerOptions options;
  for_each_extent(options, [&](const std::string& name, std::size_t& extent) {
    const auto found = saved.metadata.find("gradfuse." + name);
    const std::string text = found == saved.metadata.end() ? std::string() : found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc{} || end != text.data() + text.size()) {
      throw Error(fmt::format("says \"{}\" for gradfuse.{}", text, name));
    }
  });
  options.is_tied = !saved.tensors.contains("head.weight");
  options.has_gradients = false;
  return options;
}

}  // namespace

void save_transformer(const std::filesystem::path& path, const nn::Transformer& model,
                      const nn::TransformerOptions& options) {
  SavedTensors saved;
  saved.metadata["gradfuse.model"] = "transformer";
  for_each_extent(options, [&](const std::string& name, std::size_t extent) {
    saved.metadata["gradfuse." + name] = std::to_string(extent);
  });
  for (const nn::Parameter& parameter : model.parameters()) {
    SavedTensor& tensor = saved.tensors[parameter.name];
    tensor.shape = parameter.shape;
    tensor.bytes.resize(parameter.param.num_bytes());
    copy_to_host(*options.backend, parameter.param, tensor.bytes.data());
  }
  write_safetensors(path, saved);
}

SavedTransformer load_transformer(const std::filesystem::path& path, std::shared_ptr<const Backend> backend) {
  const SavedTensors saved = read_safetensors(path);
  try {
    nn::TransformerOptions options = options_of(saved);
    options.backend = std::move(backend);
    nn::Transformer model(options);
    for (const nn::Parameter& parameter : model.parameters()) {
      const auto found = saved.tensors.find(parameter.name);
      if (found == saved.tensors.end()) throw Error(fmt::format("lacks {}", parameter.name));
      const SavedTensor& tensor = found->second;
      if (tensor.dtype != DType::kFloat32 || tensor.shape != parameter.shape) {
        throw Error(fmt::format("has {} in another shape or type than its model's", parameter.name));
      }
      copy_from_host(*options.backend, tensor.bytes.data(), parameter.param);
    }
    return {options, std::move(model)};
  } catch (const Error& error) {
    throw Error(fmt::format("{} {}", path.string(), error.what()));
  }
}

}  // namespace gradfuse::train
