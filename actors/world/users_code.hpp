// SPDX-License-Identifier: Apache-2.0
// Functions of a program that an actor calls, and outlives.
#pragma once

#include "messages/failure.hpp"

#include <cstdio>
#include <exception>

namespace troupe {

/// Calls `function()`. An actor on which others wait must not end by what a function of the program
/// throws: a line on standard error tells of it. @param what "on_late of a group".
template <class Function>
void call_users_code(const char* what, const Function& function) {
  try {
    function();
  } catch (...) {
    auto why = reason_of(std::current_exception());
    std::fprintf(stderr, "%s has thrown: %s\n", what, why.message.c_str());
  }
}

} // namespace troupe
