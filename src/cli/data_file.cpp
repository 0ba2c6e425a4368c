#include "src/cli/data_file.hpp"

#include <fmt/format.h>
#include <gradfuse/error.hpp>

#include <system_error>

namespace gradfuse::cli {

std::filesystem::path default_data_file(const std::string& name) {
  std::error_code ignored;  // no /proc: only the source tree is left
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  std::filesystem::path installed = (program.parent_path() / GRADFUSE_DATA_FROM_PROGRAM / name).lexically_normal();
  if (std::filesystem::exists(installed, ignored)) return installed;
  std::filesystem::path source = std::filesystem::path(GRADFUSE_SOURCE_DATA) / name;
  if (std::filesystem::exists(source, ignored)) return source;
  throw Error(
      fmt::format("the data are neither in {} nor in {}; say where they are", installed.string(), source.string()));
}

void refuse_to_overwrite(const std::filesystem::path& data, const std::filesystem::path& written) {
  std::error_code unknown;  // what does not exist yet is no file's equal
  if (!written.empty() && std::filesystem::equivalent(data, written, unknown)) {
    throw Error(fmt::format("{} is the data file, which would be overwritten; choose another", written.string()));
  }
}

}  // namespace gradfuse::cli
