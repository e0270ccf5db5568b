// SPDX-License-Identifier: Apache-2.0
// Counting the replicas of a job by their presence.
#include "actors/training/replica_roster.hpp"

namespace troupe {

replica_roster::replica_roster(uint32_t replicas, std::span<const uint32_t> absent)
  : members_(replicas), counts_{replicas} {
  for (auto replica : absent)
    static_cast<void>(leave(replica));
}

bool replica_roster::expects(uint32_t replica) const {
  presence now = members_[replica].now_in;
  return now == presence::live || now == presence::coming;
}

bool replica_roster::leave(uint32_t replica) {
  if (!has(replica) || !expects(replica)) return false;
  move(replica, presence::gone);
  return true;
}

void replica_roster::await(uint32_t replica, job_time now, bool left_as_asked) {
  move(replica, presence::awaited);
  members_[replica].lost = now;
  members_[replica].left_as_asked = left_as_asked;
}

std::vector<uint32_t> replica_roster::all(presence state) const {
  std::vector<uint32_t> replicas;
  if (count(state) == 0) return replicas;
  for (uint32_t replica = 0; replica < size(); ++replica)
    if (members_[replica].now_in == state) replicas.push_back(replica);
  return replicas;
}

std::vector<uint32_t> replica_roster::all_expected() const {
  std::vector<uint32_t> replicas;
  for (uint32_t replica = 0; replica < size(); ++replica)
    if (expects(replica)) replicas.push_back(replica);
  return replicas;
}

void replica_roster::move(uint32_t replica, presence next) {
  TROUPE_ASSERT(has(replica), replica, size());
  auto& now_in = members_[replica].now_in;
  auto& former = counts_[static_cast<size_t>(presence{now_in})];
  TROUPE_ASSERT(former > 0, replica);
  --former;
  now_in.enter(next);
  ++counts_[static_cast<size_t>(next)];
}

} // namespace troupe
