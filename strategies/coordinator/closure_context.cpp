// SPDX-License-Identifier: Apache-2.0
// The calls of a scheduled function: reads and changes of variables.
#include "strategies/coordinator/closure_context.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/contexts/variable_access.hpp"

namespace troupe {

variable_read_cache::variable_read_cache(closure_context& context) : context_(context) {
  require(!context.cache_,
          "cache_variable_reads was called inside another one; scopes of it do not nest");
  context.cache_.emplace();
}

variable_read_cache::~variable_read_cache() {
  context_.cache_.reset();
}

random_key closure_context::random(std::string_view purpose) const {
  return {activity_.world().seed(), purpose, 0, place_.closure};
}

void closure_context::check_wanted() const {
  if (is_cancelled())
    throw_failure(errc::cancelled,
                  "this call is cancelled: another one has failed, or the coordinator ends");
}

const tensor* closure_context::cached(const variable& source) const {
  if (!cache_) return nullptr;
  auto found = cache_->find(source.index());
  return found == cache_->end() ? nullptr : &found->second;
}

tensor closure_context::remember(const variable& source, tensor value) {
  if (cache_) cache_->insert_or_assign(source.index(), value);
  return value;
}

task<std::vector<tensor>> closure_context::read(std::vector<variable> variables) {
  check_wanted();
  std::map<size_t, tensor> known; // By the variable's index.
  std::vector<variable> asked;
  std::vector<std::pair<variable_owner_actor, msg<wire::ReadVariable>>> requests;
  for (const auto& source : variables) {
    check_made_by("read", *place_.owner, source);
    const auto* value = cached(source);
    const bool is_new = known.emplace(source.index(), value ? *value : tensor{}).second;
    if (!is_new || value != nullptr) continue;
    asked.push_back(source);
    requests.emplace_back(source.owner(), make_read_variable());
  }
  auto reading = activity_.request_all<msg<wire::VariableSnapshot>>(std::move(requests));
  auto snapshots = co_await reading;
  for (size_t i = 0; i < asked.size(); ++i)
    known[asked[i].index()] = remember(asked[i], value_of(std::move(snapshots[i])));
  co_return mapped(variables, [&](const auto& source) { return known.at(source.index()); });
}

task<tensor> closure_context::read(variable source) {
  check_wanted();
  check_made_by("read", *place_.owner, source);
  if (const auto* value = cached(source)) co_return *value;
  auto reading
    = activity_.request<msg<wire::VariableSnapshot>>(source.owner(), make_read_variable());
  auto answer = co_await reading;
  co_return remember(source, value_of(std::move(answer)));
}

task<tensor> closure_context::apply(variable target, change operation, variable_operand operand) {
  check_wanted();
  check_made_by("a change", *place_.owner, target);
  if (std::holds_alternative<distributed_value<tensor>>(operand)
      || std::holds_alternative<distributed_value<indexed_slices>>(operand))
    throw_failure(
      errc::type_mismatch,
      "variable '{}' is to be changed by a distributed value, but a worker has no replicas; "
      "give it one value",
      target.name());
  if (const auto* from = std::get_if<variable>(&operand)) {
    auto source = *from;
    auto reading = read(source);
    auto value = co_await reading;
    operand = value;
  }
  auto changing
    = change_copy(activity_, target, component_of(target, 0), operation, std::move(operand));
  auto value = co_await changing;
  co_return value;
}

} // namespace troupe
