#pragma once
// An option that is one of several words.
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace gradfuse::cli {

/// Without a description: the type's name in the help lists the choices already.
inline CLI::Validator one_of(const std::vector<std::string>& choices) { return CLI::IsMember(choices).description(""); }

}  // namespace gradfuse::cli
