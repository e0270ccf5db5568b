// SPDX-License-Identifier: Apache-2.0
// Tells the mirror of one change after the other.
#include "actors/replication/unmirrored_changes.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void unmirrored_changes::add(unmirrored_change change) {
  changes_.push_back(std::move(change));
  if (changes_.size() == 1) changes_.front().tell();
}

void unmirrored_changes::settle_first() {
  TROUPE_ASSERT(!changes_.empty());
  auto first = std::move(changes_.front());
  changes_.pop_front();
  first.settle(std::nullopt);
  if (!changes_.empty()) changes_.front().tell();
}

void unmirrored_changes::settle_all(const std::optional<error>& refused) {
  for (auto& change : std::exchange(changes_, {}))
    change.settle(refused);
}

unmirrored_change* unmirrored_changes::find(const request_id& id) {
  auto found = std::ranges::find_if(changes_, [&id](const unmirrored_change& change) {
    return change.id && change.id->client == id.client && change.id->number == id.number;
  });
  return found == changes_.end() ? nullptr : &*found;
}

unmirrored_change* unmirrored_changes::last_numbered() {
  auto last = std::find_if(changes_.rbegin(), changes_.rend(),
                           [](const auto& change) { return change.id.has_value(); });
  return last == changes_.rend() ? nullptr : &*last;
}

} // namespace troupe
