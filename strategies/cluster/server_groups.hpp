// SPDX-License-Identifier: Apache-2.0
// Groups over the processes of a job.
#pragma once

#include "actors/groups/group.hpp"
#include "strategies/cluster/server.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {

/// The name under which one of several actors of a process is published: "trainer/3".
[[nodiscard]] inline std::string name_in_group(const std::string& group, size_t number) {
  return group + "/" + std::to_string(number);
}

} // namespace detail

/// Lets other processes find this process's members of a group, in their order, until they end.
/// Errors: as `server::publish`.
template <class Handle>
void publish_members(server& here, const std::string& group, const std::vector<Handle>& members) {
  for (size_t i = 0; i < members.size(); ++i)
    here.publish(detail::name_in_group(group, i), members[i]);
}

/// Finds the members of a group that each of `tasks` has published by `publish_members`, and waits
/// for those that have not come yet. The dimensions are "task" and "place"; a member is named by
/// its task, and by its place if there are several: "worker:2", or "worker:2, place 1".
/// @param tasks As `server::trainers` names them. @param places Members in each task; at least 1.
/// @param deadline For all of them together; without, that of the server.
/// Errors: as `server::find` and `finding::wait`. Thread: one that runs no actor.
template <class Handle>
[[nodiscard]] expected<group<Handle>>
find_group(world& world, server& from, const std::string& name,
           const std::vector<std::string>& tasks, size_t places = 1,
           std::optional<job_time> deadline = {}) {
  auto until = world.now() + deadline.value_or(from.start_deadline());
  std::vector<Handle> members;
  std::vector<std::string> names;
  for (const auto& task : tasks) {
    for (size_t place = 0; place < places; ++place) {
      auto left = std::max(until - world.now(), job_time{0});
      auto found = from.find<Handle>(task, detail::name_in_group(name, place), left).wait();
      if (!found) return tl::unexpected<error>(found.error());
      members.push_back(std::move(*found));
      names.push_back(places == 1 ? task : task + ", place " + std::to_string(place));
    }
  }
  return group<Handle>{world, name, members, std::move(names),
                       group_shape{{{"task", tasks.size()}, {"place", places}}}};
}

} // namespace troupe
