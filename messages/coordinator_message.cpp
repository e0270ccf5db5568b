// SPDX-License-Identifier: Apache-2.0
// The messages of a coordinator and its workers, built and read.
#include "messages/coordinator_message.hpp"

#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

namespace troupe {

namespace {

using value_list = capnp::List<wire::ClosureValue>;

void write_values(built_message& storage, value_list::Builder target,
                  std::span<const closure_value> values) {
  for (capnp::uint i = 0; i < target.size(); ++i) {
    const auto& value = values[i];
    if (const auto* array = std::get_if<tensor>(&value)) {
      write_tensor(storage, target[i].initTensor(), *array);
    } else if (const auto* number = std::get_if<double>(&value)) {
      target[i].setNumber(*number);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      target[i].setInteger(*integer);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      target[i].setText(*text);
    } else {
      const auto& own = std::get<worker_resource>(value);
      auto resource = target[i].initResource();
      resource.setResource(own.resource);
      resource.setInstance(own.instance);
      resource.setPass(own.pass);
    }
  }
}

closure_value read_value(wire::ClosureValue::Reader from,
                         const std::shared_ptr<const void>& owner) {
  switch (from.which()) {
  case wire::ClosureValue::TENSOR:
    return read_tensor(from.getTensor(), owner);
  case wire::ClosureValue::NUMBER:
    return from.getNumber();
  case wire::ClosureValue::TEXT:
    return std::string{from.getText()};
  case wire::ClosureValue::RESOURCE: {
    auto own = from.getResource();
    return worker_resource{own.getResource(), own.getInstance(), own.getPass()};
  }
  default:
    return from.getInteger();
  }
}

std::vector<closure_value> read_values(value_list::Reader from,
                                       const std::shared_ptr<const void>& owner) {
  return mapped(from, [&](auto value) { return read_value(value, owner); });
}

} // namespace

msg<wire::WorkerReady> make_worker_ready(uint32_t worker) {
  message_builder<wire::WorkerReady> message;
  message.body.setWorker(worker);
  return std::move(message).finish();
}

msg<wire::RunClosure> make_run_closure(uint64_t closure, std::string_view function,
                                       std::span<const closure_value> arguments,
                                       std::span<const uint32_t> instances) {
  message_builder<wire::RunClosure> message;
  message.body.setClosure(closure);
  message.body.setFunction(std::string{function});
  auto count = static_cast<capnp::uint>(arguments.size());
  write_values(*message.storage, message.body.initArguments(count), arguments);
  message.body.setInstances(kj::arrayPtr(instances.data(), instances.size()));
  return std::move(message).finish();
}

msg<wire::ClosureDone> make_closure_done(uint64_t closure, std::span<const closure_value> results) {
  message_builder<wire::ClosureDone> message;
  message.body.setClosure(closure);
  auto count = static_cast<capnp::uint>(results.size());
  write_values(*message.storage, message.body.initResults(count), results);
  return std::move(message).finish();
}

msg<wire::ClosureDone> make_closure_failed(uint64_t closure, const error& reason) {
  message_builder<wire::ClosureDone> message;
  message.body.setClosure(closure);
  write_error(message.body, reason);
  return std::move(message).finish();
}

msg<wire::CancelClosure> make_cancel_closure(uint64_t closure) {
  message_builder<wire::CancelClosure> message;
  message.body.setClosure(closure);
  return std::move(message).finish();
}

msg<wire::AwaitServiceEnd> make_await_service_end(uint32_t process) {
  message_builder<wire::AwaitServiceEnd> message;
  message.body.setProcess(process);
  return std::move(message).finish();
}

msg<wire::ServiceEnded> make_service_ended() {
  return message_builder<wire::ServiceEnded>{}.finish();
}

std::vector<closure_value> read_arguments(const msg<wire::RunClosure>& from) {
  return read_values(from.reader().getArguments(), from.owner());
}

expected<std::vector<closure_value>> read_results(const msg<wire::ClosureDone>& from) {
  auto body = from.reader();
  if (auto failed = read_error(body); failed.code != errc::none)
    return tl::unexpected<error>(std::move(failed));
  return read_values(body.getResults(), from.owner());
}

} // namespace troupe
