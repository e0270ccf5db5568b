// SPDX-License-Identifier: Apache-2.0
// The messages of a coordinator and its workers, each made by one function.
// coordinator.capnp says what they mean and when they are sent.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// Something that each worker has one of its own of; the fields are those of
/// `wire::WorkerResource`.
struct worker_resource {
  uint32_t resource = 0;
  uint32_t instance = 0;
  uint32_t pass = 0;
  std::shared_ptr<const void> in_use{}; ///< Not sent: has workers keep the instance.

  bool operator==(const worker_resource&) const = default;
};

/// One leaf of an argument or a result: `wire::ClosureValue`.
using closure_value = std::variant<tensor, double, int64_t, std::string, worker_resource>;

/// A worker is there.
[[nodiscard]] msg<wire::WorkerReady> make_worker_ready(uint32_t worker);

/// A worker is to call a function. The message refers to the tensors of `arguments`.
/// @param instances The numbers in use. @pre Texts are no longer than `limits::text_bytes_max`.
[[nodiscard]] msg<wire::RunClosure> make_run_closure(uint64_t closure, std::string_view function,
                                                     std::span<const closure_value> arguments,
                                                     std::span<const uint32_t> instances);

/// A function has returned. The message refers to the tensors of `results`.
/// @pre Texts are no longer than `limits::text_bytes_max`.
[[nodiscard]] msg<wire::ClosureDone> make_closure_done(uint64_t closure,
                                                       std::span<const closure_value> results);

/// A function has failed. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::ClosureDone> make_closure_failed(uint64_t closure, const error& reason);

/// The result of a function is not needed.
[[nodiscard]] msg<wire::CancelClosure> make_cancel_closure(uint64_t closure);

/// The bystander of a process wants to know when there will be no more closures.
[[nodiscard]] msg<wire::AwaitServiceEnd> make_await_service_end(uint32_t process);

/// There will be no more closures.
[[nodiscard]] msg<wire::ServiceEnded> make_service_ended();

/// The arguments; arrays in place.
[[nodiscard]] std::vector<closure_value> read_arguments(const msg<wire::RunClosure>& from);

/// The leaves that the function returned, arrays in place; or why it failed.
[[nodiscard]] expected<std::vector<closure_value>> read_results(const msg<wire::ClosureDone>& from);

} // namespace troupe
