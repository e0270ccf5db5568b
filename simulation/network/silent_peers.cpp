// SPDX-License-Identifier: Apache-2.0
// How nodes lose each other, and how they hear of it.
#include "simulation/network/silent_peers.hpp"

#include "actors/recording/seconds.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

silent_peers::silent_peers(simulated_nodes& nodes, timed_events& events,
                           const blocked_links& blocked, const node_clocks& clocks,
                           simulated_transport& transport, job_time timeout)
  : nodes_(nodes), events_(events), blocked_(blocked), clocks_(clocks), transport_(transport),
    timeout_(timeout), silence_(timeout) {}

// A node that stands still does not count how long others are silent.
void silent_peers::look_at_link(node_index from, node_index to) {
  auto is_silent
    = !blocked_.is_frozen(to) && (blocked_.is_frozen(from) || blocked_.is_cut(from, to));
  if (auto due = silence_.look({from, to}, is_silent, events_.now(), clocks_.error_of(to).rate))
    events_.at(*due, [this] { give_up_silent(); });
}

void silent_peers::look_at_links_of(node_index node) {
  if (silence_.is_off()) return;
  for (auto peer : nodes_.known_to(node)) {
    look_at_link(node, peer);
    look_at_link(peer, node);
  }
}

void silent_peers::look_at_all_links() {
  if (silence_.is_off()) return;
  for (node_index to = 0; to < nodes_.node_count(); ++to)
    for (auto from : nodes_.known_to(to))
      look_at_link(from, to);
}

// All nodes that lose each other at one moment do so before any of them ends for it.
void silent_peers::give_up_silent() {
  auto pairs = silence_.take_given_up(events_.now());
  for (auto [from, to] : pairs)
    give_up_on(to, from);
  for (auto [from, to] : pairs)
    if (on_give_up && nodes_.is_up(from) && nodes_.is_up(to)) on_give_up(to, from);
}

// The link between both nodes is closed, and loses its messages. The node that is given up has yet
// to hear of it, unless it was first to give up; it hears of the other's crash until then.
void silent_peers::give_up_on(node_index by, node_index lost) {
  if (!nodes_.is_up(by) || !nodes_.is_up(lost) || !nodes_.hide(lost, by)) return;
  parting parting{nodes_.address_of(by), nodes_.address_of(lost)};
  auto mutual = std::erase_if(partings_, [&parting](const auto& other) {
    return other.by == parting.lost && other.lost == parting.by;
  });
  if (mutual == 0) {
    transport_.outcomes().count_given_up();
    partings_.push_back(parting);
  }
  error reason{errc::unavailable,
               fmt::format("node '{}' is gone: nothing was heard of it for {:.1f} s",
                           nodes_.name_of(lost), seconds(timeout_))};
  nodes_.node_at(by)->lose(parting.lost, reason);
  transport_.lose_held(by, lost);
  tell_given_up();
}

void silent_peers::tell_given_up() {
  std::erase_if(partings_, [this](const parting& parting) {
    auto [by, lost] = std::pair{parting.by.node, parting.lost.node};
    if (!nodes_.is_alive(parting.by) || !nodes_.is_alive(parting.lost)) return true;
    if (blocked_.is_frozen(by) || blocked_.is_blocked(by, lost)) return false;
    error reason{errc::unavailable,
                 fmt::format("node '{}' is gone: it says: nothing was heard of it for {:.1f} s",
                             nodes_.name_of(by), seconds(timeout_))};
    nodes_.hide(by, lost);
    nodes_.node_at(lost)->lose(parting.by, reason);
    return true;
  });
}

} // namespace troupe
