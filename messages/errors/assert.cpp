// SPDX-License-Identifier: Apache-2.0
// The end of a failed assertion: a line on standard error, then abort.
#include "messages/errors/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe::detail {

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& operands) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s%s%s\n", file, line, condition,
               operands.empty() ? "" : "; ", operands.c_str());
  std::abort();
}

} // namespace troupe::detail
