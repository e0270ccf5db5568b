// SPDX-License-Identifier: Apache-2.0
// The handle to a variable, as user code holds it.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/training/gradient_check.hpp"

#include <caf/actor.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

class strategy;
class variable;

} // namespace troupe

template <>
struct std::hash<troupe::variable>;

namespace troupe {

/// When the copies that replicas have of a variable are synchronised.
enum class variable_synchronization : uint8_t {
  automatic, ///< `on_write`.
  none,      ///< Refused: no strategy here has copies that are never synchronised.
  on_write,  ///< A write is made to all copies: they stay alike.
  on_read,   ///< A replica writes its own copy; a reader gets the aggregate of all copies.
};

/// How one value is made of the values of all replicas: when they write a variable that is
/// synchronised on write, or when a variable that is synchronised on read is read.
enum class variable_aggregation : uint8_t {
  none, ///< No value is made: a replica writes its own copy.
  sum,
  mean,
  only_first_replica,
};

/// "ON_WRITE", "SUM": as tf.distribute spells them.
[[nodiscard]] std::string_view to_string(variable_synchronization mode);
[[nodiscard]] std::string_view to_string(variable_aggregation mode);

/// How a variable is made.
struct variable_options {
  variable_synchronization synchronization = variable_synchronization::automatic;
  variable_aggregation aggregation = variable_aggregation::none;
  /// Unset: true, but false for a variable that is synchronised on read.
  std::optional<bool> trainable;
};

/// A handle to a variable of a strategy; copies mean the same variable. Its value lives with its
/// owner: read it with `replica_context::read` inside a replica, `strategy::read` outside.
class variable {
public:
  // A move copies, so that a handle that was moved from still means the same.
  variable(const variable&) = default;
  variable& operator=(const variable&) = default;

  [[nodiscard]] const std::string& name() const { return data_->form.name; }

  [[nodiscard]] dtype type() const { return data_->form.type; }

  [[nodiscard]] const shape& extents() const { return data_->form.extents; }

  /// Name, dtype and shape: a gradient of it must fit them.
  [[nodiscard]] const variable_form& form() const { return data_->form; }

  /// The actor that holds the value. If it is replicated: the failover client that speaks to that
  /// actor.
  [[nodiscard]] const variable_owner_actor& owner() const { return data_->owner; }

  /// The owner, and its mirror if it is replicated; null, where they stand in another process.
  [[nodiscard]] const std::array<replicated_owner_actor, 2>& owners_here() const {
    return data_->owners_here;
  }

  /// Whether the owner stands in this process.
  [[nodiscard]] bool is_here() const { return data_->is_here; }

  /// The device that it lies on, if its owner stands in this process; else the host's memory. If it
  /// has copies on several devices: the first of them.
  [[nodiscard]] const device& place() const { return data_->places.front(); }

  /// All devices that it lies on, the one of `place` first.
  [[nodiscard]] const std::vector<device>& places() const { return data_->places; }

  /// Whether it, or a copy of it, lies on a device.
  [[nodiscard]] bool lies_on(const device& place) const {
    return std::ranges::find(data_->places, place) != data_->places.end();
  }

  /// Position among the variables of its strategy, in order of creation.
  [[nodiscard]] size_t index() const { return data_->index; }

  /// Never `automatic`.
  [[nodiscard]] variable_synchronization synchronization() const { return data_->synchronization; }

  [[nodiscard]] variable_aggregation aggregation() const { return data_->aggregation; }

  [[nodiscard]] bool trainable() const { return data_->trainable; }

  /// The strategy that made it.
  [[nodiscard]] const strategy& owner_strategy() const { return *data_->made_by; }

  /// Where its copies live: "cpu:0", one for each.
  [[nodiscard]] const std::vector<std::string>& devices() const { return data_->devices; }

  /// Copies that replicas have of it; 1 where they share it for good.
  [[nodiscard]] uint32_t copies() const { return static_cast<uint32_t>(data_->devices.size()); }

  /// The same variable, not just an equal one.
  bool operator==(const variable&) const = default;

private:
  friend class strategy;
  friend struct std::hash<variable>;

  struct data {
    variable_form form;
    variable_owner_actor owner;
    std::array<replicated_owner_actor, 2> owners_here;
    std::vector<caf::actor> actors_here; ///< To be ended with the strategy.
    bool is_here = true;                 ///< Whether the owner stands in this process.
    std::vector<device> places{device{}};
    uint32_t place_of = 0; ///< The index of the variable that it lies beside: mostly its own.
    size_t index = 0;
    variable_synchronization synchronization = variable_synchronization::on_write;
    variable_aggregation aggregation = variable_aggregation::none;
    bool trainable = true;
    const strategy* made_by = nullptr;
    std::vector<std::string> devices;
  };

  explicit variable(std::shared_ptr<const data> shared) : data_(std::move(shared)) {}

  std::shared_ptr<const data> data_;
};

} // namespace troupe

/// Hashes the identity of a variable, which `==` compares, not its name.
template <>
struct std::hash<troupe::variable> {
  size_t operator()(const troupe::variable& variable) const noexcept {
    return std::hash<const void*>{}(variable.data_.get());
  }
};

namespace troupe {

/// Where variables stand in a list.
using variable_positions = std::unordered_map<variable, size_t>;

/// Where each of `variables` stands first.
[[nodiscard]] inline variable_positions positions_of(const std::vector<variable>& variables) {
  variable_positions positions;
  for (size_t i = 0; i < variables.size(); ++i)
    positions.emplace(variables[i], i);
  return positions;
}

} // namespace troupe
