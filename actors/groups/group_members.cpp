// SPDX-License-Identifier: Apache-2.0
// Spawning a group's actor, which ends with the last copy of the group, and checking arguments.
#include "actors/groups/group_members.hpp"

#include "actors/world/world.hpp"
#include "messages/errors/failure.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

group_members::group_members(troupe::world& world, std::string name,
                             std::vector<caf::strong_actor_ptr> actors,
                             std::vector<std::string> names, size_t size)
  : world_(world), name_(std::move(name)), actors_(std::move(actors)), names_(std::move(names)) {
  auto refuse_group = [this](const std::string& why) {
    throw failure{{errc::invalid_argument, fmt::format("group '{}' {}", name_, why)}};
  };
  if (actors_.size() != size)
    refuse_group(fmt::format("has {} members, and a shape of {}", actors_.size(), size));
  if (actors_.size() != names_.size())
    refuse_group(fmt::format("has {} members, and {} names", actors_.size(), names_.size()));
  if (std::ranges::find(actors_, nullptr) != actors_.end()) refuse_group("has an empty handle");
  gatherer_ = world_.system().spawn(troupe::gatherer, &world_, actors_);
  world_.introduce(gatherer_.id(), "group " + name_);
}

group_members::~group_members() {
  caf::anon_send_exit(gatherer_, caf::exit_reason::user_shutdown);
}

size_t check_group_options(const std::string& group, const group_options& options, size_t members) {
  constexpr auto limit_max = std::chrono::hours{24 * 3650};
  auto refuse_options = [&group](const std::string& why) {
    throw failure{{errc::invalid_argument, "group '" + group + "' " + why}};
  };
  if (options.first > members)
    refuse_options(
      fmt::format("cannot give the first {} answers: it has {} members", options.first, members));
  if (options.limit <= job_time{0} || options.limit > limit_max)
    refuse_options("needs a time limit above 0 and up to ten years");
  return options.first == 0 ? members : options.first;
}

} // namespace troupe
