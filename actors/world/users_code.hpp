// SPDX-License-Identifier: Apache-2.0
// Calls from an actor to functions of the program.
#pragma once

#include "messages/errors/failure.hpp"

#include <cstdio>
#include <exception>

namespace troupe {

/// Calls `function()`. An actor on which others wait must not end by what a function of the program
/// throws: a line on standard error tells of it. @param name "on_late of a group".
template <class Function>
void call_users_code(const char* name, const Function& function) {
  try {
    function();
  } catch (...) {
    auto reason = reason_of(std::current_exception());
    std::fprintf(stderr, "%s has thrown: %s\n", name, reason.message.c_str());
  }
}

} // namespace troupe
