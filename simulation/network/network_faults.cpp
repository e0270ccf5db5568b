// SPDX-License-Identifier: Apache-2.0
// Faults of nodes and between them, and how other nodes notice.
#include "actors/recording/seconds.hpp"
#include "actors/world/virtual_coordinator.hpp"
#include "messages/assert.hpp"
#include "simulation/network/simulated_network.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace troupe {

namespace {

virtual_clock& virtual_clock_of(world& world) {
  return static_cast<virtual_coordinator&>(world.system().scheduler()).clock();
}

} // namespace

simulated_network::~simulated_network() {
  if (has_wrong_clocks_) virtual_clock_of(world_).set_errors({});
}

bool simulated_network::is_blocked(node_index from, node_index to) const {
  return places_[to].frozen > 0 || is_cut(from, to);
}

bool simulated_network::is_cut(node_index from, node_index to) const {
  return std::ranges::any_of(cuts_, [from, to](const auto& one) {
    const auto& [number, cut] = one;
    return (!cut.from || cut.from(from)) && (!cut.to || cut.to(to));
  });
}

void simulated_network::release_held() {
  tell_given_up();
  for (auto& one : std::exchange(held_, {})) {
    if (!is_alive(one.from))
      lose(one, outcome::lost);
    else if (one.is_out)
      arrive(std::move(one)); // back here if it is still blocked
    else
      set_out(std::move(one));
  }
}

void simulated_network::crash(node_index node, bool for_good) {
  auto& place = places_[node];
  if (!place.here) return;
  place.is_gone = for_good;
  auto gone = std::exchange(place.here, nullptr)->address();
  for (auto& actor : std::exchange(place.actors, {})) {
    stands_at_.erase(actor->id());
    caf::anon_send_exit(caf::actor_cast<caf::actor>(actor), caf::exit_reason::kill);
  }
  if (cards_) {
    for (auto number : cards_->give_up(node, now())) {
      lose(transfers_.at(number), outcome::lost);
      transfers_.erase(number);
    }
    plan_transfer_look(now());
  }
  place.busy_until = now();
  silence_.forget(node);
  error reason{errc::unavailable, fmt::format("node '{}' is gone", name_of(node))};
  auto told = std::exchange(place.known_to, {});
  at(now() + options_.detection, [this, gone, reason = std::move(reason), told = std::move(told)] {
    for (auto peer : told)
      if (auto& here = places_[peer].here) here->lose(gone, reason);
  });
}

void simulated_network::reset() {
  for (node_index node = 0; node < node_count(); ++node) {
    auto& place = places_[node];
    if (!place.here && is_replica(node)) continue;
    ++place.incarnation;
    place.actors.clear();
    place.known_to.clear();
    place.busy_until = now();
    place.here = node::make(world_.system(), *this, {node, place.incarnation}, name_of(node));
  }
  for (node_index node = 0; node < node_count(); ++node)
    silence_.forget(node);
  stands_at_.clear();
  goes_by_.clear();
  release_held(); // none of its senders lives any more
}

void simulated_network::restart(node_index node) {
  auto& place = places_[node];
  if (place.here) return;
  ++place.incarnation;
  place.here = node::make(world_.system(), *this, {node, place.incarnation}, name_of(node));
  if (options_.meets_at_roll_call)
    on_restart(node);
  else if (is_replica(node))
    bring_back(node - replica_node(0));
  else
    bring_back_owners(node);
}

void simulated_network::freeze(node_index node) {
  ++places_[node].frozen;
  look_at_links_of(node);
}

void simulated_network::thaw(node_index node) {
  TROUPE_ASSERT(places_[node].frozen > 0);
  if (--places_[node].frozen > 0) return;
  look_at_links_of(node);
  release_held();
}

uint64_t simulated_network::sever(cut between) {
  cuts_.emplace(cut_count_, std::move(between));
  look_at_all_links();
  return cut_count_++;
}

void simulated_network::heal(uint64_t number) {
  if (cuts_.erase(number) == 0) return;
  look_at_all_links();
  release_held();
}

void simulated_network::slow_down(node_index node, double factor) {
  TROUPE_ASSERT(factor > 0);
  places_[node].factor = factor;
}

// ---- wrong clocks ----

void simulated_network::set_clock(node_index node, job_time ahead, double rate) {
  TROUPE_ASSERT(ahead >= job_time{0});
  TROUPE_ASSERT(rate > 0);
  auto& clock = places_[node].clock;
  auto time = virtual_clock_of(world_).elapsed();
  clock = {clock.shown_at(time) + ahead - time, rate, time};
  if (std::exchange(has_wrong_clocks_, true)) return;
  virtual_clock_of(world_).set_errors([this](caf::actor_id actor) -> const clock_error* {
    auto found = stands_at_.find(actor);
    return found == stands_at_.end() ? nullptr : &places_[found->second].clock;
  });
}

// ---- silent nodes ----

// A node that stands still does not count how long others are silent.
void simulated_network::look_at_link(node_index from, node_index to) {
  auto is_silent = places_[to].frozen == 0 && (places_[from].frozen > 0 || is_cut(from, to));
  if (auto due = silence_.look({from, to}, is_silent, now(), places_[to].clock.rate))
    at(*due, [this] { give_up_silent(); });
}

void simulated_network::look_at_links_of(node_index node) {
  if (silence_.is_off()) return;
  for (auto peer : places_[node].known_to) {
    look_at_link(node, peer);
    look_at_link(peer, node);
  }
}

void simulated_network::look_at_all_links() {
  if (silence_.is_off()) return;
  for (node_index to = 0; to < node_count(); ++to)
    for (auto from : places_[to].known_to)
      look_at_link(from, to);
}

// All nodes that lose each other at one moment do so before any of them ends for it.
void simulated_network::give_up_silent() {
  auto pairs = silence_.take_given_up(now());
  for (auto [from, to] : pairs)
    give_up_on(to, from);
  for (auto [from, to] : pairs)
    if (on_give_up && is_up(from) && is_up(to)) on_give_up(to, from);
}

// The link between them is closed, with all that was to pass it. The node that is given up has yet
// to hear of it, unless it was first to give up; and hears of the other's crash until then.
void simulated_network::give_up_on(node_index by, node_index whom) {
  if (!is_up(by) || !is_up(whom) || places_[whom].known_to.erase(by) == 0) return;
  parting told{places_[by].here->address(), places_[whom].here->address()};
  auto is_mutual = std::erase_if(
    partings_, [&told](const parting& one) { return one.by == told.whom && one.whom == told.by; });
  if (is_mutual == 0) {
    count(outcome::given_up, "node");
    partings_.push_back(told);
  }
  error reason{errc::unavailable,
               fmt::format("node '{}' is gone: nothing was heard of it for {:.1f} s", name_of(whom),
                           seconds(options_.silence_timeout))};
  places_[by].here->lose(told.whom, reason);
  std::vector<in_flight_message> kept;
  for (auto& one : std::exchange(held_, {})) {
    auto from = one.from.node;
    auto to = one.what.to.at.node;
    if ((from == by && to == whom) || (from == whom && to == by))
      lose(one, outcome::lost);
    else
      kept.push_back(std::move(one));
  }
  held_ = std::move(kept);
  tell_given_up();
}

void simulated_network::part_with(uint32_t lost, uint32_t /*lost_by*/) {
  at(now(), [this, lost] {
    if (is_up(lost)) crash(lost);
  });
}

// A node that was given up hears of it as soon as it hears anything.
void simulated_network::tell_given_up() {
  std::erase_if(partings_, [this](const parting& one) {
    if (!is_alive(one.by) || !is_alive(one.whom)) return true;
    if (places_[one.by.node].frozen > 0 || is_blocked(one.by.node, one.whom.node)) return false;
    error reason{errc::unavailable,
                 fmt::format("node '{}' is gone: it says: nothing was heard of it for {:.1f} s",
                             name_of(one.by.node), seconds(options_.silence_timeout))};
    places_[one.by.node].known_to.erase(one.whom.node);
    places_[one.whom.node].here->lose(one.by, reason);
    return true;
  });
}

uint64_t simulated_network::begin_injection(fault_injection what) {
  injections_.emplace(injection_count_, std::move(what));
  return injection_count_++;
}

void simulated_network::end_injection(uint64_t number) {
  injections_.erase(number);
}

std::map<std::string, uint64_t> simulated_network::counts() const {
  static constexpr std::array names{"delivered", "lost",     "duplicated", "reordered",
                                    "held",      "too late", "recalled",   "given up"};
  std::map<std::string, uint64_t> result;
  for (const auto& [what, number] : counts_)
    result[fmt::format("{} {}", names[static_cast<size_t>(what.first)], what.second)] += number;
  return result;
}

} // namespace troupe
