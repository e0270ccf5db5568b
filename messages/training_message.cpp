// SPDX-License-Identifier: Apache-2.0
// Each message of synchronous training, field by field.
#include "messages/training_message.hpp"

#include "messages/errors/printable.hpp"
#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/nanoseconds.hpp"
#include "messages/tensor_message.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace troupe {
namespace {

using std::chrono::nanoseconds;

void write_origin(wire::Origin::Builder target, const origin& from) {
  target.setReplica(from.replica);
  target.setExamples(from.examples);
  target.setLocalStep(from.local_step);
  target.setIteration(from.iteration);
  target.setComputeNanoseconds(to_count(from.compute));
  target.setWaitedNanoseconds(to_count(from.waited));
  target.setLoss(from.loss);
}

void write_arrivals(capnp::List<wire::Arrival>::Builder target, std::span<const arrival> arrivals) {
  for (size_t i = 0; i < arrivals.size(); ++i) {
    auto element = target[static_cast<capnp::uint>(i)];
    write_origin(element.initOrigin(), arrivals[i].from);
    element.setArrivedNanoseconds(arrivals[i].arrived.count());
    element.setAccumulatorStep(arrivals[i].accumulator_step);
  }
}

/// Name and settings of a `Choice`, or of an optimizer, which has them too.
template <class Target>
void write_choice(Target target, const std::string& name,
                  const std::vector<std::pair<std::string, double>>& settings) {
  target.setName(name);
  auto list = target.initSettings(static_cast<capnp::uint>(settings.size()));
  for (capnp::uint i = 0; i < list.size(); ++i) {
    list[i].setName(settings[i].first);
    list[i].setValue(settings[i].second);
  }
}

std::vector<std::pair<std::string, double>> read_settings(capnp::List<wire::Setting>::Reader from) {
  std::vector<std::pair<std::string, double>> settings;
  for (auto setting : from)
    settings.emplace_back(setting.getName(), setting.getValue());
  return settings;
}

/// Compares what `write_choice` writes. Without a copy: each update names its optimizer.
template <class Choice>
bool is_same_choice(const Choice& one, const Choice& other) {
  auto settings = one.getSettings();
  auto others = other.getSettings();
  if (one.getName() != other.getName() || settings.size() != others.size()) return false;
  for (capnp::uint i = 0; i < settings.size(); ++i)
    if (settings[i].getName() != others[i].getName()
        || settings[i].getValue() != others[i].getValue())
      return false;
  return true;
}

// The message refers to gradients where pushes hold them, and keeps those alive. It has them in
// their order.
void write_gradients(message_builder<wire::ApplyUpdate>& to,
                     std::span<const msg<wire::PushGradient>> pushes) {
  std::vector<msg<wire::PushGradient>> ordered{pushes.begin(), pushes.end()};
  std::ranges::stable_sort(ordered, {}, place_in_update);
  auto gradients = to.body.initGradients(static_cast<capnp::uint>(ordered.size()));
  capnp::uint index = 0;
  for (const auto& push : ordered)
    write_gradient(*to.storage, gradients[index++], push.reader().getGradient(), push.owner());
}

} // namespace

msg<wire::ReadVariable> make_read_variable(int32_t component, device computes_on) {
  message_builder<wire::ReadVariable> message;
  message.body.setComponent(component);
  message.body.setDeviceKind(static_cast<uint8_t>(computes_on.kind));
  message.body.setDeviceIndex(static_cast<uint16_t>(computes_on.index));
  return std::move(message).finish();
}

msg<wire::ChangeVariable> make_change_variable(uint8_t change, const optional_gradient& operand,
                                               int32_t component) {
  message_builder<wire::ChangeVariable> message;
  message.body.setComponent(component);
  message.body.setChange(static_cast<wire::Change>(change));
  write_gradient(*message.storage, message.body.initOperand(), operand);
  return std::move(message).finish();
}

msg<wire::ChangeVariable> numbered(const msg<wire::ChangeVariable>& change, const request_id& id) {
  auto body = change.reader();
  message_builder<wire::ChangeVariable> message;
  message.body.setComponent(body.getComponent());
  message.body.setChange(body.getChange());
  write_gradient(*message.storage, message.body.initOperand(), body.getOperand(), change.owner());
  write_request_id(message.body.initId(), id);
  return std::move(message).finish();
}

msg<wire::ApplyUpdate> numbered(const msg<wire::ApplyUpdate>& update, const request_id& id) {
  auto body = update.reader();
  message_builder<wire::ApplyUpdate> message;
  message.body.setStep(body.getStep());
  message.body.setDivisor(body.getDivisor());
  message.body.setHold(body.getHold());
  message.body.setMeasure(body.getMeasure());
  if (body.hasTaken()) message.body.setTaken(body.getTaken());
  message.body.setOneForEachDevice(body.getOneForEachDevice());
  if (body.hasOptimizer()) message.body.setOptimizer(body.getOptimizer());
  auto from = body.getGradients();
  auto gradients = message.body.initGradients(from.size());
  for (capnp::uint i = 0; i < from.size(); ++i)
    write_gradient(*message.storage, gradients[i], from[i], update.owner());
  write_request_id(message.body.initId(), id);
  return std::move(message).finish();
}

void write_request_id(wire::RequestId::Builder target, const request_id& id) {
  target.setClient(id.client);
  target.setNumber(id.number);
  target.setOldest(id.oldest);
}

request_id read_request_id(wire::RequestId::Reader from) {
  return {from.getClient(), from.getNumber(), from.getOldest()};
}

msg<wire::VariableSnapshot> make_variable_snapshot(uint64_t version, const tensor& value) {
  message_builder<wire::VariableSnapshot> message;
  message.body.setVersion(version);
  write_tensor(*message.storage, message.body.initValue(), value);
  return std::move(message).finish();
}

msg<wire::PullVariable> make_pull_variable(uint64_t known) {
  message_builder<wire::PullVariable> message;
  message.body.setKnown(known);
  return std::move(message).finish();
}

msg<wire::VariableChanges> make_variable_changes(const variable_changes& since) {
  message_builder<wire::VariableChanges> message;
  message.body.setVersion(since.version);
  message.body.setRevision(since.revision);
  write_gradient(*message.storage, message.body.initChange(), since.change);
  message.body.setByRows(since.by_rows);
  return std::move(message).finish();
}

msg<wire::PushGradient> make_push_gradient(const origin& from, const optional_gradient& gradient) {
  message_builder<wire::PushGradient> message;
  write_origin(message.body.initOrigin(), from);
  write_gradient(*message.storage, message.body.initGradient(), gradient);
  return std::move(message).finish();
}

msg<wire::PushReply> make_push_reply(verdict result, uint64_t accumulator_step,
                                     uint64_t next_step) {
  message_builder<wire::PushReply> message;
  message.body.setVerdict(static_cast<wire::Verdict>(result));
  message.body.setAccumulatorStep(accumulator_step);
  message.body.setNextStep(next_step);
  return std::move(message).finish();
}

msg<wire::TakeToken> make_take_token(uint32_t replica, uint64_t local_step, uint64_t not_before,
                                     uint64_t request) {
  message_builder<wire::TakeToken> message;
  message.body.setReplica(replica);
  message.body.setLocalStep(local_step);
  message.body.setNotBefore(not_before);
  message.body.setRequest(request);
  return std::move(message).finish();
}

msg<wire::Token> make_token(uint64_t step) {
  message_builder<wire::Token> message;
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::JoinJob> make_join_job(uint32_t replica) {
  message_builder<wire::JoinJob> message;
  message.body.setReplica(replica);
  return std::move(message).finish();
}

msg<wire::Farewell> make_farewell(uint32_t replica, const error& reason) {
  message_builder<wire::Farewell> message;
  message.body.setReplica(replica);
  write_error(message.body, reason);
  return std::move(message).finish();
}

msg<wire::TakeGradient> make_take_gradient(uint32_t required, bool hold, bool measure) {
  message_builder<wire::TakeGradient> message;
  message.body.setRequired(required);
  message.body.setHold(hold);
  message.body.setMeasure(measure);
  return std::move(message).finish();
}

msg<wire::TakenGradient> make_taken_gradient(uint64_t step, std::span<const arrival> accepted,
                                             std::span<const arrival> stale, bool amends) {
  message_builder<wire::TakenGradient> message;
  message.body.setAmends(amends);
  message.body.setStep(step);
  write_arrivals(message.body.initAccepted(static_cast<capnp::uint>(accepted.size())), accepted);
  write_arrivals(message.body.initStale(static_cast<capnp::uint>(stale.size())), stale);
  return std::move(message).finish();
}

std::string read_line(capnp::Text::Reader from) {
  return printable_line({from.begin(), from.size()});
}

error read_error(wire::Errc code, capnp::Text::Reader reason, capnp::Text::Reader throw_site) {
  return {read_errc(code), read_line(reason), read_line(throw_site)};
}

std::pair<uint32_t, uint64_t> place_in_update(const msg<wire::PushGradient>& push) {
  auto from = push.reader().getOrigin();
  return {from.getReplica(), from.getIteration()};
}

msg<wire::ApplyUpdate> make_apply_update(uint64_t step, uint32_t divisor,
                                         std::span<const msg<wire::PushGradient>> pushes, bool hold,
                                         bool measure, const msg<wire::TakenGradient>& taken) {
  message_builder<wire::ApplyUpdate> message;
  message.body.setHold(hold);
  message.body.setMeasure(measure);
  if (!taken.is_empty()) message.body.setTaken(taken.reader());
  message.body.setStep(step);
  message.body.setDivisor(divisor);
  write_gradients(message, pushes);
  return std::move(message).finish();
}

msg<wire::ApplyUpdate> make_apply_update_of(const msg<wire::UseOptimizer>& optimizer,
                                            uint32_t divisor,
                                            std::span<const msg<wire::PushGradient>> pushes,
                                            bool hold, bool one_for_each_device) {
  message_builder<wire::ApplyUpdate> message;
  message.body.setHold(hold);
  message.body.setDivisor(divisor);
  message.body.setOneForEachDevice(one_for_each_device);
  message.body.setOptimizer(optimizer.reader());
  write_gradients(message, pushes);
  return std::move(message).finish();
}

msg<wire::ReleaseUpdate> make_release_update(double scale) {
  message_builder<wire::ReleaseUpdate> message;
  message.body.setScale(scale);
  return std::move(message).finish();
}

msg<wire::UpdateApplied> make_update_applied(const applied_update& done) {
  message_builder<wire::UpdateApplied> message;
  message.body.setVersion(done.version);
  message.body.setStep(done.step);
  message.body.setAppliedNanoseconds(done.applied.count());
  message.body.setTookNanoseconds(to_count(done.took));
  message.body.setSquaredNorm(done.squared_norm);
  message.body.setMeanSquaredNorm(done.mean_squared_norm);
  if (done.squared_norms.empty()) return std::move(message).finish();
  auto each = message.body.initSquaredNorms(static_cast<uint32_t>(done.squared_norms.size()));
  for (uint32_t i = 0; i < each.size(); ++i)
    each.set(i, done.squared_norms[i]);
  return std::move(message).finish();
}

applied_update read_update_applied(wire::UpdateApplied::Reader from) {
  return {.version = from.getVersion(),
          .step = from.getStep(),
          .applied = nanoseconds(from.getAppliedNanoseconds()),
          .took = to_length(from.getTookNanoseconds()),
          .squared_norm = from.getSquaredNorm(),
          .mean_squared_norm = from.getMeanSquaredNorm(),
          .squared_norms = mapped(from.getSquaredNorms(), std::identity{})};
}

msg<wire::UseOptimizer> make_use_optimizer(const optimizer_settings& optimizer, bool ask) {
  message_builder<wire::UseOptimizer> message;
  message.body.setAsk(ask);
  write_choice(message.body, optimizer.name, optimizer.settings);
  const auto& [schedule, schedule_settings] = optimizer.schedule;
  if (!schedule.empty()) write_choice(message.body.initSchedule(), schedule, schedule_settings);
  const auto& [average, average_settings] = optimizer.average;
  if (!average.empty()) write_choice(message.body.initAverage(), average, average_settings);
  return std::move(message).finish();
}

msg<wire::ReadAverage> make_read_average(const std::string& name) {
  message_builder<wire::ReadAverage> message;
  message.body.setName(name);
  return std::move(message).finish();
}

msg<wire::OptimizerInUse> make_optimizer_in_use(uint64_t version, uint32_t slot_count) {
  message_builder<wire::OptimizerInUse> message;
  message.body.setVersion(version);
  message.body.setSlotCount(slot_count);
  return std::move(message).finish();
}

msg<wire::TakeAggregate> make_take_aggregate(uint32_t required) {
  message_builder<wire::TakeAggregate> message;
  message.body.setRequired(required);
  return std::move(message).finish();
}

msg<wire::AwaitAggregate> make_await_aggregate(uint64_t step) {
  message_builder<wire::AwaitAggregate> message;
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::Aggregate> make_aggregate(uint64_t step, uint32_t count,
                                    const optional_gradient& gradient) {
  message_builder<wire::Aggregate> message;
  message.body.setStep(step);
  message.body.setCount(count);
  write_gradient(*message.storage, message.body.initGradient(), gradient);
  return std::move(message).finish();
}

msg<wire::CancelTakes> make_cancel_takes(uint32_t at_most, uint64_t step) {
  message_builder<wire::CancelTakes> message;
  message.body.setAtMost(at_most);
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::CountMissing> make_count_missing(uint32_t gradients, uint64_t step) {
  message_builder<wire::CountMissing> message;
  message.body.setGradients(gradients);
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::ReadAccumulator> make_read_accumulator() {
  return message_builder<wire::ReadAccumulator>().finish();
}

msg<wire::AccumulatorStatus> make_accumulator_status(uint64_t step, uint32_t accumulated,
                                                     uint32_t takes) {
  message_builder<wire::AccumulatorStatus> message;
  message.body.setStep(step);
  message.body.setAccumulated(accumulated);
  message.body.setTakes(takes);
  return std::move(message).finish();
}

msg<wire::SetStep> make_set_step(uint64_t step) {
  message_builder<wire::SetStep> message;
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::StopJob> make_stop_job(std::string_view reason) {
  message_builder<wire::StopJob> message;
  write_reason(message.body, reason);
  return std::move(message).finish();
}

msg<wire::CancelStep> make_cancel_step(uint64_t step) {
  message_builder<wire::CancelStep> message;
  message.body.setStep(step);
  return std::move(message).finish();
}

msg<wire::PutTokens> make_put_tokens(uint64_t step, uint32_t count) {
  message_builder<wire::PutTokens> message;
  message.body.setStep(step);
  message.body.setCount(count);
  return std::move(message).finish();
}

msg<wire::CloseTokens> make_close_tokens() {
  return message_builder<wire::CloseTokens>().finish();
}

msg<wire::ReadQueueStatus> make_read_queue_status() {
  return message_builder<wire::ReadQueueStatus>().finish();
}

msg<wire::QueueStatus> make_queue_status(std::span<const uint64_t> steps,
                                         std::span<const uint32_t> waiting) {
  message_builder<wire::QueueStatus> message;
  message.body.setTokens(static_cast<uint32_t>(steps.size()));
  message.body.setWaiting(kj::arrayPtr(waiting.data(), waiting.size()));
  message.body.setNextStep(steps.empty() ? 0 : steps.front());
  if (!steps.empty()) message.body.setSteps(kj::arrayPtr(steps.data(), steps.size()));
  return std::move(message).finish();
}

bool are_same(wire::UseOptimizer::Reader one, wire::UseOptimizer::Reader other) {
  return is_same_choice(one, other) && is_same_choice(one.getSchedule(), other.getSchedule())
         && is_same_choice(one.getAverage(), other.getAverage());
}

optimizer_settings read_optimizer(wire::UseOptimizer::Reader from) {
  return {from.getName(),
          read_settings(from.getSettings()),
          {from.getSchedule().getName(), read_settings(from.getSchedule().getSettings())},
          {from.getAverage().getName(), read_settings(from.getAverage().getSettings())}};
}

origin read_origin(wire::Origin::Reader from) {
  return {.replica = from.getReplica(),
          .examples = from.getExamples(),
          .local_step = from.getLocalStep(),
          .iteration = from.getIteration(),
          .compute = to_length(from.getComputeNanoseconds()),
          .waited = to_length(from.getWaitedNanoseconds()),
          .loss = from.getLoss()};
}

arrival read_arrival(wire::Arrival::Reader from) {
  return {.from = read_origin(from.getOrigin()),
          .arrived = nanoseconds(from.getArrivedNanoseconds()),
          .accumulator_step = from.getAccumulatorStep()};
}

} // namespace troupe
