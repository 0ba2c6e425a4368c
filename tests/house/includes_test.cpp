// Includes point one way through the house; every line shows its direction, so a test can read them all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

/// For each room, the rooms that its files may include. The public headers of a room go with the room: core's are
/// include/gradfuse/*.hpp, nn's include/gradfuse/nn, train's include/gradfuse/train.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"kernels/element", {"kernels/element", "include/core"}},
    {"kernels/cpu", {"kernels/element", "kernels/cpu", "include/core"}},
    {"kernels/cuda", {"kernels/element", "kernels/cuda", "include/core"}},
    {"include/core", {"include/core"}},
    {"include/nn", {"include/core", "include/nn"}},
    {"include/train", {"include/core", "include/nn", "include/train"}},
    {"src/backend", {"kernels/element", "kernels/cpu", "kernels/cuda", "src/backend", "include/core"}},
    {"src/core", {"kernels/element", "src/backend", "src/core", "include/core"}},
    {"src/nn",
     {"kernels/element", "kernels/cpu", "kernels/cuda", "src/backend", "src/nn", "include/core", "include/nn"}},
    {"src/train", {"src/train", "src/nn", "include/core", "include/nn", "include/train"}},
    {"src/workload", {"src/backend", "src/workload", "include/core"}},
    {"src/cli", {"src/cli", "src/workload", "include/core", "include/nn", "include/train"}},
    {"bench", {"bench", "src/backend", "src/workload", "include/core"}},
};

std::string room_of(const std::string& path) {
  if (path.starts_with("include/gradfuse/nn/")) return "include/nn";
  if (path.starts_with("include/gradfuse/train/")) return "include/train";
  if (path.starts_with("include/gradfuse/")) return "include/core";
  if (path.starts_with("bench/")) return "bench";
  const auto slash = path.find('/', path.find('/') + 1);
  return path.substr(0, slash);
}

std::set<std::string> included_rooms(const fs::path& file) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s+(?:"([^"]+)"|<(gradfuse/[^>]+)>))re");
  std::set<std::string> rooms;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, kInclude)) continue;
    rooms.insert(room_of(match[1].matched ? match[1].str() : "include/" + match[2].str()));
  }
  return rooms;
}

TEST(House, IncludesPointOneWay) {
  const fs::path root = GRADFUSE_SOURCE_DIR;
  std::size_t files = 0;
  for (const char* top : {"include", "kernels", "src", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
      const std::string path = fs::relative(entry.path(), root);
      const std::string room = room_of(path);
      ASSERT_TRUE(kMayInclude.contains(room)) << path << " is in a room that the house does not have";
      for (const std::string& included : included_rooms(entry.path())) {
        EXPECT_TRUE(kMayInclude.at(room).contains(included)) << path << " includes a file of " << included;
      }
      ++files;
    }
  }
  EXPECT_GT(files, 50u) << "the test looked in the wrong place";
}

}  // namespace
