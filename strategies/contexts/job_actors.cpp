// SPDX-License-Identifier: Apache-2.0
// Finds the actors of a job: by variable, and as another viewer knows them.
#include "strategies/contexts/job_actors.hpp"

#include "messages/errors/failure.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

void job_actors::end() const {
  for (const auto& actor : here)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

expected<size_t> job_actors::position_of(const variable& trained) const {
  if (auto found = positions.find(trained); found != positions.end()) return found->second;
  return fail(errc::not_found,
              fmt::format("this job does not train variable '{}'", trained.name()));
}

expected<accumulator_actor> job_actors::accumulator_of(const variable& trained) const {
  return position_of(trained).map([this](size_t position) { return accumulators[position]; });
}

const bundle_of_variables* job_actors::bundle_of(size_t position) const {
  auto found = std::ranges::find_if(bundles, [&](const bundle_of_variables& bundle) {
    return std::ranges::binary_search(bundle.variables, position);
  });
  return found == bundles.end() ? nullptr : &*found;
}

const variable_owner_actor& job_actors::owner_of(const variable& trained) const {
  auto found = positions.find(trained);
  auto is_seen_otherwise = found != positions.end() && found->second < owners.size();
  return is_seen_otherwise ? owners[found->second] : trained.owner();
}

job_actors job_actors::seen_from(const std::string& viewer, placement& placement) const {
  auto seen = *this;
  seen.tokens = value_or_throw(placement.find<token_queue_actor>(viewer, "token queue"));
  for (size_t i = 0; i < variables.size(); ++i)
    seen.accumulators[i] = value_or_throw(
      placement.find<accumulator_actor>(viewer, "accumulator " + variables[i].name()));
  seen.owners.clear();
  for (const auto& variable : variables)
    seen.owners.push_back(variable.is_here() ? value_or_throw(placement.find<variable_owner_actor>(
                            viewer, "owner " + variable.name()))
                                             : variable.owner());
  return seen;
}

void job_actors::hear(uint64_t step) const {
  if (!step_heard) return;
  auto known = step_heard->load();
  while (known < step && !step_heard->compare_exchange_weak(known, step)) {
  }
}

} // namespace troupe
