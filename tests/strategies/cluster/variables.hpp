// SPDX-License-Identifier: Apache-2.0
// Environments that launchers make, in a test's hand.
#pragma once

#include <map>
#include <string>

namespace troupe::test {

using variables = std::map<std::string, std::string>;

inline void set(variables& all, const std::string& name, const std::string& value) {
  all.insert_or_assign(name, value);
}

} // namespace troupe::test
