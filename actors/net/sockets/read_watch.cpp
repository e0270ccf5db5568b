// SPDX-License-Identifier: Apache-2.0
// Looking for what has come, and going to sleep.
#include "actors/net/sockets/read_watch.hpp"

#include <algorithm>

namespace troupe {

namespace {

// To look at more costs more calls of the system than to ask it for those that have something.
constexpr size_t sockets_max = 4;

} // namespace

bool read_watch::add_socket(watched_read& read) {
  if (at_sockets_.size() == sockets_max) return false;
  at_sockets_.push_back(&read);
  return true;
}

void read_watch::remove(watched_read& read) {
  std::erase(in_memory_, &read);
  std::erase(at_sockets_, &read);
}

bool read_watch::complete_first(std::vector<watched_read*>& waiting) {
  auto found = std::ranges::find_if(waiting, [](auto* read) { return read->has_news(); });
  if (found == waiting.end()) return false;
  auto* read = *found;
  waiting.erase(found); // first: its caller may read on
  read->complete();
  return true;
}

bool read_watch::may_sleep() {
  for (auto* waiting : {&in_memory_, &at_sockets_})
    std::erase_if(*waiting, [](auto* read) { return read->sleeps(); });
  return !complete_one();
}

} // namespace troupe
