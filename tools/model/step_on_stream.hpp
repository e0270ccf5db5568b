// SPDX-License-Identifier: Apache-2.0
// A model's loss and gradients, computed on the device of a stream.
#pragma once

#include "actors/world/compute_device.hpp"
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errc.hpp"

#include <span>
#include <stop_token>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A loss, which has the type of the variables: f32 or f64. Shape: []
[[nodiscard]] inline double nats_of(const tensor& loss) {
  return loss.type() == dtype::f64 ? loss.values<double>()[0] : loss.values<float>()[0];
}

/// What a stream was asked for in one step; to be looked at when the stream has done it.
struct step_on_stream {
  tensor loss;                     ///< Shape [], on the host. Units: nats.
  std::vector<gradient> gradients; ///< On the host, in the order of the variables.
};

/// Results on their way from a device to the host; the first failure stays.
class transfer {
public:
  explicit transfer(compute_stream& by) : by_(by) {}

  tensor here(const tensor& value) { return take(by_.to_host(value)); }

  gradient here(const gradient& value) {
    if (const auto* dense = std::get_if<tensor>(&value)) return here(*dense);
    const auto& rows = std::get<indexed_slices>(value);
    return indexed_slices{here(rows.indices), here(rows.values), rows.dense_extents};
  }

  template <class T>
  T take(expected<T> result) {
    if (result) return std::move(*result);
    if (failure_.code == errc::none) failure_ = result.error();
    return {};
  }

  [[nodiscard]] const error& failure() const { return failure_; }

private:
  compute_stream& by_;
  error failure_;
};

/// The loss that `build(tape, parameters)` writes down, and its gradients by the variables, on the
/// device of a stream and by the tape of its context: variables go there once for each version,
/// gradients come back.
/// Errors: as the tape's and the stream's.
template <class Context, class Build>
[[nodiscard]] expected<step_on_stream>
differentiate_with(Context context, compute_stream& on, std::span<const tensor> variables,
                   const std::stop_token& stop, Build build) {
  transfer moved{on};
  auto values = moved.take(on.resident(variables));
  if (moved.failure().code != errc::none) return tl::unexpected(moved.failure());
  basic_tape<Context> t{stop, std::move(context)};
  std::vector<expression> parameters;
  for (const auto& value : values)
    parameters.push_back(t.parameter(value));
  auto loss = build(t, parameters);
  auto gradients = t.gradients(loss, parameters);
  if (!gradients) return tl::unexpected(gradients.error());
  step_on_stream result{moved.here(*t.value(loss)), {}};
  for (const auto& one : *gradients)
    result.gradients.push_back(moved.here(one));
  if (moved.failure().code != errc::none) return tl::unexpected(moved.failure());
  return result;
}

} // namespace troupe
