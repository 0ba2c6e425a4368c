#include "src/cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gradfuse::cli {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

bool is_stdout_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

void redraw_line(std::string text) {
  // In the last column some terminals wrap already.
  if (const std::size_t width = terminal_width() - 1; text.size() > width) text.resize(width);
  fmt::print("{}{}", kEraseLine, text);
  std::fflush(stdout);
}

void erase_line() { redraw_line({}); }

}  // namespace gradfuse::cli
