#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <gradfuse/error.hpp>
#include <gradfuse/nn/token_text.hpp>
#include <system_error>
#include <utility>

namespace gradfuse::nn {

struct TokenText::Map {
  Map(const std::filesystem::path& path, std::size_t token_bytes_) : token_bytes(token_bytes_) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(path, "cannot be opened", errno);
    struct stat status {};
    const bool is_regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    num_bytes = is_regular ? static_cast<std::size_t>(status.st_size) : 0;
    if (num_bytes > 0) data = ::mmap(nullptr, num_bytes, PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    ::close(file);
    if (!is_regular) throw Error(fmt::format("{}: not a regular file", path.string()));
    if (num_bytes == 0) throw Error(fmt::format("{}: the file is empty", path.string()));
    if (data == MAP_FAILED) fail(path, "cannot be mapped", error);
    if (num_bytes % token_bytes != 0) {
      ::munmap(data, num_bytes);
      throw Error(
          fmt::format("{}: {} bytes are no whole number of tokens of {}", path.string(), num_bytes, token_bytes));
    }
  }
  ~Map() { ::munmap(data, num_bytes); }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  [[noreturn]] static void fail(const std::filesystem::path& path, const char* what, int error) {
    throw Error(fmt::format("{}: {}: {}", path.string(), what, std::generic_category().message(error)));
  }

  std::size_t token_bytes, num_bytes = 0;
  void* data = MAP_FAILED;
};

TokenText::TokenText(std::unique_ptr<Map> map) : map_(std::move(map)) {}
TokenText::TokenText(TokenText&&) noexcept = default;
TokenText& TokenText::operator=(TokenText&&) noexcept = default;
TokenText::~TokenText() = default;

TokenText TokenText::bytes_of(const std::filesystem::path& path) {
  return TokenText(std::make_unique<Map>(path, sizeof(std::uint8_t)));
}
TokenText TokenText::tokens_of(const std::filesystem::path& path) {
  return TokenText(std::make_unique<Map>(path, sizeof(std::uint16_t)));
}

std::size_t TokenText::size() const noexcept { return map_->num_bytes / map_->token_bytes; }
std::size_t TokenText::vocabulary() const noexcept { return std::size_t{1} << (8 * map_->token_bytes); }

void TokenText::read(std::size_t begin, std::span<std::int32_t> to) const {
  const auto* bytes = static_cast<const std::uint8_t*>(map_->data) + begin * map_->token_bytes;
  for (std::int32_t& token : to) {
    token = map_->token_bytes == 1 ? bytes[0] : bytes[0] | (bytes[1] << 8);
    bytes += map_->token_bytes;
  }
}

}  // namespace gradfuse::nn
