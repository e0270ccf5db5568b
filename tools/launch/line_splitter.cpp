// SPDX-License-Identifier: Apache-2.0
// Cuts bytes at line ends.
#include "tools/launch/line_splitter.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::vector<std::string> line_splitter::add(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    auto end = bytes.find('\n');
    auto taken = std::min(end == bytes.npos ? bytes.size() : end + 1, bytes_max_ - begun_.size());
    begun_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (begun_.back() == '\n' || begun_.size() == bytes_max_)
      lines.push_back(std::exchange(begun_, {}));
  }
  return lines;
}

std::string line_splitter::rest() {
  return std::exchange(begun_, {});
}

} // namespace troupe
