#include "src/backend/cuda/table_cache.hpp"

#include <algorithm>

namespace gradfuse {
namespace {
// More than the passes of a window of 16 micro-batches, each with gradient buffers of its own.
constexpr std::size_t kMaxTables = 24;
}  // namespace

const void* TableCache::find_or_upload(const CudaMemory& memory, std::span<const std::byte> content) {
  const auto is_same = [content](const Table& table) { return std::ranges::equal(table.content, content); };
  auto found = std::ranges::find_if(tables_, is_same);
  if (found == tables_.end()) {
    memory.check_not_capturing("take tables of other pointers than before");
    Table& table = oldest_or_new();
    table.content.clear();  // if what follows fails, it is found by nobody
    if (table.on_device.num_bytes() < content.size()) table.on_device = memory.allocate(content.size());
    memory.upload(table.on_device.as<std::byte>(), content.data(), content.size());
    table.content.assign(content.begin(), content.end());
    found = tables_.begin() + (&table - tables_.data());
  } else if (!found->is_in_graph) {
    found->is_in_graph = memory.is_capturing();
  }
  found->last_use = ++clock_;
  return found->on_device.as<std::byte>();
}

TableCache::Table& TableCache::oldest_or_new() {
  const auto age = [](const Table& table) { return table.is_in_graph ? UINT64_MAX : table.last_use; };
  const auto oldest = std::ranges::min_element(tables_, {}, age);
  if (tables_.size() >= kMaxTables && !oldest->is_in_graph) return *oldest;
  return tables_.emplace_back();
}

}  // namespace gradfuse
