// SPDX-License-Identifier: Apache-2.0
// TROUPE_ASSERT: a statement about our own code, checked in every build.
#pragma once

#include <sstream>
#include <string>

namespace troupe::detail {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   const std::string& operands);

template <class... Operands>
std::string print_operands(const char* names, const Operands&... operands) {
  std::ostringstream out;
  out << names << " =";
  ((out << ' ' << operands), ...);
  return out.str();
}

inline std::string print_operands(const char*) {
  return {};
}

} // namespace troupe::detail

/// Aborts with the condition and the operands if `condition` is false: `TROUPE_ASSERT(i < n, i,
/// n)`. For bugs of Troupe and of its caller only: data from a peer, a file or a user never reaches
/// an assert.
#define TROUPE_ASSERT(condition, ...)                                                              \
  ((condition) ? static_cast<void>(0)                                                              \
               : ::troupe::detail::assertion_failed(                                               \
                 #condition, __FILE__, __LINE__,                                                   \
                 ::troupe::detail::print_operands(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__)))
