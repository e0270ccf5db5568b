// SPDX-License-Identifier: Apache-2.0
// The life of a question to a group, from the first message to the last answer that counts.
#include "actors/groups/gatherer.hpp"

#include "actors/world/world.hpp"
#include "messages/errors/users_code.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

caf::result<group_outcome> gatherer_state::begin(group_call request) {
  auto number = ++count;
  auto now = world->now();
  auto wanted = request.options.first == 0 ? request.members.size() : request.options.first;
  auto until = now + request.options.limit;
  gather_ledger ledger{request.members.size(), wanted, request.options.awaits_late, now};
  auto& call = open.emplace(number, open_call{std::move(ledger), std::move(request), until, {}})
                 .first->second;
  auto is_stream = call.request.stream != 0;
  if (is_stream)
    streams[call.request.stream]; // from now on it can be read
  else
    call.answer = self->make_response_promise<group_outcome>();
  auto answer = call.answer;
  plan_look(until);
  auto asked = call.request.members; // the call may be over before all are asked
  for (uint32_t position = 0; position < asked.size(); ++position) {
    if (!is_wanted(number, position)) continue;
    const auto& lost = members[asked[position]].lost;
    if (lost)
      fail(number, position, to_caf(*lost));
    else
      open.at(number).request.ask(*this, number, position);
  }
  if (is_stream) return group_outcome{};
  return answer;
}

caf::result<group_arrival> gatherer_state::next(uint64_t stream) {
  auto found = streams.find(stream);
  if (found == streams.end()) return group_arrival{};
  auto& [unread, reader, is_over] = found->second;
  if (!unread.empty()) {
    auto first = std::move(unread.front());
    unread.pop_front();
    return first;
  }
  if (is_over) return group_arrival{};
  if (reader)
    return to_caf(
      {errc::failed_precondition, "another reader waits for this stream's next answer"});
  reader = self->make_response_promise<group_arrival>();
  return *reader;
}

bool gatherer_state::is_wanted(uint64_t call, uint32_t position) const {
  auto found = open.find(call);
  return found != open.end()
         && found->second.ledger.members()[position].state == member_status::asked;
}

void gatherer_state::answer(uint64_t call, uint32_t position) {
  auto found = open.find(call);
  if (found != open.end() && found->second.ledger.answer(position, world->now()))
    settled(call, position);
}

void gatherer_state::fail(uint64_t call, uint32_t position, const caf::error& reason) {
  auto found = open.find(call);
  if (found == open.end()) return;
  auto why = from_caf(reason);
  auto status = why.code == errc::unavailable ? member_status::lost : member_status::failed;
  if (found->second.ledger.fail(position, status, std::move(why), world->now()))
    settled(call, position);
}

void gatherer_state::settled(uint64_t call, uint32_t position) {
  const auto& question = open.at(call);
  const auto& member = question.ledger.members()[position];
  auto stream = streams.find(question.request.stream);
  if (stream != streams.end()) report(stream->second, {position, member});
  if (question.ledger.is_over()) end(call);
}

void gatherer_state::end(uint64_t call) {
  auto node = open.extract(call);
  auto& over = node.mapped();
  const auto& request = over.request;
  for (uint32_t position = 0; position < request.members.size(); ++position) {
    auto is_open = over.ledger.members()[position].state == member_status::asked;
    if (!is_open || !request.options.cancel) continue;
    const auto& late = members[request.members[position]].actor;
    call_users_code("cancel of a group", [&] { request.options.cancel(late); });
  }
  over.ledger.end(world->now());
  auto stream = streams.find(request.stream);
  if (request.stream == 0) {
    over.answer.deliver(group_outcome{over.ledger.members()});
  } else if (stream != streams.end()) {
    stream->second.is_over = true;
    if (stream->second.reader) report(stream->second, {});
  }
}

void gatherer_state::report(stream& to, group_arrival arrival) {
  if (to.reader)
    std::exchange(to.reader, std::nullopt)->deliver(std::move(arrival));
  else
    to.unread.push_back(std::move(arrival));
}

void gatherer_state::lose(const caf::actor_addr& gone, const caf::error& reason) {
  auto why = reason ? from_caf(reason) : error{errc::unavailable, "has ended"};
  // A member that died of an exception of its own is lost, too.
  why.code = errc::unavailable;
  std::vector<std::pair<uint64_t, uint32_t>> waiting;
  for (uint32_t number = 0; number < members.size(); ++number) {
    if (caf::actor_cast<caf::actor_addr>(members[number].actor) != gone) continue;
    members[number].lost = why;
    for (const auto& [call, question] : open) {
      const auto& asked = question.request.members;
      auto at = std::ranges::find(asked, number);
      if (at != asked.end()) waiting.emplace_back(call, static_cast<uint32_t>(at - asked.begin()));
    }
  }
  for (auto [call, position] : waiting)
    fail(call, position, to_caf(why));
}

void gatherer_state::look(job_time planned) {
  looks.erase(planned);
  auto now = world->now();
  std::vector<uint64_t> late;
  for (const auto& [number, call] : open)
    if (call.until <= now) late.push_back(number);
  for (auto number : late)
    end(number);
  auto is_sooner = [](const auto& a, const auto& b) { return a.second.until < b.second.until; };
  auto soonest = std::ranges::min_element(open, is_sooner);
  if (soonest != open.end()) plan_look(soonest->second.until);
}

void gatherer_state::plan_look(job_time until) {
  if (!looks.empty() && *looks.begin() <= until) return; // that one will plan this one
  looks.insert(until);
  self->delayed_send(self, until - world->now(), look_at_limits{until});
}

void gatherer_state::end_all(const error& why) {
  for (auto& [number, call] : std::exchange(open, {}))
    if (call.request.stream == 0) call.answer.deliver(to_caf(why));
  for (auto& [number, stream] : std::exchange(streams, {}))
    if (stream.reader) stream.reader->deliver(to_caf(why));
}

gatherer_actor::behavior_type gatherer(gatherer_pointer self, troupe::world* world,
                                       const std::vector<caf::strong_actor_ptr>& members) {
  self->state.self = self;
  self->state.world = world;
  for (const auto& actor : members) {
    self->state.members.push_back({actor, {}});
    self->monitor(actor);
  }
  self->set_down_handler(
    [self](const caf::down_msg& down) { self->state.lose(down.source, down.reason); });
  self->set_exit_handler([self](const caf::exit_msg& exit) {
    self->state.end_all({errc::cancelled, "the group is asked no more"});
    self->quit(exit.reason);
  });
  return {
    [self](group_call request) { return self->state.begin(std::move(request)); },
    [self](const next_arrival& request) { return self->state.next(request.stream); },
    [self](const end_stream& message) { self->state.streams.erase(message.stream); },
    [self](look_at_limits message) { self->state.look(message.planned); },
  };
}

} // namespace troupe
