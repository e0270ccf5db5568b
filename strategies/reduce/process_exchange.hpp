// SPDX-License-Identifier: Apache-2.0
// Reductions whose values come from several processes: noted down first, worked out when all is
// there.
#pragma once

#include "strategies/reduce/process_group.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A reduction walks through a nest of values, and must not wait at each of them for the other
/// processes. So it is made twice with one exchange: the first time it notes which collectives it
/// needs, and what it computes is of no matter; then all of them are made at once; the second time
/// it finds their results, in the same order.
///
/// Thread: one at a time.
class process_exchange {
public:
  /// @param what Is exchanged, for errors and to tell calls apart: "all_reduce SUM". The same in
  /// all processes.
  process_exchange(const process_group& group, std::string what)
    : group_(group), what_(std::move(what)) {}

  [[nodiscard]] const process_group& group() const { return group_; }

  /// Whether this is the first time: results are placeholders then.
  [[nodiscard]] bool is_noting() const { return is_noting_; }

  /// The sum of the contributions of all processes, in the order of replicas if that is fixed.
  /// Contributions may lie on devices if these make the sum, which stays there then.
  /// @param of What they are, if there are several values: "gradient of w".
  /// @param divisor Of the sum, if it stays on a device; on the host the caller divides.
  /// Shape: contributions  any, alike; the same number in all processes
  /// Errors: throws `failure` as `check_alike`.
  [[nodiscard]] tensor sum(std::span<const tensor> contributions, std::string_view of = {},
                           double divisor = 1);

  /// Those of all processes behind each other along dimension 0, in the order of replicas.
  /// Shape: parts  [rows, ...], of any number of rows
  [[nodiscard]] tensor gather(std::span<const tensor> parts, std::string_view of = {});

  /// The value of the first process, for all. Shape: the same everywhere.
  [[nodiscard]] tensor broadcast(const tensor& value, std::string_view of = {});

  /// Likewise; and the first process learns, too, if another makes another call. Costs a barrier.
  [[nodiscard]] tensor broadcast_to_all(const tensor& value, std::string_view of = {});

  /// What the first time has noted.
  [[nodiscard]] const std::vector<collective_call>& calls() const { return calls_; }

  /// What each of `calls` is to be divided by, if its result lies on a device.
  [[nodiscard]] const std::vector<double>& divisors() const { return divisors_; }

  /// Ends the first time. @param results Of `calls`, in their order.
  void settle(std::vector<tensor> results);

private:
  [[nodiscard]] std::string name(std::string_view of) const;
  tensor note_or_take(collective_kind kind, std::span<const tensor> contributions,
                      std::string_view of, double divisor = 1);
  void note(collective_call call, double divisor = 1);

  const process_group& group_;
  std::string what_;
  bool is_noting_ = true;
  std::vector<collective_call> calls_;
  std::vector<double> divisors_;
  std::vector<tensor> results_;
  size_t taken_ = 0;
};

// As the functions without an exchange do for the replicas of one process. A null exchange stands
// for one process.

/// As `reduce_arrays`; each of `components` counts, so that a process may bring but one.
[[nodiscard]] tensor reduce_arrays(reduce_op op, std::span<const tensor> components,
                                   process_exchange* exchange, std::string_view of = {});

/// As `reduce_components`.
[[nodiscard]] gradient reduce_components(reduce_op op, std::span<const gradient> components,
                                         process_exchange* exchange, std::string_view of = {});

/// As `cross_device_ops::gather`.
[[nodiscard]] tensor gather_components(std::span<const tensor> components, int64_t axis,
                                       process_exchange* exchange);

} // namespace troupe
