#pragma once
// A text as token ids, read through a memory map: a file of any size, of which only what is used takes memory.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace gradfuse::nn {

class TokenText {
 public:
  /// Each byte is a token: a vocabulary of 256.
  /// @throws Error  naming the path: not a readable regular file, or empty.
  static TokenText bytes_of(const std::filesystem::path& path);
  /// Tokens as uint16, little-endian. @throws Error  as `bytes_of`, or an odd number of bytes.
  static TokenText tokens_of(const std::filesystem::path& path);
  TokenText(TokenText&&) noexcept;
  TokenText& operator=(TokenText&&) noexcept;
  ~TokenText();

  std::size_t size() const noexcept;  ///< tokens
  /// One more than the largest id that a token can have: 256, or 65536.
  std::size_t vocabulary() const noexcept;
  /// Copies `to.size()` tokens from `begin` on, which must be there.
  void read(std::size_t begin, std::span<std::int32_t> to) const;

 private:
  struct Map;
  explicit TokenText(std::unique_ptr<Map> map);
  std::unique_ptr<Map> map_;
};

}  // namespace gradfuse::nn
