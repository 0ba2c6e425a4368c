#pragma once
// Putting options on a command, with their type and default as the help shows them.
#include <CLI/CLI.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace gradfuse::cli {

/// CLI11 reads "-3" as 2^64 - 3.
CLI::Validator whole_number(std::size_t least);

/// An option with a default that is always the same.
template <class T>
CLI::Option* add_flag(CLI::App& command, const char* name, const char* type, T& value, const std::string& description) {
  return command.add_option(name, value, description)->type_name(type)->capture_default_str();
}

/// An option with a default that depends on others: `usual` is what the help shows.
template <class T>
CLI::Option* add_flag(CLI::App& command, const char* name, const char* type, std::optional<T>& value, const char* usual,
                      const std::string& description) {
  return command.add_option(name, value, description)->type_name(type)->default_str(usual);
}

}  // namespace gradfuse::cli
