// SPDX-License-Identifier: Apache-2.0
// The replicas' copies of a variable, without actors: one array in memory until they differ.
#pragma once

#include "kernels/tensor/change.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class compute_device;
class compute_stream;

/// The value of a variable, as its copies have it.
enum class copy_rule : uint8_t {
  alike,         ///< The copies are meant to be equal; the first is the value.
  sum,           ///< Each replica has its own; the value is their sum.
  mean,          ///< Each replica has its own; the value is their mean.
  first_replica, ///< Each replica has its own; the value is that of replica 0.
  none,          ///< Each replica has its own; they cannot be read as one.
};

/// The copies that a variable consists of.
struct copies_config {
  std::string name;   ///< The variable's name, for errors.
  uint32_t count = 1; ///< Copies; one for each replica of this node.
  copy_rule rule = copy_rule::alike;
  uint32_t elsewhere = 0; ///< Copies in other processes, which are part of the same sum.
  /// Where values, slots and averages lie and are updated; null: in the host's memory. Copies on a
  /// device are alike.
  std::shared_ptr<compute_device> device;
  uint32_t stream = 0; ///< The device's stream that updates run on.
};

/// Whether arrays have the same bits. @pre They are row-major, of one dtype and shape.
[[nodiscard]] bool have_same_bits(const tensor& a, const tensor& b);

/// Every replica has a copy of a variable. As long as no difference can be seen, all of them are
/// one array in memory. A change of a single copy takes them apart; as soon as they are equal
/// again, bit for bit, they are one array again. On a device, where a comparison would cost a copy
/// of each, copies that an update has taken apart stay so until all are restored.
///
/// Work on a device is queued: arrays that are read are there, and may be looked at, once the
/// stream has done it. Arrays of at most `limits::copied_bytes_max` are there at once.
/// Thread: that of the stream.
class variable_copies {
public:
  variable_copies() = default;
  variable_copies(copies_config config, tensor initial);

  /// The first copy, with slots and average; the only one, as long as all are together.
  [[nodiscard]] variable_state& first() { return copies_.front(); }

  [[nodiscard]] const variable_state& first() const { return copies_.front(); }

  /// True if all copies are one array.
  [[nodiscard]] bool are_together() const { return copies_.size() == 1; }

  /// True for an index of a copy, and for `whole_variable`.
  [[nodiscard]] bool has(int32_t component) const;

  /// Where the arrays lie, once they have been brought to the device.
  [[nodiscard]] troupe::device where() const;

  /// One copy, or the value by the rule (`whole_variable`), in the host's memory. A value of a
  /// device is copied once for each version.
  /// Errors: out_of_range for a copy that there is not; invalid_argument if the copies cannot be
  /// read as one; as the device's.
  [[nodiscard]] expected<tensor> read(int32_t component) const;

  /// One copy, or the first (`whole_variable`), where it lies now. @pre has(component)
  [[nodiscard]] const tensor& value(int32_t component) const {
    return copies_[index_of(component)].value;
  }

  /// As `value`, but brought to where it is updated. @pre has(component). Errors: as the device's.
  [[nodiscard]] expected<tensor> read_in_place(int32_t component);

  /// The moving average, in the host's memory. @pre There is one. Errors: as the device's.
  [[nodiscard]] expected<tensor> read_average() const;

  /// Changes one copy or all of them, on the host. Copies that add up share what is assigned to
  /// all; an integer loses its remainder. @returns The changed copy, in the host's memory; the
  /// first, if all were changed. Errors: as `read`, `changed` and `scattered`; invalid_argument
  /// where copies that are kept apart cannot be changed as one; unimplemented for a scatter into
  /// such copies.
  [[nodiscard]] expected<tensor> apply(int32_t component, change kind, const gradient& operand);

  /// Gradients brought to where updates are computed; those that lie there already are not copied.
  /// Row numbers stay in the host's memory. Errors: as the device's.
  [[nodiscard]] expected<std::vector<gradient>> placed(std::vector<gradient> gradients) const;

  /// One update of every copy. The version of a copy counts those that did not fail.
  /// @pre As `update_variable`; the gradients are `placed`.
  /// Errors: as the device's; throws what a program's rule throws.
  [[nodiscard]] expected<void> update(const update_plan& plan, const gradient_mean& mean);

  /// Makes every copy ready for the updates of a plan.
  /// Errors: as the device's; unimplemented for a rule that the device has no code for.
  [[nodiscard]] expected<void> prepare(const update_plan& plan);

  /// Squared norms of mean gradients of the first copy, as `troupe::squared_norms` has them.
  /// @pre As `update`.
  /// Errors: as the device's.
  [[nodiscard]] expected<std::vector<double>>
  squared_norms(std::span<const gradient_mean> means) const;

  /// The state that a checkpoint holds, in the host's memory: the first copy, but with the value by
  /// the rule. Errors: as the device's.
  [[nodiscard]] expected<variable_state> saved() const;

  /// Goes back to a saved state. Copies that add up share its value, as after an assignment.
  void restore(variable_state saved);

  /// Waits until the device has done all work of the stream. Errors: as the device's.
  [[nodiscard]] expected<void> wait() const;

private:
  [[nodiscard]] compute_stream& stream() const;
  [[nodiscard]] expected<void> place();
  [[nodiscard]] expected<tensor> to_host(const tensor& array) const;
  [[nodiscard]] expected<tensor> apply_on_device(int32_t component, change kind,
                                                 const gradient& operand);
  [[nodiscard]] expected<void> check(int32_t component) const;
  [[nodiscard]] size_t index_of(int32_t component) const;
  [[nodiscard]] expected<tensor> combined() const;
  [[nodiscard]] expected<tensor> apply_to_all(change kind, const gradient& operand);
  [[nodiscard]] tensor share(const tensor& whole) const;
  void take_apart();
  [[nodiscard]] bool is_as_first(size_t index) const;
  void bring_together();

  copies_config config_;
  std::vector<variable_state> copies_; ///< One, or `config_.count` of them.
  /// The values of a device that were read as they are now, by copy.
  mutable std::map<size_t, tensor> on_host_;
};

} // namespace troupe
