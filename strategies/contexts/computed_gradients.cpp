// SPDX-License-Identifier: Apache-2.0
// From a loss on a tape to the gradients of variables.
#include "strategies/contexts/computed_gradients.hpp"

namespace troupe {

namespace {

// A loss as it is written down on a computing thread.
struct recorded_loss {
  tape on;
  std::vector<expression> parameters;
  expression result;

  recorded_loss(const loss_function& loss, const std::vector<tensor>& variables,
                const std::stop_token& stop)
    : on(stop) {
    for (const auto& value : variables)
      parameters.push_back(on.parameter(value));
    result = loss(on, parameters);
  }

  [[nodiscard]] double value() const {
    auto value = value_or_throw(on.value(result));
    return value.type() == dtype::f64 ? value.values<double>()[0] : value.values<float>()[0];
  }
};

computed_gradients differentiate(const loss_function& loss, const std::vector<variable>& variables,
                                 const std::vector<tensor>& values, double grad_loss,
                                 const std::stop_token& stop) {
  recorded_loss recorded{loss, values, stop};
  computed_gradients computed{recorded.value(), {}};
  auto target = grad_loss == 1 ? recorded.result : recorded.on.scale(recorded.result, grad_loss);
  auto gradients = value_or_throw(recorded.on.gradients(target, recorded.parameters));
  for (size_t i = 0; i < variables.size(); ++i)
    computed.gradients_and_variables.push_back({std::move(gradients[i]), variables[i]});
  return computed;
}

double differentiate(const loss_function& loss, const std::vector<variable>& variables,
                     const std::vector<tensor>& values, const gradient_taker& take,
                     const std::stop_token& stop) {
  recorded_loss recorded{loss, values, stop};
  auto value = recorded.value();
  auto ready = [&](size_t i, const gradient& final) { take(variables[i], final); };
  value_or_throw(recorded.on.gradients(recorded.result, recorded.parameters, ready));
  return value;
}

} // namespace

task<computed_gradients> compute_gradients(replica_context& context, loss_function loss,
                                           std::vector<variable> variables, double grad_loss) {
  auto reading = context.read(variables);
  auto values = co_await reading;
  auto computing
    = context.compute([loss, variables, values, grad_loss](const std::stop_token& stop) {
        return differentiate(loss, variables, values, grad_loss, stop);
      });
  auto computed = co_await computing;
  co_return computed;
}

task<double> compute_gradients(replica_context& context, loss_function loss,
                               std::vector<variable> variables, gradient_taker take) {
  auto reading = context.read(variables);
  auto values = co_await reading;
  auto computing = context.compute([loss, variables, values, take](const std::stop_token& stop) {
    return differentiate(loss, variables, values, take, stop);
  });
  auto value = co_await computing;
  co_return value;
}

} // namespace troupe
