#pragma once
// Where the digits are when nobody says.
#include <filesystem>

namespace gradfuse::cli {

/// Beside the installed program (../share/gradfuse from its folder), else in the source tree it was built from.
/// @throws Error  neither is there; names both.
std::filesystem::path default_data_file();

}  // namespace gradfuse::cli
