// SPDX-License-Identifier: Apache-2.0
// Compares a node's options with the greetings of others.
#include "actors/net/sockets/peer_admission.hpp"

#include "actors/net/network_messages.hpp"
#include "actors/net/silence_timeout.hpp"
#include "actors/net/sockets/outbox.hpp"
#include "messages/errors/printable.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

namespace troupe {

namespace {

// Bytes of another job's name that a line shows.
constexpr size_t job_bytes_shown = 100;

tl::unexpected<error> turn_away(std::string why) {
  return fail(errc::failed_precondition, std::move(why));
}

// The messages that the node knows beside Troupe's.
std::vector<known_message> known_messages(const socket_network_options& options) {
  return options.messages ? options.messages->list() : std::vector<known_message>{};
}

} // namespace

uint64_t usual_window_bytes() {
  auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return std::min(uint64_t{4} << 30, pages * page_bytes / 4);
}

expected<void> check(const socket_network_options& options) {
  if (options.self >= options.nodes.size())
    return fail(errc::invalid_argument, fmt::format("node {} is not in the list of {} nodes",
                                                    options.self, options.nodes.size()));
  if (options.job.empty()) return fail(errc::invalid_argument, "the job has no name");
  if (options.silence_timeout < std::chrono::milliseconds{100})
    return fail(errc::invalid_argument, "peers are given less than 100 ms to say something");
  if (options.window_bytes == 0)
    return fail(errc::invalid_argument, "window_bytes is 0: no peer could send anything");
  if (options.window_bytes > window_bytes_max)
    return fail(errc::invalid_argument, fmt::format("window_bytes is {}; at most {} are counted",
                                                    options.window_bytes, window_bytes_max));
  if (options.part_bytes_max % sizeof(uint64_t) != 0 || options.part_bytes_max == 0)
    return fail(errc::invalid_argument, "part_bytes_max is no whole number of words");
  return {};
}

std::string name_of(const socket_network_options& options, node_index node) {
  const auto& place = options.nodes.at(node);
  return place.address.empty() ? place.name : fmt::format("{} ({})", place.name, place.address);
}

bool talks_to(const socket_network_options& options, node_index peer) {
  return peer != options.self && (!options.talk || options.talk(options.self, peer));
}

bool goes_past_network(const socket_network_options& options) {
  return options.local_sockets && !options.tls;
}

greeting greeting_of(const socket_network_options& options, uint32_t incarnation) {
  return {.job = options.job,
          .nodes = static_cast<uint32_t>(options.nodes.size()),
          .node = options.self,
          .incarnation = incarnation,
          .heartbeat = options.silence_timeout / ticks_in_timeout,
          .window = options.window_bytes,
          .known = known_messages(options)};
}

expected<void> judge_admission(const socket_network_options& options, const greeting& peer,
                               std::optional<node_index> dialed) {
  if (peer.job != options.job)
    return turn_away(fmt::format("{} is of the job '{}', not of '{}'; give all tasks of a job the "
                                 "same --job-id, and each job ports of its own",
                                 options.nodes[options.self].name, options.job,
                                 printable(peer.job.substr(0, job_bytes_shown))));
  if (peer.nodes != options.nodes.size())
    return turn_away(fmt::format("{} knows of {} tasks, not of {}; give all tasks the same cluster",
                                 options.nodes[options.self].name, options.nodes.size(),
                                 peer.nodes));
  if (peer.node >= options.nodes.size() || peer.node == options.self)
    return turn_away(fmt::format("{} is at this address, and has the same task index",
                                 options.nodes[options.self].name));
  if (dialed && peer.node != *dialed)
    return turn_away(fmt::format("at the address of {} is {}; check the addresses",
                                 name_of(options, *dialed), options.nodes[peer.node].name));
  if (!dialed && (peer.node < options.self || !talks_to(options, peer.node)))
    return turn_away(fmt::format("{} is not dialed by {}; start all tasks with the same options",
                                 options.nodes[options.self].name, options.nodes[peer.node].name));
  return compare_known(options.nodes[options.self].name, known_messages(options),
                       options.nodes[peer.node].name, peer.known);
}

std::string free_task(const socket_network_options& options,
                      const std::function<bool(node_index)>& is_there) {
  for (auto peer = options.self + 1; peer < options.nodes.size(); ++peer) {
    const auto& name = options.nodes[peer].name;
    auto colon = name.find(':');
    if (is_there(peer) || !talks_to(options, peer) || colon == std::string::npos) continue;
    return fmt::format(R"(; {} is not there, which would be --task {} or in its TF_CONFIG "task": )"
                       R"({{"type": "{}", "index": {}}})",
                       name, name, name.substr(0, colon), name.substr(colon + 1));
  }
  return "; all others are there, too";
}

} // namespace troupe
