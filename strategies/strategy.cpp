// SPDX-License-Identifier: Apache-2.0
// Making variables, and reading them from outside the replicas.
#include "strategies/strategy.hpp"

#include "actors/ask.hpp"
#include "actors/failure.hpp"
#include "actors/tensor_payload.hpp"
#include "actors/variable_owner.hpp"
#include "messages/limits.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

void check_new_variable(std::span<const variable> existing, const std::string& name,
                        const tensor& initial) {
  if (name.empty()) throw failure{{errc::invalid_argument, "a variable needs a name"}};
  auto has_name = [&](const variable& other) { return other.name() == name; };
  if (std::any_of(existing.begin(), existing.end(), has_name))
    throw failure{
      {errc::invalid_argument,
       fmt::format("there is a variable '{}' already; give this one another name", name)}};
  if (initial.rank() > limits::rank_max)
    throw failure{
      {errc::limit_exceeded, fmt::format("variable '{}' has {} dimensions; at most {} are possible",
                                         name, initial.rank(), limits::rank_max)}};
  auto type = initial.type();
  if (type != dtype::f32 && type != dtype::f64)
    throw failure{{errc::type_mismatch, fmt::format("variable '{}' is {}; variables are f32 or f64",
                                                    name, to_string(type))}};
}

} // namespace

strategy::strategy(troupe::world& world, uint32_t num_replicas)
  : world_(world), num_replicas_(num_replicas) {
  if (num_replicas == 0)
    throw failure{{errc::invalid_argument, "a strategy needs at least 1 replica"}};
}

strategy::~strategy() {
  for (const auto& variable : variables_)
    caf::anon_send_exit(variable.owner(), caf::exit_reason::user_shutdown);
}

variable strategy::make_variable(std::string name, const tensor& initial) {
  check_new_variable(variables_, name, initial);
  auto data = std::make_shared<variable::data>();
  data->form = {std::move(name), initial.type(), initial.extents()};
  data->owner
    = world_.system().spawn(variable_owner, variable_owner_config{data->form, initial, &world_});
  world_.introduce(data->owner.id(), "owner " + data->form.name);
  data->index = variables_.size();
  return variables_.emplace_back(variable{data});
}

tensor strategy::read(const variable& source) {
  auto snapshot = value_or_throw(
    ask<msg<wire::VariableSnapshot>>(world_, source.owner(), make_read_variable()));
  return to_tensor(read_tensor(snapshot.reader().getValue(), snapshot.owner()));
}

parameter_server_strategy::parameter_server_strategy(troupe::world& world,
                                                     parameter_server_options options)
  : strategy(world, options.replicas) {}

} // namespace troupe
