// SPDX-License-Identifier: Apache-2.0
// What a step function asks its replica for.
#include "strategies/replica_context.hpp"

#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

namespace troupe {

namespace {

// What every read asks.
const msg<wire::ReadVariable>& read_variable() {
  static const auto request = make_read_variable();
  return request;
}

// The tensor in the memory of an owner's answer.
tensor value_of(expected<msg<wire::VariableSnapshot>> answer) {
  auto snapshot = value_or_throw(std::move(answer));
  return to_tensor(read_tensor(snapshot.reader().getValue(), snapshot.owner()));
}

} // namespace

random_key replica_context::random(std::string_view purpose) const {
  return {activity_.world().seed(), purpose, place_.replica, iteration()};
}

task<std::vector<tensor>> replica_context::read(std::vector<variable> variables) {
  std::vector<std::pair<variable_owner_actor, msg<wire::ReadVariable>>> requests;
  requests.reserve(variables.size());
  for (const auto& variable : variables)
    requests.emplace_back(variable.owner(), read_variable());
  auto reading = activity_.request_all<msg<wire::VariableSnapshot>>(std::move(requests));
  auto snapshots = co_await reading;
  std::vector<tensor> values;
  values.reserve(snapshots.size());
  for (auto& snapshot : snapshots)
    values.push_back(value_of(std::move(snapshot)));
  co_return values;
}

task<tensor> replica_context::read(variable source) {
  auto reading = activity_.request<msg<wire::VariableSnapshot>>(source.owner(), read_variable());
  co_return value_of(co_await reading);
}

std::optional<tensor> replica_context::kept(const std::string& name) const {
  auto payload = activity_.kept(name);
  return payload ? std::optional{to_tensor(std::move(*payload))} : std::nullopt;
}

void replica_context::settle(const work_outcome& outcome) {
  compute_time_ += outcome.elapsed;
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  if (outcome.cancelled)
    throw failure{{errc::cancelled, "the step has enough gradients without this one"}};
}

} // namespace troupe
