#pragma once
// What a refusal says.
#include <gradfuse/error.hpp>

#include <string>

namespace gradfuse::test {

/// The message of the `Error` that `action` throws, or "no error".
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace gradfuse::test
