// SPDX-License-Identifier: Apache-2.0
// Ends a benchmark if a result that it needs is an error.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

/// The value; if there is none, prints the error and ends the program.
template <class T>
T need(troupe::expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
