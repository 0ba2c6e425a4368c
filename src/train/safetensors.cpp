#include "src/train/safetensors.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <gradfuse/error.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace gradfuse::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetadata = "__metadata__";

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "F32";
    case DType::kFloat16: return "F16";
    case DType::kBFloat16: return "BF16";
    case DType::kFloat64: return "F64";
  }
  return "invalid";
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(fmt::format("{}: {}", path.string(), what));
}
std::string reason() { return std::generic_category().message(errno); }

/// The header, padded so that the tensors begin at a multiple of 8 bytes.
std::string header_of(const SavedTensors& saved) {
  Json header;
  if (!saved.metadata.empty()) header[kMetadata] = saved.metadata;
  std::size_t begin = 0;
  for (const auto& [name, tensor] : saved.tensors) {
    const std::size_t end = begin + tensor.bytes.size();
    header[name] = {{"dtype", type_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void write_all(std::FILE* file, const std::filesystem::path& path, const void* data, std::size_t num_bytes) {
  if (std::fwrite(data, 1, num_bytes, file) != num_bytes) fail(path, "cannot be written: " + reason());
}

SavedTensor tensor_of(const Json& entry, std::size_t num_bytes, const std::byte* data) {
  SavedTensor tensor;
  const std::string dtype = entry.at("dtype");
  bool is_known = false;
  for (const DType candidate : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    if (dtype != type_name(candidate)) continue;
    tensor.dtype = candidate;
    is_known = true;
  }
  if (!is_known) throw Error("has type " + dtype + "; F32, F16, BF16 and F64 are known");
  tensor.shape = entry.at("shape").get<std::vector<std::size_t>>();
  const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
  std::size_t expected = element_size(tensor.dtype);
  for (const std::size_t extent : tensor.shape) expected *= extent;
  if (begin > end || end > num_bytes || end - begin != expected) throw Error("has a place that does not fit its shape");
  tensor.bytes.assign(data + begin, data + end);
  return tensor;
}

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) fail(path, "cannot be read: " + error.message());
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) fail(path, "cannot be read");
  return bytes;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const SavedTensors& saved) {
  std::error_code unknown;  // what is not there yet is no other kind of file
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) {
    fail(path, "is no regular file, and would be replaced by one");
  }
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  const std::string header = header_of(saved);
  const std::uint64_t header_size = header.size();
  try {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(unfinished.c_str(), "wb"), std::fclose);
    if (file == nullptr) fail(path, "cannot be written: " + reason());
    write_all(file.get(), path, &header_size, sizeof header_size);
    write_all(file.get(), path, header.data(), header.size());
    for (const auto& [name, tensor] : saved.tensors) {
      write_all(file.get(), path, tensor.bytes.data(), tensor.bytes.size());
    }
    if (std::fclose(file.release()) != 0) fail(path, "cannot be written: " + reason());
    std::filesystem::rename(unfinished, path);
  } catch (const std::filesystem::filesystem_error& error) {
    fail(path, "cannot be written: " + error.code().message());
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw;
  }
}

SavedTensors read_safetensors(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_all(path);
  std::uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) fail(path, "is no safetensors file: it ends before its header");
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const std::size_t num_bytes = bytes.size() - sizeof header_size;
  if (header_size > num_bytes) fail(path, "is no safetensors file, or cut short: its header is longer than the file");
  const auto* text = reinterpret_cast<const char*>(bytes.data() + sizeof header_size);
  SavedTensors saved;
  std::string name;
  try {
    const Json header = Json::parse(text, text + header_size);
    for (const auto& [key, entry] : header.items()) {
      name = key;
      if (key == kMetadata) {
        saved.metadata = entry.get<std::map<std::string, std::string>>();
      } else {
        saved.tensors[key] = tensor_of(entry, num_bytes - header_size, bytes.data() + sizeof header_size + header_size);
      }
    }
  } catch (const Json::exception& error) {
    fail(path, fmt::format("is no safetensors file, or a damaged one: {}", error.what()));
  } catch (const Error& error) {
    fail(path, fmt::format("tensor {} {}", name, error.what()));
  }
  return saved;
}

}  // namespace gradfuse::train
