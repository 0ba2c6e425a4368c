#include "src/cli/help_format.hpp"

#include <sstream>

namespace gradfuse::cli {
namespace {

constexpr std::size_t kNameColumns = 30;
constexpr std::size_t kDescriptionColumns = 50;

std::string wrap(const std::string& text, std::size_t columns) {
  std::istringstream words(text);
  std::string wrapped;
  std::size_t column = 0;
  for (std::string word; words >> word; column += word.size()) {
    if (column != 0 && column + 1 + word.size() > columns) {
      wrapped += '\n';
      column = 0;
    } else if (column != 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
  }
  return wrapped;
}

}  // namespace

HelpFormat::HelpFormat() { column_width(kNameColumns); }

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (option->get_type_size() == 0) return text;  // a flag
  if (!option->get_type_name().empty()) text += " " + option->get_type_name();
  if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
  return text;
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return wrap(option->get_description(), kDescriptionColumns);
}

}  // namespace gradfuse::cli
