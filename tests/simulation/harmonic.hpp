// SPDX-License-Identifier: Apache-2.0
// The sums in closed forms of exponential order statistics.
#pragma once

namespace troupe::test {

/// 1 + 1/2 + ... + 1/n
inline double harmonic(int n) {
  double sum = 0;
  for (int i = 1; i <= n; ++i)
    sum += 1.0 / i;
  return sum;
}

} // namespace troupe::test
