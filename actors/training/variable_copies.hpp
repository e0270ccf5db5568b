// SPDX-License-Identifier: Apache-2.0
// The copies of a variable that replicas have, without actors: one in memory until they differ.
#pragma once

#include "kernels/tensor/change.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/errc.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// How the copies of a variable are one variable.
enum class copy_rule : uint8_t {
  alike,         ///< They are meant to be equal; the first speaks for all.
  sum,           ///< Each replica has its own; together they are their sum,
  mean,          ///< or their mean,
  first_replica, ///< or that of replica 0,
  none,          ///< or nothing: they cannot be read as one.
};

/// What a variable consists of.
struct copies_config {
  std::string name;   ///< Of the variable, for errors.
  uint32_t count = 1; ///< Copies; one for each replica of this node.
  copy_rule rule = copy_rule::alike;
  uint32_t elsewhere = 0; ///< Copies in other processes, which are part of the same sum.
};

/// Every replica has a copy of a variable, and as long as no difference can be seen all of them are
/// one array in memory. A change of a single copy takes them apart; as soon as they are equal
/// again, bit for bit, they are one array again.
class variable_copies {
public:
  variable_copies() = default;
  variable_copies(copies_config config, tensor initial);

  /// The first copy, with slots and average; that of all, as long as they are together.
  [[nodiscard]] variable_state& first() { return copies_.front(); }

  [[nodiscard]] const variable_state& first() const { return copies_.front(); }

  /// True if all copies are one array.
  [[nodiscard]] bool are_together() const { return copies_.size() == 1; }

  /// True for an index of a copy, and for `whole_variable`.
  [[nodiscard]] bool has(int32_t component) const;

  /// One copy, or what the copies come to (`whole_variable`).
  /// Errors: out_of_range for a copy that there is not; invalid_argument if the copies cannot be
  /// read as one.
  [[nodiscard]] expected<tensor> read(int32_t component) const;

  /// Changes one copy or all of them. Copies that add up share what is assigned to all.
  /// @returns The changed copy; the first, if all were changed.
  /// Errors: as `read`, `changed` and `scattered`; invalid_argument where copies that are kept
  /// apart cannot be changed as one; unimplemented for a scatter into such copies.
  [[nodiscard]] expected<tensor> apply(int32_t component, change how, const gradient& operand);

  /// One update of every copy. @pre As `update_variable`.
  void update(const update_plan& plan, const gradient_mean& mean);

  /// Makes every copy ready for the updates of a plan.
  void prepare(const update_plan& plan);

  /// That of the mean gradient of the first copy, as `troupe::squared_norm`.
  [[nodiscard]] double squared_norm(const gradient_mean& mean) const;

  /// What a checkpoint holds: the first copy, with what the copies come to for its value.
  [[nodiscard]] variable_state saved() const;

  /// Goes back to what was saved; copies that add up share it.
  void restore(variable_state saved);

private:
  /// Updates are computed here; values, slots and averages lie here.
  static constexpr cpu::context place_{};

  [[nodiscard]] expected<void> check(int32_t component) const;
  [[nodiscard]] const variable_state& copy(int32_t component) const;
  [[nodiscard]] expected<tensor> combined() const;
  [[nodiscard]] expected<tensor> apply_to_all(change how, const gradient& operand);
  [[nodiscard]] tensor share(const tensor& whole) const;
  void bring_together();

  copies_config config_;
  std::vector<variable_state> copies_; ///< One, or `config_.count` of them.
};

} // namespace troupe
