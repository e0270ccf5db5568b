// SPDX-License-Identifier: Apache-2.0
// Actors of this process, and waiting for those of other processes.
#include "tests/simulation/network/process_placement.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/assert.hpp"

#include <fmt/format.h>
#include <future>
#include <memory>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds look_period{50}; // as often as a process dials again

} // namespace

process_placement::process_placement(troupe::world& world, simulated_network& network,
                                     std::vector<std::string> names, uint32_t rank,
                                     job_time start_deadline)
  : world_(world), network_(network), names_(std::move(names)), rank_(rank),
    start_deadline_(start_deadline) {
  TROUPE_ASSERT(rank < names_.size(), rank, names_.size());
}

std::map<uint32_t, std::string> process_placement::others() const {
  std::map<uint32_t, std::string> result;
  for (uint32_t rank = 0; rank < names_.size(); ++rank)
    if (rank != rank_) result.emplace(rank, names_[rank]);
  return result;
}

uint32_t process_placement::where(const std::string& name) const {
  auto node = network_.nodes().node_of(name);
  return network_.nodes().is_replica(node) ? node - network_.nodes().replica_node(0) : 0;
}

expected<bool> process_placement::enter(const std::string& name, double /*load*/) {
  return where(name) == rank_;
}

void process_placement::place(const std::string& name, const caf::strong_actor_ptr& actor) {
  network_.placement().place(name, actor);
}

void process_placement::stand_beside(const std::string& neighbour,
                                     const caf::strong_actor_ptr& actor) {
  network_.placement().stand_beside(neighbour, actor);
}

expected<caf::strong_actor_ptr> process_placement::see(const std::string& viewer,
                                                       const std::string& name) {
  auto rank = where(name);
  auto node = network_.nodes().replica_node(rank);
  for (auto deadline = world_.now() + start_deadline_; world_.now() < deadline;) {
    if (!network_.nodes().is_up(node))
      return fail(errc::unavailable,
                  fmt::format("{} is gone: there is no '{}' to be found", names_[rank], name));
    if (network_.blocked().are_connected(network_.nodes().replica_node(rank_), node))
      if (auto found = network_.placement().see(viewer, name)) return found;
    auto pause = std::make_shared<std::promise<void>>();
    auto over = pause->get_future();
    network_.events().at(network_.events().now() + look_period, [pause] { pause->set_value(); });
    if (auto turned = world_.run_until(over); !turned) return tl::unexpected<error>(turned.error());
  }
  return fail(errc::deadline_exceeded, fmt::format("waited {:.1f} s for '{}' at {}",
                                                   seconds(start_deadline_), name, names_[rank]));
}

expected<actor_search> process_placement::search(const std::string& viewer,
                                                 const std::string& name) {
  return network_.placement().search(viewer, name);
}

} // namespace troupe
