// SPDX-License-Identifier: Apache-2.0
// Which changes an owner has made that may be asked for again.
#include "actors/replication/made_changes.hpp"

#include "messages/limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

const made_change* made_changes::find(const change_id& id) const {
  auto who = askers_.find(id.asker);
  if (who == askers_.end()) return nullptr;
  auto found = who->second.made.find(id.number);
  return found == who->second.made.end() ? nullptr : &found->second;
}

bool made_changes::is_over(const change_id& id) const {
  auto who = askers_.find(id.asker);
  return who != askers_.end() && id.number < who->second.oldest;
}

// What a peer says may be nonsense: then it forgets its own changes only.
void made_changes::add(made_change change) {
  auto id = change.id;
  auto& who = askers_[id.asker];
  who.asked = ++count_;
  who.oldest = std::max(who.oldest, std::min(id.oldest, id.number));
  who.made.insert_or_assign(id.number, std::move(change));
  if (who.made.size() > limits::changes_of_asker_max)
    who.oldest = std::max(who.oldest, std::next(who.made.begin())->first);
  who.made.erase(who.made.begin(), who.made.lower_bound(who.oldest));
  if (askers_.size() > limits::askers_max) forget_one();
}

void made_changes::forget_one() {
  auto asked = [](const auto& one) { return one.second.asked; };
  askers_.erase(std::ranges::min_element(askers_, {}, asked));
}

std::vector<made_change> made_changes::all() const {
  std::vector<const asker*> in_order;
  for (const auto& [id, who] : askers_)
    in_order.push_back(&who);
  std::ranges::sort(in_order, {}, &asker::asked);
  std::vector<made_change> changes;
  for (const auto* who : in_order)
    for (const auto& [number, change] : who->made)
      changes.push_back(change);
  return changes;
}

void made_changes::restore(std::vector<made_change> changes) {
  askers_.clear();
  count_ = 0;
  for (auto& change : changes)
    add(std::move(change));
}

} // namespace troupe
