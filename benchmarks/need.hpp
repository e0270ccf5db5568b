// SPDX-License-Identifier: Apache-2.0
// Conditions that a benchmark cannot go on without.
#pragma once

#include "messages/errc.hpp"

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

/// The value; ends the program with its error, if there is none.
template <class T>
T need(troupe::expected<T> made) {
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(made);
}
