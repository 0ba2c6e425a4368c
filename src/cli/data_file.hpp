#pragma once
// Where the data are when nobody says.
#include <filesystem>
#include <string>

namespace gradfuse::cli {

/// A file of data/: beside the installed program (../share/gradfuse from its folder), else in the source tree it was
/// built from.
/// @throws Error  neither is there; names both.
std::filesystem::path default_data_file(const std::string& name);

/// @throws Error  what is to be written, if anything, is the data file.
void refuse_to_overwrite(const std::filesystem::path& data, const std::filesystem::path& written);

}  // namespace gradfuse::cli
