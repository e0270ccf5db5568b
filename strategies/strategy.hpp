// SPDX-License-Identifier: Apache-2.0
// The strategy: where variables live and how many replicas compute.
#pragma once

#include "actors/world.hpp"
#include "kernels/tensor.hpp"
#include "strategies/variable.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A training step is written once; the strategy decides where its variables live and how many
/// replicas run it. This class is what all strategies share.
///
/// Thread: the one that made it; replicas reach it through their context.
class strategy {
public:
  virtual ~strategy();
  strategy(const strategy&) = delete;
  strategy& operator=(const strategy&) = delete;

  /// Makes a variable, held by an owner actor of its own.
  /// @param initial Its first value; the variable takes the dtype and shape, and never writes here.
  /// Errors: throws `failure` with invalid_argument if the name is taken or empty, type_mismatch if
  /// the dtype is not f32 or f64, or limit_exceeded for more than `limits::rank_max` dimensions.
  variable make_variable(std::string name, const tensor& initial);

  /// The variables in order of creation.
  [[nodiscard]] std::span<const variable> variables() const { return variables_; }

  /// The value of a variable as it is now; an immutable view of the owner's memory.
  /// Errors: throws `failure` if the owner is gone.
  [[nodiscard]] tensor read(const variable& source);

  /// Replicas whose gradients are combined.
  [[nodiscard]] uint32_t num_replicas_in_sync() const { return num_replicas_; }

  [[nodiscard]] troupe::world& world() { return world_; }

protected:
  strategy(troupe::world& world, uint32_t num_replicas);

private:
  troupe::world& world_;
  uint32_t num_replicas_;
  std::vector<variable> variables_;
};

/// How a parameter server strategy is laid out.
struct parameter_server_options {
  uint32_t replicas = 1;
};

/// Variables live with owners; replicas read them, push gradients, and each goes on at its own pace
/// unless an optimizer such as `sync_replicas_optimizer` synchronises them. In one process so far,
/// with every actor in one world.
class parameter_server_strategy final : public strategy {
public:
  /// Errors: throws `failure` with invalid_argument for 0 replicas.
  explicit parameter_server_strategy(troupe::world& world, parameter_server_options options = {});
};

} // namespace troupe
