// SPDX-License-Identifier: Apache-2.0
// A loss and its gradients, computed on the device of a stream.
#pragma once

#include "actors/world/compute_device.hpp"
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"
#include "messages/mapped.hpp"

#include <optional>
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

/// The settings of a differentiation.
struct differentiation {
  std::stop_token stop{}; ///< Asked before each operation, forward and backward.
  product_precision precision = product_precision::full; ///< The tape's.
  double scale = 1; ///< The gradient of the loss itself, by which all gradients are multiplied.
  /// The loss is multiplied by it on its way back, and the gradients divided by it afterwards.
  std::optional<double> loss_scale{};
};

/// The results that a stream was asked for in one step; valid when the stream has done it.
struct step_on_stream {
  tensor loss; ///< Shape [], on the host. Units: nats.
  /// In the order of the variables. The gradient of a variable on the stream's device lies there,
  /// too, but for numbers of rows; the others lie on the host.
  std::vector<gradient> gradients;
  /// How many of their elements are infinite or NaN, on the host; nothing without a loss scale.
  /// Shape: []  f64
  tensor non_finite{};
};

/// Results that a device leaves where they are wanted; the first failure stays.
class transfer {
public:
  explicit transfer(compute_stream& by) : by_(by) {}

  tensor here(const tensor& value) { return take(by_.to_host(value)); }

  gradient here(const gradient& value) {
    if (const auto* dense = std::get_if<tensor>(&value)) return here(*dense);
    const auto& rows = std::get<indexed_slices>(value);
    return indexed_slices{here(rows.indices), here(rows.values), rows.dense_extents};
  }

  /// A gradient where its variable lies.
  gradient beside(const tensor& variable, const gradient& value) {
    if (variable.device() != by_.where()) return here(value);
    const auto* rows = std::get_if<indexed_slices>(&value);
    if (rows == nullptr) return value;
    return indexed_slices{here(rows->indices), rows->values, rows->dense_extents};
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
/// device of a stream and by the tape of its context: variables of the host go there once for each
/// version, and their gradients come back.
/// Errors: as the tape's and the stream's.
template <class Context, class Build>
[[nodiscard]] expected<step_on_stream>
differentiate_with(Context context, compute_stream& on, std::span<const tensor> variables,
                   const differentiation& settings, Build build) {
  transfer moved{on};
  auto values = moved.take(on.resident(variables));
  if (moved.failure().code != errc::none) return tl::unexpected(moved.failure());
  basic_tape<Context> t{settings.stop, std::move(context), settings.precision};
  auto parameters = mapped(values, [&](const auto& value) { return t.parameter(value); });
  auto loss = build(t, parameters);
  auto value = t.value(loss);
  if (!value) return tl::unexpected(value.error());
  const auto scale = settings.scale * settings.loss_scale.value_or(1);
  auto gradients = t.gradients(scale == 1 ? loss : t.scale(loss, scale), parameters);
  if (!gradients) return tl::unexpected(gradients.error());
  step_on_stream result{moved.here(*value), {}};
  if (settings.loss_scale) {
    auto unscaled = t.unscaled(std::move(*gradients), *settings.loss_scale);
    *gradients = std::move(unscaled.gradients);
    result.non_finite = moved.here(unscaled.non_finite);
  }
  for (size_t i = 0; i < variables.size(); ++i)
    result.gradients.push_back(moved.beside(variables[i], (*gradients)[i]));
  if (moved.failure().code != errc::none) return tl::unexpected(moved.failure());
  return result;
}

} // namespace troupe
