// SPDX-License-Identifier: Apache-2.0
// What the chief makes of what it knows: no message is sent here.
#include "actors/chief.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

step_record chief_state::close_books(job_time now) {
  step_record record{.step = step + 1,
                     .began = step_began,
                     .ended = now,
                     .apply = now - ledger.last_arrival(),
                     .needed = needed,
                     .live = static_cast<uint32_t>(live.size()),
                     .updates = applied};
  ledger.close(record);
  if (config.sync.policy != sync_policy::cancel) return record;
  auto lapsed = live;
  for (const auto& accepted : record.accepted)
    lapsed.erase(accepted.replica);
  for (const auto& [index, replica] : lapsed)
    record.cancelled.push_back({.replica = index, .local_step = step, .arrived = now});
  return record;
}

bool chief_state::enough_live() const {
  auto policy = config.sync.policy;
  auto may_repeat = policy == sync_policy::k_batch_async || policy == sync_policy::ssp
                    || (policy == sync_policy::tensorflow && !config.sync.one_gradient_per_replica);
  if (may_repeat || config.sync.dynamic) return !is_deserted();
  return left_count() >= config.sync.replicas_to_aggregate;
}

gradient_norms chief_state::all_norms() const {
  gradient_norms sum;
  for (const auto& [variable, of_variable] : norms) {
    sum.squared_mean += of_variable.squared_mean;
    sum.mean_squared += of_variable.mean_squared;
  }
  return sum;
}

uint32_t chief_state::choose_needed() const {
  auto usual = config.sync.replicas_to_aggregate;
  if (!choice) return usual;
  if (step == config.first_step || live.empty())
    return std::min(usual, static_cast<uint32_t>(std::max<size_t>(left_count(), 1)));
  std::vector<uint32_t> replicas;
  for (const auto& [index, replica] : live)
    replicas.push_back(index);
  return choice->choose(replicas, config.world->now());
}

std::vector<std::string> chief_state::not_applied() const {
  std::vector<std::string> names;
  for (const auto& name : config.variables)
    if (std::ranges::find(applied, name, &variable_update::variable) == applied.end())
      names.push_back(name);
  return names;
}

std::string chief_state::missing(const std::set<uint32_t>& waiting) const {
  std::vector<std::string> names;
  for (const auto& [index, replica] : live)
    if (!waiting.contains(index)) names.push_back(fmt::format("replica {}", index));
  for (uint32_t index = 0;
       live.size() < config.sync.total_num_replicas && index < config.sync.total_num_replicas;
       ++index)
    if (!live.contains(index)) names.push_back(fmt::format("replica {} (not there)", index));
  return names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace troupe
