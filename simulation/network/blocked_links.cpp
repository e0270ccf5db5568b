// SPDX-License-Identifier: Apache-2.0
// Freezes and cuts.
#include "simulation/network/blocked_links.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

bool blocked_links::thaw(node_index node) {
  TROUPE_ASSERT(is_frozen(node));
  return --freezes_[node] == 0;
}

uint64_t blocked_links::sever(cut between) {
  cuts_.emplace(cut_count_, std::move(between));
  return cut_count_++;
}

bool blocked_links::is_cut(node_index from, node_index to) const {
  return std::ranges::any_of(cuts_, [from, to](const auto& numbered) {
    const auto& cut = numbered.second;
    return (!cut.from || cut.from(from)) && (!cut.to || cut.to(to));
  });
}

} // namespace troupe
