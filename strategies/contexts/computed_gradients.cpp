// SPDX-License-Identifier: Apache-2.0
// Computes the gradients of a loss, on the tape of the host or on a device.
#include "strategies/contexts/computed_gradients.hpp"

#include "messages/mapped.hpp"

namespace troupe {

namespace {

// On a tape of the host, which hands out each gradient when it is final.
double differentiate_on_host(const loss_function& loss, const std::vector<variable>& variables,
                             const std::vector<tensor>& values, const gradient_taker& take,
                             const std::stop_token& stop) {
  tape tape{stop, {}, loss.precision()};
  auto parameters = mapped(values, [&](const auto& value) { return tape.parameter(value); });
  auto result = loss(tape, parameters);
  auto value = nats_of(value_or_throw(tape.value(result)));
  auto ready = [&](size_t i, const gradient& final) { take(variables[i], final); };
  value_or_throw(tape.gradients(result, parameters, ready));
  return value;
}

// Gradients on a device cannot be looked at before the stream is done. Rows come to the host, where
// they are made the arrays that they are rows of.
double differentiate_on_device(const loss_function& loss, const std::vector<variable>& variables,
                               const std::vector<tensor>& values, const gradient_taker& take,
                               const std::stop_token& stop, compute_stream& stream) {
  auto computed = value_or_throw(loss.differentiate(stream, values, stop));
  for (auto& gradient : computed.gradients)
    if (auto* rows = std::get_if<indexed_slices>(&gradient))
      rows->values = value_or_throw(stream.to_host(rows->values));
  value_or_throw(stream.wait());
  for (size_t i = variables.size(); i > 0; --i)
    take(variables[i - 1], computed.gradients[i - 1]);
  return nats_of(computed.loss);
}

} // namespace

expected<step_on_stream> loss_function::differentiate(compute_stream& stream,
                                                      std::span<const tensor> variables,
                                                      const std::stop_token& stop,
                                                      double scale) const {
  const differentiation settings{stop, precision_, scale};
  if (stream.where().kind == device_kind::cpu)
    return differentiate_with(cpu::context{}, stream, variables, settings, on_host_);
  if (on_gpu_) return differentiate_on_gpu(stream, variables, settings, on_gpu_);
  return fail(errc::failed_precondition,
              "the replica computes on " + to_string(stream.where())
                + ", and its loss is written for a tape of the CPU: have it take any tape (auto& "
                  "t), and Troupe built with GPU support");
}

task<computed_gradients> compute_gradients(replica_context& context, loss_function loss,
                                           std::vector<variable> variables, double grad_loss) {
  auto reading = context.read_on_device(variables);
  auto values = co_await reading;
  auto work = [loss = std::move(loss), values = std::move(values),
               grad_loss](const std::stop_token& stop, compute_stream& stream) {
    return value_or_throw(loss.differentiate(stream, values, stop, grad_loss));
  };
  auto computing = context.compute(std::move(work));
  auto done = co_await computing;
  computed_gradients computed{nats_of(done.loss), {}};
  for (size_t i = 0; i < variables.size(); ++i)
    computed.gradients_and_variables.push_back({std::move(done.gradients[i]), variables[i]});
  co_return computed;
}

task<double> compute_gradients(replica_context& context, loss_function loss,
                               std::vector<variable> variables, gradient_taker take) {
  auto reading = context.read_on_device(variables);
  auto values = co_await reading;
  auto work = [loss, variables, values = std::move(values), take](const std::stop_token& stop,
                                                                  compute_stream& stream) {
    return stream.where().kind == device_kind::cpu
             ? differentiate_on_host(loss, variables, values, take, stop)
             : differentiate_on_device(loss, variables, values, take, stop, stream);
  };
  auto computing = context.compute(std::move(work));
  auto value = co_await computing;
  co_return value;
}

} // namespace troupe
