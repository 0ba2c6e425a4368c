#pragma once
// Whether standard output is a terminal, and a line on it that is drawn over.
#include <string>

namespace gradfuse::cli {

/// A terminal that knows how to erase a line.
bool is_stdout_terminal();

/// Replaces what stands on the current line, cut to the terminal's width.
void redraw_line(std::string text);
void erase_line();

}  // namespace gradfuse::cli
