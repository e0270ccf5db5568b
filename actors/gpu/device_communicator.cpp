// SPDX-License-Identifier: Apache-2.0
// Calls that processes agree on by messages, and that devices make in order.
#include "actors/gpu/device_communicator.hpp"

#include "actors/recording/seconds.hpp"
#include "kernels/tensor/crc32c.hpp"
#include "messages/errors/failure.hpp"
#include "messages/tensor_message.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using device_communicator_pointer = observed_pointer<communicator_actor, device_communicator_state>;
using meeting_phase = device_communicator_state::phase;

// How often the devices are looked at within a deadline.
constexpr int meeting_looks = 8;

// Time that devices have to end what they have begun when a process is gone: it may have done its
// part before.
constexpr auto last_calls_time = std::chrono::milliseconds{500};

// ---- trouble ----

// All calls fail, here and at all peers, and no device waits for another one any more.
void break_down(device_communicator_pointer self, const error& reason) {
  auto& state = self->state;
  if (state.broken) return;
  state.broken = reason;
  if (state.participant) state.participant->abort();
  for (auto& [number, batch] : std::exchange(state.open, {}))
    for (auto& answer : batch.answers)
      answer.deliver(to_caf(reason));
  self->send(state.config.host, group_broken{reason});
}

// The other communicator's group is broken. Calls that the devices have begun were agreed on
// before.
void on_broken(device_communicator_pointer self, const group_broken& breakdown) {
  auto is_begun = [](const auto& entry) { return entry.second.at == meeting_phase::on_device; };
  if (std::ranges::none_of(self->state.open, is_begun)) return break_down(self, breakdown.reason);
  self->delayed_send(self, last_calls_time, breakdown);
}

error with_process(const device_communicator_state& state, error reason) {
  reason.message = fmt::format("{}: {}", state.config.process, reason.message);
  return reason;
}

// ---- on the device ----

shape result_extents(const collective_call& call, uint32_t size) {
  auto dims = call.contributions.front().extents().dims();
  if (call.kind == collective_kind::reduce_scatter) dims[0] /= size;
  if (call.kind == collective_kind::all_gather) dims[0] *= size;
  return shape{dims};
}

/// A call as the device makes it, and where the caller's result is to lie.
struct call_on_device {
  device_collective collective;
  tensor result;

  [[nodiscard]] bool is_wanted_there() const { return result.data() == collective.output.data(); }
};

// All that the result needs is there before others are kept waiting. It lies where the
// contributions lay.
call_on_device bring(const collective_call& call, uint32_t size, compute_stream& on) {
  std::span contributions{call.contributions};
  if (call.kind == collective_kind::broadcast) contributions = contributions.first(1);
  std::vector<tensor> there;
  for (const auto& contribution : contributions)
    there.push_back(value_or_throw(on.to_device(contribution)));
  auto input = there.size() == 1 ? there.front() : value_or_throw(on.sum(there));
  auto output = value_or_throw(on.make(input.type(), result_extents(call, size)));
  auto is_wanted_there = there.front().data() == call.contributions.front().data();
  auto result
    = is_wanted_there ? output : value_or_throw(on.make_on_host(output.type(), output.extents()));
  return {{call.kind, input, output, call.root}, result};
}

// Runs on a computing thread. @returns The results, by call.
std::vector<tensor> ask_device(collective_participant& participant,
                               std::span<const collective_call> calls, uint32_t size,
                               job_time timeout, compute_stream& on) {
  std::vector<call_on_device> brought;
  std::vector<device_collective> collectives;
  for (const auto& call : calls)
    collectives.push_back(brought.emplace_back(bring(call, size, on)).collective);
  value_or_throw(participant.ask(collectives, on));
  value_or_throw(settle(participant, timeout));
  std::vector<tensor> results;
  for (const auto& call : brought) {
    if (!call.is_wanted_there())
      value_or_throw(on.copy_to_host(call.collective.output, call.result));
    results.push_back(call.result);
  }
  return results;
}

void on_answer(device_communicator_pointer self, uint64_t number, const device_work_done& done,
               std::span<const tensor> values) {
  auto& state = self->state;
  if (done.thrown) {
    try {
      std::rethrow_exception(done.thrown);
    } catch (const failure& failed) {
      return break_down(self, with_process(state, failed.reason()));
    } catch (const std::exception& failed) {
      return break_down(self, with_process(state, {errc::resource, failed.what()}));
    }
  }
  auto batch = state.open.extract(number);
  for (size_t i = 0; batch && i < values.size(); ++i)
    batch.mapped().answers[i].deliver(collective_result{values[i]});
}

// A stream that waits for others frees itself when the group is given up, which is before the gpu
// gives up.
device_work work_for(std::string purpose, job_time timeout) {
  return {.purpose = std::move(purpose), .timeout = 2 * timeout};
}

template <class Then>
void ask_gpu(device_communicator_pointer self, device_work work, Then then) {
  self
    ->request(self->state.config.gpu, caf::infinite, std::move(work)) // the gpu keeps a deadline
    .then(then, [self](const caf::error& reason) {
      if (reason != caf::sec::request_receiver_down) // else its end says more, which is told, too
        break_down(self, with_process(self->state, from_caf(reason)));
    });
}

void launch(device_communicator_pointer self, uint64_t number) {
  auto& state = self->state;
  auto& batch = state.open.at(number);
  batch.at = meeting_phase::on_device;
  batch.since = state.config.world->now();
  auto values = std::make_shared<std::vector<tensor>>();
  auto work = work_for(agreement_on(*batch.calls), batch.timeout);
  work.launch = [participant = state.participant, calls = batch.calls, size = state.config.size,
                 timeout = batch.timeout, values](compute_stream& on) {
    *values = ask_device(*participant, *calls, size, timeout, on);
  };
  ask_gpu(self, std::move(work), [self, number, values](const device_work_done& done) {
    on_answer(self, number, done, *values);
  });
}

// Devices are asked in the order of calls, whichever was agreed on first.
void launch_agreed(device_communicator_pointer self) {
  auto& state = self->state;
  if (!state.is_ready || state.broken) return;
  for (auto& [number, batch] : state.open) {
    if (batch.at < meeting_phase::agreed) return;
    if (batch.at == meeting_phase::agreed) launch(self, number);
  }
}

// ---- the watch ----

void plan_watch(device_communicator_pointer self) {
  auto& state = self->state;
  auto is_joining = state.participant && !state.is_ready;
  if (state.broken || (!is_joining && state.open.empty())) return;
  auto shortest = state.config.deadline;
  for (const auto& [number, batch] : state.open)
    shortest = std::min(shortest, batch.timeout);
  // Devices come together in less than any deadline: that is looked for more often.
  auto pause = is_joining
                 ? std::min<job_time>(shortest / meeting_looks, std::chrono::milliseconds{10})
                 : shortest / meeting_looks;
  pause = std::max<job_time>(pause, std::chrono::milliseconds{1});
  auto due = state.config.world->now() + pause;
  if (state.looks.wants_tick(due)) self->delayed_send(self, pause, watch_tick{});
}

// The error of a call, or of joining, that takes longer than it may.
std::optional<error> overdue(const device_communicator_state& state) {
  auto now = state.config.world->now();
  if (state.participant && !state.is_ready && now - state.began >= state.config.deadline)
    return error{errc::deadline_exceeded,
                 fmt::format("the {} devices of the group have not come together in {:.1f} s",
                             state.config.size, seconds(state.config.deadline))};
  for (const auto& [number, batch] : state.open) {
    if (now - batch.since < batch.timeout) continue;
    if (batch.at == meeting_phase::on_device)
      return error{errc::deadline_exceeded,
                   fmt::format("{} is not done on {} in {:.1f} s: a device has not come to it",
                               agreement_on(*batch.calls), state.config.device->name(),
                               seconds(batch.timeout))};
    if (batch.at == meeting_phase::collecting)
      return error{errc::deadline_exceeded,
                   fmt::format("{}: {} calls that are to be made with it have not come in {:.1f} s",
                               agreement_on(*batch.calls), state.awaited, seconds(batch.timeout))};
  }
  return std::nullopt;
}

void look(device_communicator_pointer self) {
  auto& state = self->state;
  if (state.broken) return;
  if (state.participant) {
    auto ready = state.participant->is_ready();
    if (!ready) return break_down(self, with_process(state, ready.error()));
    state.is_ready = state.is_ready || *ready;
  }
  if (auto late = overdue(state)) return break_down(self, with_process(state, *late));
  launch_agreed(self);
  plan_watch(self);
}

// ---- coming together ----

void join(device_communicator_pointer self, const collective_id& id) {
  auto& state = self->state;
  state.began = state.config.world->now();
  auto joined = std::make_shared<std::unique_ptr<collective_participant>>();
  auto work = work_for("joining the other devices", state.config.deadline);
  work.launch = [library = state.config.library, device = state.config.device, id,
                 rank = state.config.rank, size = state.config.size, joined](compute_stream&) {
    *joined = value_or_throw(library->join(id, rank, size, *device));
  };
  ask_gpu(self, std::move(work), [self, joined](const device_work_done& done) {
    if (done.thrown) return on_answer(self, 0, done, {});
    self->state.participant = std::move(*joined);
    if (self->state.broken) return self->state.participant->abort();
    look(self);
  });
}

// The id is the first thing that the processes tell each other.
void spread_id(device_communicator_pointer self) {
  auto& state = self->state;
  auto bytes = state.config.id.value_or(collective_id{});
  tensor words{dtype::i64, {static_cast<int64_t>(bytes.size() / sizeof(int64_t))}};
  std::memcpy(words.mutable_data(), bytes.data(), bytes.size());
  collective_call spread{.kind = collective_kind::broadcast,
                         .name = fmt::format("the id of a group of {} devices, for {}",
                                             state.config.size, state.config.library->name()),
                         .contributions = {words},
                         .timeout = state.config.deadline};
  self
    ->request(state.config.host, caf::infinite, std::move(spread)) // it keeps a deadline
    .then(
      [self](const collective_result& spread) {
        collective_id id;
        auto words = spread.value.contiguous();
        std::memcpy(id.data(), words.data(), id.size());
        join(self, id);
      },
      [self](const caf::error& reason) { break_down(self, from_caf(reason)); });
}

// ---- calls ----

device_communicator_state::promise collect(device_communicator_pointer self,
                                           const collective_call& call) {
  auto& state = self->state;
  if (state.open.empty() || state.open.rbegin()->second.at != meeting_phase::collecting)
    state.open.emplace(
      state.batches++,
      device_communicator_state::open_batch{
        .calls = std::make_shared<std::vector<collective_call>>(),
        .answers = {},
        .since = state.config.world->now(),
        .timeout = call.timeout > job_time{0} ? call.timeout : state.config.deadline});
  auto& batch = state.open.rbegin()->second;
  batch.calls->push_back(call);
  return batch.answers.emplace_back(self->make_response_promise<collective_result>());
}

// Asks the others to agree once all calls are there that are to be made as one.
void agree_if_collected(device_communicator_pointer self) {
  auto& state = self->state;
  if (state.open.empty() || state.open.rbegin()->second.at != meeting_phase::collecting) return;
  if (state.awaited > 0) return plan_watch(self);
  auto& [number, batch] = *state.open.rbegin();
  batch.at = meeting_phase::agreeing;
  collective_call agreeing{.name = agreement_on(*batch.calls), .timeout = batch.timeout};
  self
    ->request(state.config.host, caf::infinite, std::move(agreeing)) // it keeps a deadline
    .then(
      [self, number = number](const collective_result&) {
        auto agreed = self->state.open.find(number);
        if (agreed == self->state.open.end()) return;
        agreed->second.at = meeting_phase::agreed;
        look(self);
      },
      [self](const caf::error& reason) { break_down(self, from_caf(reason)); });
}

caf::result<collective_result> on_call(device_communicator_pointer self,
                                       const collective_call& call) {
  auto& state = self->state;
  state.awaited = state.awaited > 0 ? state.awaited - 1 : call.followers;
  if (!is_for_devices(call, state.config.size)) {
    agree_if_collected(self); // it may have been the last of a batch
    return self->delegate(state.config.host, call);
  }
  if (state.broken) return to_caf(*state.broken);
  auto answer = collect(self, call);
  agree_if_collected(self);
  return answer;
}

// Peers may still take what this device has sent: so its part is given up only where a call of its
// own would wait for ever, and ends by itself otherwise.
void on_exit(device_communicator_pointer self, const caf::exit_msg& exit) {
  auto& state = self->state;
  if (!state.open.empty())
    break_down(self, {errc::unavailable, state.config.process + " has left the group"});
  state.participant.reset();
  self->send_exit(state.config.host, exit.reason); // and its end is this one's
}

// Without its device it stays, to say why; without the other communicator it has nothing to say.
void on_down(device_communicator_pointer self, const caf::down_msg& down) {
  const auto& gpu = self->state.config.gpu;
  if (down.source == gpu.address())
    return break_down(self, with_process(self->state, from_caf(down.reason)));
  self->send_exit(gpu, caf::exit_reason::user_shutdown);
  self->quit(down.reason);
}

} // namespace

bool is_for_devices(const collective_call& call, uint32_t size) {
  if (!call.on_devices || call.contributions.empty()) return false;
  const auto& first = call.contributions.front();
  auto is_alike = std::ranges::all_of(call.contributions, [&](const tensor& other) {
    return other.type() == first.type() && other.extents() == first.extents();
  });
  if (!is_alike || first.element_count() == 0 || call.root >= size) return false;
  auto is_added_there = first.type() == dtype::f32 || first.type() == dtype::f64;
  if (call.contributions.size() > 1 && !is_added_there) return false;
  switch (call.kind) {
  case collective_kind::all_reduce:
  case collective_kind::broadcast:
    return true;
  case collective_kind::reduce_scatter:
    return first.rank() > 0 && first.extents()[0] % size == 0;
  case collective_kind::all_gather:
    return first.rank() > 0 && call.contributions.size() == 1;
  default:
    return false;
  }
}

std::string agreement_on(std::span<const collective_call> calls) {
  std::string all;
  auto name = [](const collective_call& call) {
    const auto& first = call.contributions.front();
    return fmt::format("{} on devices of '{}', {} x {} {}, root {}", name_of(call.kind), call.name,
                       call.contributions.size(), to_string(first.type()),
                       to_string(first.extents()), call.root);
  };
  if (calls.size() == 1) return name(calls.front());
  for (const auto& call : calls)
    all += name(call) + ";";
  return fmt::format("{} and {} more ({:08x})", name(calls.front()), calls.size() - 1,
                     cpu::crc32c(std::as_bytes(std::span{all})));
}

communicator_actor::behavior_type device_communicator(device_communicator_pointer self,
                                                      device_communicator_config config) {
  self->state.config = std::move(config);
  const auto& host = self->state.config.host;
  self->monitor(host);
  self->monitor(self->state.config.gpu);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](const caf::exit_msg& exit) { on_exit(self, exit); });
  spread_id(self);
  self
    ->request(host, caf::infinite, await_breakdown{}) // as long as the group lives
    .then([self](const group_broken& breakdown) { on_broken(self, breakdown); },
          [](const caf::error&) {}); // it is gone, and so is this
  return {
    [self](const collective_call& call) { return on_call(self, call); },
    [self](const meet_peers& met) { self->send(self->state.config.host, met); },
    [self](const msg<wire::CollectivePart>& part) { self->send(self->state.config.host, part); },
    [self](const msg<wire::CollectiveFailed>& failed) {
      self->send(self->state.config.host, failed);
    },
    [self](const group_broken& breakdown) { break_down(self, breakdown.reason); },
    [self](await_breakdown ask) { return self->delegate(self->state.config.host, ask); },
    [self](watch_tick) {
      if (self->state.looks.takes_tick(self->state.config.world->now())) look(self);
    },
  };
}

} // namespace troupe
