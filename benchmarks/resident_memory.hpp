// SPDX-License-Identifier: Apache-2.0
// How much memory a benchmark has needed.
#pragma once

#include <fstream>
#include <string>

/// Most megabytes that this process had in memory at one time, as Linux counts them.
inline double resident_megabytes_max() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      double kibibytes = 0;
      status >> kibibytes;
      return kibibytes * 1024 / 1e6;
    }
  return 0;
}
