// SPDX-License-Identifier: Apache-2.0
// Groups over the processes of a job.
#pragma once

#include "actors/groups/group.hpp"
#include "strategies/cluster/server.hpp"

#include <algorithm>
#include <chrono>
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

/// When a wait ends that may take so long. @param deadline Also `world::for_ever`; a longer one
/// than a year is a year.
[[nodiscard]] inline job_time end_of_wait(world& world, job_time deadline) {
  return world.now() + std::min<job_time>(deadline, std::chrono::hours{365 * 24});
}

/// The group of the actors that tasks have published, the same number each, those of the first task
/// first. @param name_of The name of a member, by its number in the group.
template <class Handle, class NameOf>
[[nodiscard]] expected<group<Handle>>
find_members(world& world, server& from, const std::string& name,
             const std::vector<std::string>& tasks, size_t places, job_time until, NameOf name_of) {
  std::vector<Handle> members;
  std::vector<std::string> names;
  for (const auto& task : tasks) {
    for (size_t place = 0; place < places; ++place) {
      auto left = std::max(until - world.now(), job_time{0});
      auto found = from.find<Handle>(task, name_of(members.size()), left).wait();
      if (!found) return tl::unexpected<error>(found.error());
      members.push_back(std::move(*found));
      names.push_back(places == 1 ? task : task + ", place " + std::to_string(place));
    }
  }
  return group<Handle>{world, name, members, std::move(names),
                       group_shape{{{"task", tasks.size()}, {"place", places}}}};
}

/// The name by which a task has published an actor that it made, or why it did not. A peer may say
/// anything.
[[nodiscard]] inline expected<std::string> name_of_made(const expected<msg<wire::ActorMade>>& reply,
                                                        const std::string& task) {
  if (!reply) return tl::unexpected<error>(reply.error());
  std::string name = reply->reader().getName();
  if (!name.empty() && name.size() <= server::name_bytes_max) return name;
  return fail(errc::malformed, task + " has made an actor without a name that one can have");
}

/// Ends the actors that were made for a group which does not come about.
template <class Handle>
void end_made(world& world, server& from, const std::vector<std::string>& tasks,
              const std::vector<expected<std::string>>& names, size_t places) {
  auto until = world.now() + std::chrono::seconds{2};
  for (size_t member = 0; member < names.size(); ++member) {
    if (!names[member]) continue;
    auto left = std::max(until - world.now(), job_time{0});
    if (auto found = from.find<Handle>(tasks[member / places], *names[member], left).wait())
      caf::anon_send_exit(*found, caf::exit_reason::user_shutdown);
  }
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
  auto until = detail::end_of_wait(world, deadline.value_or(from.start_deadline()));
  return detail::find_members<Handle>(world, from, name, tasks, places, until, [&](size_t member) {
    return detail::name_in_group(name, member % places);
  });
}

/// Has each of `tasks` make as many actors, and makes a group of all. A task makes them if its
/// process offers so (`server::offer`); one that has not come yet is waited for. Dimensions and
/// names are those of `find_group`.
///
///     auto trainers = spawn_group<trainer_actor>(world, server, "trainer", server.trainers(),
///                                                starts);
///
/// The actors end when they are told to (`group::end`), or with the offers that made them.
/// @param starts The message that each member begins with; the first task's members come first.
/// @param deadline For all of them together; without, the server's `start_deadline`. To end those
/// that were made in vain may take 2 s more.
/// Errors: as `server::find` and `finding::wait`; as `group_report::why_not_enough` if some were
/// not made; unavailable if one has ended since; malformed if a task answers nonsense. Then those
/// that were made are ended; one that is made later ends with its offer. Throws `failure` with
/// invalid_argument, if the tasks cannot share the members evenly. Thread: one that runs no actor.
template <class Handle, class Start>
[[nodiscard]] expected<group<Handle>>
spawn_group(world& world, server& from, const std::string& kind,
            const std::vector<std::string>& tasks, const std::vector<msg<Start>>& starts,
            std::optional<job_time> deadline = {}) {
  if (starts.empty() || tasks.empty() || starts.size() % tasks.size() != 0)
    throw failure{{errc::invalid_argument,
                   "spawn_group: " + std::to_string(tasks.size()) + " tasks cannot share "
                     + std::to_string(starts.size()) + " actors '" + kind + "' evenly"}};
  auto places = starts.size() / tasks.size();
  auto until = detail::end_of_wait(world, deadline.value_or(from.start_deadline()));
  auto makers = detail::find_members<maker_actor<Start>>(
    world, from, kind, tasks, places, until, [&](size_t) { return server::name_of_maker(kind); });
  if (!makers) return tl::unexpected<error>(makers.error());
  auto limit = std::max(until - world.now(), job_time{1});
  auto made = makers->template ask_each<msg<wire::ActorMade>>(starts, {.limit = limit}).wait();
  std::vector<expected<std::string>> names;
  for (size_t member = 0; member < starts.size(); ++member)
    names.push_back(detail::name_of_made(made.replies[member], tasks[member / places]));
  auto failed = std::ranges::find_if(names, [](const auto& name) { return !name; });
  auto all = [&]() -> expected<group<Handle>> {
    if (!made.is_enough()) return tl::unexpected<error>(made.why_not_enough());
    if (failed != names.end()) return tl::unexpected<error>(failed->error());
    // They are there, unless they have ended already.
    auto at_last = std::min(until, world.now() + std::chrono::seconds{10});
    auto found = detail::find_members<Handle>(world, from, kind, tasks, places, at_last,
                                              [&](size_t member) { return *names[member]; });
    if (!found && found.error().code == errc::deadline_exceeded && world.now() < until)
      return fail(errc::unavailable, "an actor of the group '" + kind
                                       + "' has ended since it was made: " + found.error().message);
    return found;
  }();
  if (!all) detail::end_made<Handle>(world, from, tasks, names, places);
  return all;
}

} // namespace troupe
