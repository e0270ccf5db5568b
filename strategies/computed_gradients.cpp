// SPDX-License-Identifier: Apache-2.0
// From a loss on a tape to the gradients of variables.
#include "strategies/computed_gradients.hpp"

namespace troupe {

namespace {

// Runs on a computing thread.
computed_gradients differentiate(const loss_function& loss, const std::vector<variable>& variables,
                                 const std::vector<tensor>& values, const std::stop_token& stop) {
  tape recording{stop};
  std::vector<expression> parameters;
  for (const auto& value : values)
    parameters.push_back(recording.parameter(value));
  auto result = loss(recording, parameters);
  auto value = value_or_throw(recording.value(result));
  auto gradients = value_or_throw(recording.gradients(result, parameters));
  computed_gradients computed{
    value.type() == dtype::f64 ? value.values<double>()[0] : value.values<float>()[0], {}};
  for (size_t i = 0; i < variables.size(); ++i)
    computed.gradients_and_variables.push_back({std::move(gradients[i]), variables[i]});
  return computed;
}

} // namespace

task<computed_gradients> compute_gradients(replica_context& context, loss_function loss,
                                           std::vector<variable> variables) {
  auto reading = context.read(variables);
  auto values = co_await reading;
  auto computing = context.compute([loss, variables, values](const std::stop_token& stop) {
    return differentiate(loss, variables, values, stop);
  });
  auto computed = co_await computing;
  co_return computed;
}

} // namespace troupe
