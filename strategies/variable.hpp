// SPDX-License-Identifier: Apache-2.0
// A variable, as user code holds it.
#pragma once

#include "actors/gradient_check.hpp"
#include "actors/interfaces.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe {

/// A handle to a variable of a strategy; copies mean the same variable. Its value lives with its
/// owner: read it with `replica_context::read` inside a replica, `strategy::read` outside.
class variable {
public:
  [[nodiscard]] const std::string& name() const { return data_->form.name; }

  [[nodiscard]] dtype type() const { return data_->form.type; }

  [[nodiscard]] const shape& extents() const { return data_->form.extents; }

  /// What a gradient of it must look like.
  [[nodiscard]] const variable_form& form() const { return data_->form; }

  /// The actor that holds the value.
  [[nodiscard]] const variable_owner_actor& owner() const { return data_->owner; }

  /// Position among the variables of its strategy, in order of creation.
  [[nodiscard]] size_t index() const { return data_->index; }

  /// The same variable, not just an equal one.
  bool operator==(const variable&) const = default;

private:
  friend class strategy;

  struct data {
    variable_form form;
    variable_owner_actor owner;
    size_t index = 0;
  };

  explicit variable(std::shared_ptr<const data> data) : data_(std::move(data)) {}

  std::shared_ptr<const data> data_;
};

} // namespace troupe
