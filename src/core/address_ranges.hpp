#pragma once
// Which tensor owns an address: ranges of memory that do not overlap, by their first byte.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace gradfuse {

class AddressRanges {
 public:
  /// The owner of a range that shares a byte with `[data, data + num_bytes)`.
  std::optional<std::size_t> overlapping(const void* data, std::size_t num_bytes) const {
    if (num_bytes == 0) return std::nullopt;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first < begin + num_bytes) return next->second.owner;
    if (next == ranges_.begin()) return std::nullopt;
    const auto& [before, range] = *std::prev(next);
    return range.num_bytes > begin - before ? std::optional(range.owner) : std::nullopt;
  }
  /// The range must not overlap one that is there.
  void insert(const void* data, std::size_t num_bytes, std::size_t owner) {
    if (num_bytes > 0) ranges_.emplace(reinterpret_cast<std::uintptr_t>(data), Range{num_bytes, owner});
  }

 private:
  struct Range {
    std::size_t num_bytes, owner;
  };
  std::map<std::uintptr_t, Range> ranges_;
};

}  // namespace gradfuse
