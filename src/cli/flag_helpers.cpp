#include "src/cli/flag_helpers.hpp"

#include <fmt/format.h>

#include <charconv>

namespace gradfuse::cli {

CLI::Validator whole_number(std::size_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        std::size_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc{} && end == text.data() + text.size();
        return is_number && value >= least ? std::string()
                                           : fmt::format("{} is no whole number from {} on", text, least);
      },
      "");
}

}  // namespace gradfuse::cli
