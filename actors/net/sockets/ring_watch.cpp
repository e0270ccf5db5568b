// SPDX-License-Identifier: Apache-2.0
// Looking at shared memory, and going to sleep.
#include "actors/net/sockets/ring_watch.hpp"

#include <algorithm>

namespace troupe {

bool ring_watch::complete_one() {
  auto found = std::ranges::find_if(waiting_, [](const auto* read) { return read->has_news(); });
  if (found == waiting_.end()) return false;
  auto* read = *found;
  waiting_.erase(found); // first: its caller may read on
  read->complete();
  return true;
}

bool ring_watch::may_sleep() {
  std::erase_if(waiting_, [](auto* read) { return read->sleeps(); });
  return !complete_one();
}

} // namespace troupe
