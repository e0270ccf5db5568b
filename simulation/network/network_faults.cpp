// SPDX-License-Identifier: Apache-2.0
// Faults of a simulated network's nodes and links, and how other nodes notice.
#include "actors/recording/seconds.hpp"
#include "actors/world/virtual_coordinator.hpp"
#include "messages/errors/assert.hpp"
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
  return std::ranges::any_of(cuts_, [from, to](const auto& numbered) {
    const auto& cut = numbered.second;
    return (!cut.from || cut.from(from)) && (!cut.to || cut.to(to));
  });
}

void simulated_network::release_held() {
  tell_given_up();
  for (auto& message : std::exchange(held_, {})) {
    if (!is_alive(message.from))
      lose(message, outcome::lost);
    else if (message.is_out)
      arrive(std::move(message)); // back here if it is still blocked
    else
      set_out(std::move(message));
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
    for (auto number : cards_->give_up(node, now()))
      lose(take_transfer(number), outcome::lost);
    plan_transfer_look(now());
  }
  place.busy_until = now();
  silence_.forget(node);
  error reason{errc::unavailable, fmt::format("node '{}' is gone", name_of(node))};
  auto peers = std::exchange(place.known_to, {});
  at(now() + options_.detection,
     [this, gone, reason = std::move(reason), peers = std::move(peers)] {
       for (auto peer : peers)
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
    begin_life(node);
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
  begin_life(node);
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

// The link between both nodes is closed, and loses its messages. The node that is given up has yet
// to hear of it, unless it was first to give up; it hears of the other's crash until then.
void simulated_network::give_up_on(node_index by, node_index lost) {
  if (!is_up(by) || !is_up(lost) || places_[lost].known_to.erase(by) == 0) return;
  parting parting{places_[by].here->address(), places_[lost].here->address()};
  auto mutual = std::erase_if(partings_, [&parting](const auto& other) {
    return other.by == parting.lost && other.lost == parting.by;
  });
  if (mutual == 0) {
    count(outcome::given_up, "node");
    partings_.push_back(parting);
  }
  error reason{errc::unavailable,
               fmt::format("node '{}' is gone: nothing was heard of it for {:.1f} s", name_of(lost),
                           seconds(options_.silence_timeout))};
  places_[by].here->lose(parting.lost, reason);
  std::erase_if(held_, [&](const in_flight_message& message) {
    auto from = message.from.node;
    auto to = message.parcel.to.at.node;
    auto is_between = (from == by && to == lost) || (from == lost && to == by);
    if (is_between) lose(message, outcome::lost);
    return is_between;
  });
  tell_given_up();
}

void simulated_network::part_with(uint32_t lost, uint32_t /*lost_by*/) {
  at(now(), [this, lost] {
    if (is_up(lost)) crash(lost);
  });
}

// A node that was given up hears of it as soon as it hears anything.
void simulated_network::tell_given_up() {
  std::erase_if(partings_, [this](const parting& parting) {
    auto [by, lost] = std::pair{parting.by.node, parting.lost.node};
    if (!is_alive(parting.by) || !is_alive(parting.lost)) return true;
    if (places_[by].frozen > 0 || is_blocked(by, lost)) return false;
    error reason{errc::unavailable,
                 fmt::format("node '{}' is gone: it says: nothing was heard of it for {:.1f} s",
                             name_of(by), seconds(options_.silence_timeout))};
    places_[by].known_to.erase(lost);
    places_[lost].here->lose(parting.by, reason);
    return true;
  });
}

uint64_t simulated_network::begin_injection(fault_injection injection) {
  injections_.emplace(injection_count_, std::move(injection));
  return injection_count_++;
}

void simulated_network::end_injection(uint64_t number) {
  injections_.erase(number);
}

std::map<std::string, uint64_t> simulated_network::counts() const {
  static constexpr std::array names{"delivered", "lost",     "duplicated", "reordered",
                                    "held",      "too late", "recalled",   "given up"};
  std::map<std::string, uint64_t> result;
  for (const auto& [event, number] : counts_)
    result[fmt::format("{} {}", names[static_cast<size_t>(event.first)], event.second)] += number;
  return result;
}

} // namespace troupe
