#include <gradfuse/nn/digits.hpp>

#include "src/nn/shuffle.hpp"

#include <fmt/core.h>
#include <gradfuse/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gradfuse::nn {
namespace {

constexpr std::size_t kFields = kDigitsInputs + 1;
constexpr std::size_t kMinRows = 10;
constexpr unsigned kMaxPixel = 16;
using Row = std::array<unsigned, kFields>;

/// Where an error is: the file, and the line counted from 1.
struct Place {
  const std::filesystem::path& path;
  std::size_t line = 0;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", path.string(), line, what));
  }
};

/// The field as a message can carry it, whatever bytes it is made of.
std::string quoted(std::string_view field) {
  constexpr std::size_t kMaxShown = 20;
  std::string shown(field.substr(0, kMaxShown));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + shown + (field.size() > kMaxShown ? "...\"" : "\"");
}

unsigned parse_field(std::string_view field, std::size_t index, const Place& place) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::invalid_argument || end != field.data() + field.size()) {
    place.fail(fmt::format("field {} is {}; expected an integer", index + 1, quoted(field)));
  }
  const bool is_label = index == kDigitsInputs;
  const unsigned max = is_label ? kDigitsClasses - 1 : kMaxPixel;
  if (error != std::errc{} || value > max) {
    place.fail(fmt::format("{} {} is {}; expected 0..{}", is_label ? "label, field" : "pixel, field", index + 1,
                           quoted(field), max));
  }
  return value;
}

Row parse_row(std::string_view line, const Place& place) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto num_fields = static_cast<std::size_t>(std::ranges::count(line, ',')) + 1;
  if (num_fields != kFields) {
    place.fail(fmt::format("{} fields; expected {} pixels and a label. Is the file cut off, or another data set?",
                           line.empty() ? 0 : num_fields, kDigitsInputs));
  }
  Row row{};
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::size_t comma = std::min(line.find(','), line.size());
    row[i] = parse_field(line.substr(0, comma), i, place);
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return row;
}

void append(std::span<const float> features, std::int32_t label, LabelledRows& to) {
  to.features.insert(to.features.end(), features.begin(), features.end());
  to.labels.push_back(label);
}

std::vector<std::size_t> shuffled_indices(std::size_t num_rows, std::uint64_t seed) {
  std::vector<std::size_t> order(num_rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  shuffle(order, random);
  return order;
}

}  // namespace

LabelledRows load_digits(const std::filesystem::path& path) {
  std::error_code ignored;  // an unreadable parent counts as "not a file" too
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(fmt::format("{}: not a file; expected the digits as CSV", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: cannot be opened; is it readable?", path.string()));
  LabelledRows digits;
  Place place{path};
  for (std::string line; std::getline(file, line);) {
    ++place.line;
    const Row row = parse_row(line, place);
    for (std::size_t i = 0; i < kDigitsInputs; ++i) {
      digits.features.push_back(static_cast<float>(row[i]) / static_cast<float>(kMaxPixel));
    }
    digits.labels.push_back(static_cast<std::int32_t>(row[kDigitsInputs]));
  }
  if (file.bad()) throw Error(fmt::format("{}: reading failed after {} lines", path.string(), place.line));
  if (place.line == 0) throw Error(fmt::format("{}: the file is empty; expected the digits as CSV", path.string()));
  if (digits.num_rows() < kMinRows) {
    place.fail(fmt::format("the file ends after {} rows; expected {} or more", digits.num_rows(), kMinRows));
  }
  return digits;
}

DigitsSplit split_digits(const LabelledRows& digits, std::uint64_t seed) {
  const std::size_t num_rows = digits.num_rows();
  if (digits.features.size() != num_rows * kDigitsInputs) {
    throw Error(fmt::format("split_digits: {} features beside {} labels; expected {} a label", digits.features.size(),
                            num_rows, kDigitsInputs));
  }
  const std::vector<std::size_t> order = shuffled_indices(num_rows, seed);
  const std::size_t num_train = num_rows * 4 / 5;
  DigitsSplit split;
  for (std::size_t i = 0; i < num_rows; ++i) {
    const auto features = std::span(digits.features).subspan(order[i] * kDigitsInputs, kDigitsInputs);
    append(features, digits.labels[order[i]], i < num_train ? split.train : split.test);
  }
  return split;
}

}  // namespace gradfuse::nn
