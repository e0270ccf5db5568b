// SPDX-License-Identifier: Apache-2.0
// Cross-device operations: the ways to reduce the values of several devices to one.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "strategies/values/distributed_value.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How values are combined.
enum class reduce_op : uint8_t { sum, mean };

/// "SUM", "MEAN".
[[nodiscard]] std::string_view to_string(reduce_op op);

/// The divisor of a sum of so many values: their number for a mean, else 1.
/// Errors: throws `failure` with invalid_argument for any other operation.
[[nodiscard]] double divisor_of(reduce_op op, size_t values);

/// The operation of that name, in any case.
/// Errors: throws `failure` with invalid_argument.
[[nodiscard]] reduce_op to_reduce_op(std::string_view name);

/// The algorithm that moves the bytes; docs/collectives.md lists the costs.
enum class communication_implementation : uint8_t {
  automatic,
  ring,
  nccl,
  halving_doubling,
  tree,
};

/// Hints for a reduction. The options of a call win over those of the strategy.
struct communication_options {
  /// Values of a batch are reduced together until a pack is larger than this; 0: all in one pack.
  /// Between processes, 0 leaves large values out of it: copying them costs more than a message.
  int64_t bytes_per_pack = 0;
  std::optional<double> timeout_seconds; ///< None, or 0: the strategy's deadline.
  communication_implementation implementation = communication_implementation::automatic;

  /// Errors: throws `failure` with invalid_argument ("bytes_per_pack must be non-negative").
  void validate() const;

  /// These options, but those of `other` that are not at their defaults.
  [[nodiscard]] communication_options merge(const communication_options& other) const;
};

/// The implementation of that name, in any case: "auto", "ring", "nccl", "halving_doubling",
/// "tree".
/// Errors: throws `failure` with invalid_argument.
[[nodiscard]] communication_implementation to_communication_implementation(std::string_view name);

/// The devices that a result is wanted on. Made from anything that lives on devices.
class destinations {
public:
  destinations(const char* device) : destinations(std::string{device}) {}

  destinations(std::string device) : destinations(std::vector<std::string>{std::move(device)}) {}

  destinations(const variable& variable) : devices_(variable.devices()) {}

  /// Errors: throws `failure` with invalid_argument ("destinations can not be empty"), and as
  /// `canonical_devices`.
  explicit destinations(std::vector<std::string> devices);

  [[nodiscard]] const std::vector<std::string>& devices() const { return devices_; }

private:
  std::vector<std::string> devices_; ///< Canonical names, without repetitions.
};

/// A value with a component on each of some devices, in the order of replicas.
struct device_values {
  std::vector<gradient> components; ///< At least one; all dense or all sparse.
  std::vector<std::string> devices; ///< The device of each component.
};

/// The arrays of components that are all dense.
[[nodiscard]] std::vector<tensor> dense_components(std::span<const gradient> components);

/// Arrays or rows of replicas, as reductions take them.
[[nodiscard]] distributed_value<gradient> as_gradients(const distributed_value<tensor>& value);
[[nodiscard]] distributed_value<gradient>
as_gradients(const distributed_value<indexed_slices>& value);

/// Refuses an array of a replica that has another dtype than the array of the first replica.
/// Errors: throws `failure` with type_mismatch.
void check_same_type(const tensor& value, size_t replica, const tensor& first,
                     size_t first_replica = 0);

/// Refuses arrays of several replicas that are not of one dtype and shape.
/// @param first_replica The index of the first replica, for the error.
/// Errors: throws `failure` with invalid_argument or type_mismatch.
void check_alike(std::span<const tensor> components, uint32_t first_replica = 0);

/// Whether each row has one number. Shape: indices [rows]; values [rows, ...].
[[nodiscard]] bool are_numbered(const indexed_slices& rows);

/// Refuses rows that are not numbered. @param giver The subject of the error: "replica 1".
/// Errors: throws `failure` with invalid_argument.
[[noreturn]] void refuse_rows(const indexed_slices& rows, std::string_view giver);

/// Whether the components of a value are rows of arrays.
/// @param first_replica The index of the first replica, for the error.
/// Errors: throws `failure`: type_mismatch if some are and some are not; invalid_argument for none;
/// as `refuse_rows`, naming the replica.
[[nodiscard]] bool are_sparse(std::span<const gradient> components, uint32_t first_replica = 0);

/// The sum of arrays, divided by a number. @pre They are alike; there is at least one.
[[nodiscard]] tensor divided_sum(std::span<const tensor> components, double divisor);

/// The sum or mean of arrays, element by element. Errors: as `reduce_components`.
[[nodiscard]] tensor reduce_arrays(reduce_op op, std::span<const tensor> components);

/// The sum or mean of the components of a value.
/// Dense: of one dtype and shape; f16 and bf16 are added in float. Sparse: rows and indices behind
/// each other in replica order, not combined; a mean divides the rows by the number of components;
/// the dense extents are those of the first, which others may leave out. The first replicas of all
/// processes give them alike, or none does.
/// Errors: throws `failure` with invalid_argument or type_mismatch if components do not fit
/// together; the line names the replica. A mean of integers is cut towards 0.
[[nodiscard]] gradient reduce_components(reduce_op op, std::span<const gradient> components);

/// Reductions between devices. All implementations compute the same values; they differ in which
/// device adds which part. On CPUs that share memory, a result that is wanted on several of them is
/// one array.
///
/// Thread: any, if the values are not written meanwhile.
class cross_device_ops {
public:
  virtual ~cross_device_ops() = default;

  /// One value, reduced; the result is the same on all `to`.
  /// Errors: throws `failure` as `reduce_components`.
  [[nodiscard]] gradient reduce(reduce_op op, const device_values& value,
                                const destinations& to) const;

  /// Reduces several values, each as `reduce` does; the results are in their order.
  [[nodiscard]] std::vector<gradient>
  batch_reduce(reduce_op op, std::span<const std::pair<device_values, destinations>> values,
               const communication_options& options = {}) const;

  /// Sums that stay where devices make them. @param values The components of each.
  /// @returns The sums of each value, one on each device that makes it; none, if no device does:
  /// such a value is left to `batch_reduce`. Errors: as there.
  [[nodiscard]] virtual std::vector<std::vector<tensor>>
  sums_on_devices(std::span<const std::vector<tensor>> values) const;

  /// The components of a value behind each other along `axis`, in the order of replicas.
  /// Errors: throws `failure` with invalid_argument for scalars, an axis out of range, or extents
  /// that differ in another dimension.
  [[nodiscard]] static tensor gather(std::span<const tensor> components, int64_t axis);

  /// The dimension that `gather` uses for an axis. Errors: as there.
  [[nodiscard]] static size_t gathered_axis(std::span<const tensor> components, int64_t axis);

  /// The array that all `to` have of a value: the value itself, because devices share the host's
  /// memory. A subclass may hand out another one; it must not wait for devices.
  [[nodiscard]] virtual tensor broadcast(const tensor& value, const destinations& to) const;

  /// "reduction_to_one_device": as messages and command lines call it.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Whether a reduction waits for devices. Then it never runs on a thread that runs actors,
  /// however small the values are.
  [[nodiscard]] virtual bool waits() const { return false; }

protected:
  /// @pre Dense values of one dtype, their components on the same devices, all wanted there.
  [[nodiscard]] virtual std::vector<gradient>
  batch_all_reduce(reduce_op op, std::span<const device_values* const> values,
                   const communication_options& options) const = 0;
};

/// One device adds all components, value by value; the others get the result from it.
class reduction_to_one_device final : public cross_device_ops {
public:
  /// @param reduce_to_device The device that adds; empty: the first destination. It makes no
  /// difference where devices share memory.
  explicit reduction_to_one_device(const std::string& /*reduce_to_device*/ = {}) {}

  [[nodiscard]] std::string_view name() const override { return "reduction_to_one_device"; }

protected:
  [[nodiscard]] std::vector<gradient>
  batch_all_reduce(reduce_op op, std::span<const device_values* const> values,
                   const communication_options& options) const override;
};

/// The common part of reductions by all devices: the values of a batch are laid behind each other
/// and cut into packs. Sparse values, and values that are wanted elsewhere, go by way of one
/// device.
class packed_all_reduce : public cross_device_ops {
protected:
  /// @param num_packs Packs that a batch is cut into; 0: no packing, value by value. The option
  /// `bytes_per_pack` of a batch wins over it.
  /// Errors: throws `failure` with invalid_argument if negative.
  explicit packed_all_reduce(int num_packs);

  [[nodiscard]] std::vector<gradient>
  batch_all_reduce(reduce_op op, std::span<const device_values* const> values,
                   const communication_options& options) const final;

  /// The sums or means of all packs of a batch, in their order.
  /// @param packs The components of each pack. Packs may differ in dtype and shape.
  [[nodiscard]] virtual std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const = 0;

private:
  int num_packs_;
};

/// All devices add, each some of the elements.
class all_reduce_ops final : public packed_all_reduce {
public:
  explicit all_reduce_ops(int num_packs = 1) : packed_all_reduce(num_packs) {}

  [[nodiscard]] std::string_view name() const override { return "all_reduce"; }

protected:
  [[nodiscard]] std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const override;
};

} // namespace troupe
