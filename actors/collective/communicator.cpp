// SPDX-License-Identifier: Apache-2.0
// The communicator: calls become transfers, transfers become messages, and trouble is told to all.
#include "actors/collective/communicator.hpp"

#include "actors/collective/collective_agreement.hpp"
#include "actors/recording/seconds.hpp"
#include "messages/mapped.hpp"

#include <caf/exit_reason.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

using communicator_pointer = observed_pointer<communicator_actor, communicator_state>;
using part_message = msg<wire::CollectivePart>;

// How often the actor looks which peers are missing, in a deadline.
constexpr int call_looks = 8;

void watch(communicator_pointer self);

// ---- to the peers ----

void send_to(communicator_pointer self, uint32_t rank, const part_message& message) {
  auto& state = self->state;
  if (state.peers.empty()) {
    state.unsent.emplace_back(rank, message);
    return;
  }
  self->send(caf::actor_cast<communicator_actor>(state.peers[rank]), message);
}

template <class Body>
void for_peers(const communicator_state& state, const Body& body) {
  for (uint32_t i = 1; i < state.config.size; ++i)
    body((state.config.rank + i) % state.config.size);
}

// Makes a part a message, and sends it where it belongs.
auto sender(communicator_pointer self, uint64_t call, const collective_meaning& meaning) {
  return [self, call, &meaning](uint32_t peer, collective_part part) {
    part.call = call;
    part.rank = self->state.config.rank;
    auto message = make_collective_part(meaning, part);
    if (peer != everybody) return send_to(self, peer, message);
    for_peers(self->state, [&](uint32_t rank) { send_to(self, rank, message); });
  };
}

void tell_all(communicator_pointer self, const communicator_state::breakdown& broken) {
  auto& state = self->state;
  auto message = make_collective_failed({broken.call, state.config.rank, broken.reason});
  for (const auto& peer : state.peers)
    if (peer) self->send(caf::actor_cast<communicator_actor>(peer), message);
}

// ---- trouble ----

std::map<uint64_t, communicator_state::open_call>::iterator
end_call(communicator_pointer self,
         std::map<uint64_t, communicator_state::open_call>::iterator one) {
  auto& state = self->state;
  if (state.config.arrays) state.config.arrays->forget(state.id, one->first);
  return state.open.erase(one);
}

// Everything from a call on fails, if it has not failed already. The peers are told first: a caller
// that is answered may leave at once, and would be named to them instead.
void break_down(communicator_pointer self, uint64_t call, const error& reason,
                bool is_news = true) {
  auto& state = self->state;
  if (state.broken && state.broken->call <= call) return;
  state.broken = {call, reason};
  if (is_news) tell_all(self, *state.broken);
  for (auto one = state.open.lower_bound(call); one != state.open.end();) {
    one->second.answer.deliver(to_caf(reason));
    one = end_call(self, one);
  }
  state.early.erase(state.early.lower_bound(call), state.early.end());
  std::erase_if(state.unsent,
                [&](const auto& one) { return one.second.reader().getCall() >= call; });
  for (auto& onlooker : std::exchange(state.onlookers, {}))
    onlooker.deliver(group_broken{reason});
}

caf::result<group_broken> on_await(communicator_pointer self) {
  auto& state = self->state;
  if (state.broken) return group_broken{state.broken->reason};
  return state.onlookers.emplace_back(self->make_response_promise<group_broken>());
}

uint64_t first_open(const communicator_state& state) {
  return state.open.empty() ? state.calls : state.open.begin()->first;
}

void on_failed(communicator_pointer self, wire::CollectiveFailed::Reader message) {
  auto reported = read_collective_failed(message);
  if (reported.reason.code == errc::none) return;
  break_down(self, reported.call, reported.reason, false);
}

void on_down(communicator_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto gone = std::ranges::find_if(state.peers,
                                   [&](const auto& peer) { return peer && down.source == peer; });
  if (gone == state.peers.end()) return;
  // A peer that leaves on purpose has said so, behind its last part.
  if (!down.reason || down.reason == caf::exit_reason::user_shutdown) return;
  auto rank = static_cast<uint32_t>(gone - state.peers.begin());
  error reason{errc::unavailable,
               fmt::format("{} is gone: {}", state.name_of(rank), from_caf(down.reason).message)};
  auto first = std::ranges::find_if(
    state.open, [&](const auto& one) { return one.second.transfer.needs(rank); });
  state.gone.emplace(rank, reason);
  break_down(self,
             first == state.open.end() ? std::max(state.calls, state.heard[rank]) : first->first,
             reason);
}

// This actor leaves: no peer is to wait for calls that it will not make, or not finish.
void on_exit(communicator_pointer self, caf::exit_msg& exit) {
  auto& state = self->state;
  break_down(
    self, first_open(state),
    {errc::unavailable, fmt::format("{} has left the group", state.name_of(state.config.rank))});
  self->quit(std::move(exit.reason));
}

// A peer that is gone may have done its part before.
void check_gone(communicator_pointer self, uint64_t call) {
  auto& state = self->state;
  auto one = state.open.find(call);
  for (const auto& [rank, reason] : state.gone)
    if (one != state.open.end() && one->second.transfer.needs(rank))
      return break_down(self, call, reason);
}

// ---- missing peers ----

// Peers that are not known to have made a call; if all have, the peers that it waits for.
std::vector<std::string> missing(const communicator_state& state, uint64_t call,
                                 const collective_transfer& transfer) {
  std::vector<std::string> silent;
  std::vector<std::string> needed;
  for (uint32_t rank = 0; rank < state.config.size; ++rank) {
    if (rank == state.config.rank) continue;
    if (state.heard[rank] <= call) silent.push_back(state.name_of(rank));
    if (transfer.needs(rank)) needed.push_back(state.name_of(rank));
  }
  return silent.empty() ? needed : silent;
}

void plan_watch(communicator_pointer self) {
  auto& state = self->state;
  if (state.open.empty()) return;
  auto shortest = job_time::max();
  for (const auto& [call, one] : state.open)
    shortest = std::min(shortest, one.timeout);
  auto pause = std::max<job_time>(shortest / call_looks, std::chrono::milliseconds{1});
  auto due = state.config.world->now() + pause;
  if (state.looks.wants_tick(due)) self->delayed_send(self, pause, watch_tick{});
}

// A communicator that has waited for long says that it has made the call, also to peers that it
// says nothing otherwise; so all know which have not.
void say_so(communicator_pointer self, uint64_t call, communicator_state::open_call& waiting) {
  if (std::exchange(waiting.has_said_so, true)) return;
  sender(self, call, waiting.transfer.meaning())(everybody, {.stage = collective_stage::called});
}

void watch(communicator_pointer self) {
  auto& state = self->state;
  auto now = state.config.world->now();
  if (!state.looks.takes_tick(now)) return;
  for (auto& [call, waiting] : state.open) {
    auto waited = now - waiting.since;
    if (waited >= waiting.timeout) {
      const auto& meaning = waiting.transfer.meaning();
      break_down(self, call,
                 {errc::deadline_exceeded,
                  fmt::format("{} waited {:.1f} s in {} for {}", state.name_of(state.config.rank),
                              seconds(waited), describe(meaning, meaning),
                              fmt::join(missing(state, call, waiting.transfer), ", "))});
      break;
    }
    if (waited >= waiting.timeout / 2) say_so(self, call, waiting);
  }
  plan_watch(self);
}

// ---- calls, and parts ----

// Says where the results of peers are to lie.
void expect_results(communicator_pointer self, uint64_t call, collective_transfer& transfer) {
  const auto& arrays = self->state.config.arrays;
  if (!arrays) return;
  transfer.for_awaited_results([&](collective_part_key part, array_place place) {
    part.call = call;
    arrays->expect(self->id(), part, std::move(place));
  });
}

// Whether no other message with the same result is read to where it belongs.
bool is_to_be_used(communicator_pointer self, const collective_part& part) {
  const auto& arrays = self->state.config.arrays;
  if (!arrays || part.stage != collective_stage::result || part.values.empty()) return true;
  return arrays->accept(self->id(), {part.call, part.rank, part.strand, part.begin},
                        part.values.front().data());
}

void settle_if_done(communicator_pointer self,
                    std::map<uint64_t, communicator_state::open_call>::iterator one) {
  if (!one->second.transfer.is_done()) return;
  one->second.answer.deliver(collective_result{one->second.transfer.result()});
  end_call(self, one);
}

// Takes a peer's part of a call that is under way here.
void take(communicator_pointer self, const part_message& message) {
  auto& state = self->state;
  auto body = message.reader();
  auto one = state.open.find(body.getCall());
  if (one == state.open.end()) return; // over, or broken
  auto& transfer = one->second.transfer;
  if (!means(body.getMeaning(), transfer.meaning()))
    return break_down(self, body.getCall(),
                      disagreement(state.name_of(body.getRank()), read_meaning(body.getMeaning()),
                                   state.name_of(state.config.rank), transfer.meaning()));
  if (body.getStage() == wire::CollectiveStage::CALLED) return;
  auto part = read_collective_part(message);
  auto send = sender(self, part.call, transfer.meaning());
  auto rank = part.rank;
  if (!is_to_be_used(self, part)) return;
  if (auto taken = transfer.take(std::move(part), send); !taken)
    return break_down(
      self, body.getCall(),
      {taken.error().code, fmt::format("{} has sent {} {}", state.name_of(rank),
                                       state.name_of(state.config.rank), taken.error().message)});
  settle_if_done(self, one);
}

void on_part(communicator_pointer self, const part_message& message) {
  auto& state = self->state;
  auto body = message.reader();
  auto rank = body.getRank();
  if (rank >= state.config.size || rank == state.config.rank) return; // no peer's
  auto call = body.getCall();
  if (state.broken && call >= state.broken->call) return;
  if (call >= state.calls + early_calls_max)
    return break_down(
      self, state.calls,
      {errc::limit_exceeded, fmt::format("{} is {} calls ahead of {}", state.name_of(rank),
                                         call - state.calls, state.name_of(state.config.rank))});
  state.heard[rank] = std::max(state.heard[rank], call + 1);
  if (call >= state.calls)
    state.early[call].push_back(message);
  else
    take(self, message);
}

void begin(communicator_pointer self, uint64_t call, communicator_state::open_call opened) {
  auto& state = self->state;
  auto one = state.open.emplace(call, std::move(opened)).first;
  auto& transfer = one->second.transfer;
  expect_results(self, call, transfer);
  transfer.begin(sender(self, call, transfer.meaning()));
  settle_if_done(self, one);
  if (auto early = state.early.extract(call))
    for (const auto& message : early.mapped())
      take(self, message);
  check_gone(self, call);
  plan_watch(self);
}

caf::result<collective_result> on_call(communicator_pointer self, const collective_call& request) {
  auto& state = self->state;
  auto call = state.calls++;
  if (state.broken && call >= state.broken->call) return to_caf(state.broken->reason);
  auto meaning = meaning_of(request, state.place());
  if (!meaning) {
    auto reason = meaning.error();
    reason.message = fmt::format("{}: {}", state.name_of(state.config.rank), reason.message);
    break_down(self, call, reason);
    return to_caf(reason);
  }
  auto contributions = mapped(request.contributions, &tensor::contiguous);
  auto answer = self->make_response_promise<collective_result>();
  auto timeout = request.timeout > job_time{0} ? request.timeout : state.config.deadline;
  begin(
    self, call,
    {.transfer = {state.place(), std::move(*meaning), std::move(contributions), request.in_place},
     .answer = answer,
     .since = state.config.world->now(),
     .timeout = timeout});
  return answer;
}

void on_meet(communicator_pointer self, std::vector<caf::strong_actor_ptr> peers) {
  auto& state = self->state;
  if (!state.peers.empty() || peers.size() != state.config.size) return;
  state.peers = std::move(peers);
  for (const auto& peer : state.peers)
    if (peer) self->monitor(caf::actor_cast<caf::actor_addr>(peer));
  if (state.broken) return tell_all(self, *state.broken);
  for (const auto& [rank, message] : std::exchange(state.unsent, {}))
    send_to(self, rank, message);
}

} // namespace

communicator_state::~communicator_state() {
  if (config.arrays) config.arrays->forget(id);
}

std::string communicator_state::name_of(uint32_t rank) const {
  return rank < config.names.size() ? config.names[rank] : fmt::format("rank {}", rank);
}

communicator_actor::behavior_type communicator(communicator_pointer self,
                                               communicator_config config) {
  auto& state = self->state;
  state.config = std::move(config);
  state.id = self->id();
  state.heard.resize(state.config.size);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](caf::exit_msg& exit) { on_exit(self, exit); });
  std::vector<caf::strong_actor_ptr> peers;
  for (const auto& peer : state.config.peers)
    peers.push_back(caf::actor_cast<caf::strong_actor_ptr>(peer));
  state.config.peers.clear();
  if (state.config.size == 1) peers.assign(1, nullptr);
  on_meet(self, std::move(peers));
  return {
    [self](const collective_call& call) { return on_call(self, call); },
    [self](const meet_peers& met) { on_meet(self, met.peers); },
    [self](const part_message& part) { on_part(self, part); },
    [self](const msg<wire::CollectiveFailed>& message) { on_failed(self, message.reader()); },
    [self](const group_broken& broken) {
      break_down(self, first_open(self->state), broken.reason);
    },
    [self](await_breakdown) { return on_await(self); },
    [self](watch_tick) { watch(self); },
  };
}

} // namespace troupe
