// SPDX-License-Identifier: Apache-2.0
// First each process shows its communicators, then it looks for the others.
#include "actors/collective/collective_group.hpp"

#include "actors/collective/communicator.hpp"
#include "actors/interfaces/caf_compat.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using communicators = std::vector<communicator_actor>;

expected<communicators> spawn_here(world& world, placement& place,
                                   const collective_group_options& options) {
  communicators here(options.size);
  std::vector<std::string> names;
  for (uint32_t rank = 0; rank < options.size; ++rank)
    names.push_back(rank < options.names.size() ? options.names[rank]
                                                : fmt::format("worker:{}", rank));
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    auto name = communicator_name(rank);
    auto is_here = place.enter(name);
    if (!is_here) return tl::unexpected<error>(is_here.error());
    if (!*is_here) continue;
    here[rank]
      = world.system().spawn(communicator, communicator_config{.rank = rank,
                                                               .size = options.size,
                                                               .names = names,
                                                               .deadline = options.deadline,
                                                               .world = &world,
                                                               .arrays = place.arrays()});
    world.introduce(here[rank].id(), name);
    place.put(name, here[rank]);
  }
  return here;
}

expected<void> have_met(placement& place, const communicators& here, uint32_t rank) {
  meet_peers met;
  for (uint32_t peer = 0; peer < here.size(); ++peer) {
    if (peer == rank) {
      met.peers.emplace_back();
      continue;
    }
    auto found = place.see(communicator_name(rank), communicator_name(peer));
    if (!found) return tl::unexpected<error>(found.error());
    if (!*found)
      return fail(errc::failed_precondition,
                  fmt::format("{} and {} do not talk to each other in this cluster; have its "
                              "workers meet (workers_meet)",
                              communicator_name(rank), communicator_name(peer)));
    met.peers.push_back(std::move(*found));
  }
  caf::anon_send(here[rank], std::move(met));
  return {};
}

} // namespace

std::string communicator_name(uint32_t rank) {
  return fmt::format("communicator {}", rank);
}

expected<communicators> join_collective_group(world& world, placement& place,
                                              const collective_group_options& options) {
  auto here = spawn_here(world, place, options);
  if (!here) return here;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    if (!(*here)[rank]) continue;
    if (auto met = have_met(place, *here, rank); !met) {
      // It knows no peer to tell that it leaves: its reason has to say so.
      for (const auto& one : *here)
        if (one)
          caf::anon_send(caf::actor_cast<caf::actor>(one), caf::exit_msg{{}, to_caf(met.error())});
      return tl::unexpected<error>(met.error());
    }
  }
  return here;
}

} // namespace troupe
