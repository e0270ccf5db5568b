// SPDX-License-Identifier: Apache-2.0
// Calls to functions of the program.
#pragma once

#include "messages/errors/failure.hpp"

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace troupe {

/// Calls `function()`. An actor or a thread on which others wait must not end by what a function of
/// the program throws: a line on standard error tells of it. @param name "on_late of a group".
template <class Function>
void call_users_code(const char* name, const Function& function) {
  try {
    function();
  } catch (...) {
    auto reason = reason_of(std::current_exception());
    std::fprintf(stderr, "%s has thrown: %s\n", name, reason.message.c_str());
  }
}

/// Tells a line where the program has no function to tell it to.
inline void say_on_standard_error(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

/// A function that gives each line to `tell`, as `call_users_code` calls it; to standard error if
/// `tell` is empty. @param name "on_warning of a server"; outlives the function.
[[nodiscard]] inline std::function<void(const std::string&)>
line_teller(const char* name, std::function<void(const std::string&)> tell) {
  if (!tell) return say_on_standard_error;
  return [name, tell = std::move(tell)](const std::string& line) {
    call_users_code(name, [&] { tell(line); });
  };
}

} // namespace troupe
