// SPDX-License-Identifier: Apache-2.0
// Reductions between processes: their collectives are noted first, and then made all at once.
#pragma once

#include "strategies/reduce/process_group.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A function that returns a value once its exchange is settled; it may be called once.
template <class T>
using pending = std::function<T()>;

/// The collectives that a reduction needs. Each call notes one collective, and returns a function
/// that gives its result. When all are noted they are made together, so that no value waits for the
/// round trip of another.
///
/// Thread: one at a time.
class process_exchange {
public:
  /// @param name The name of the call, for errors and to tell calls apart: "all_reduce SUM". The
  /// same in all processes.
  /// @param run_count Runs that the strategy has begun so far. Collectives name that, too: if a run
  /// fails in one process before it has made all calls, no call of the next run is taken for one.
  process_exchange(const process_group& group, std::string name, uint64_t run_count = 0);

  [[nodiscard]] const process_group& group() const { return group_; }

  /// The sum of the contributions of all processes, in the order of replicas if that is fixed.
  /// Contributions may lie on devices if these make the sum, which stays there then.
  /// @param value_name The name of the value, if there are several: "w" in "gradient of w".
  /// @param divisor The divisor of a sum that stays on a device; on the host the caller divides.
  /// Shape: contributions  any, alike; the same number in all processes
  /// Errors: throws `failure` as `check_alike`.
  [[nodiscard]] pending<tensor> sum(std::span<const tensor> contributions,
                                    std::string_view value_name = {}, double divisor = 1);

  /// The parts of all processes behind each other along dimension 0, in the order of replicas.
  /// Shape: parts  [rows, ...], of any number of rows
  [[nodiscard]] pending<tensor> gather(std::span<const tensor> parts,
                                       std::string_view value_name = {});

  /// The value of the first process, for all. Shape: the same everywhere.
  [[nodiscard]] pending<tensor> broadcast(const tensor& value, std::string_view value_name = {});

  /// The value of the first process, for all. The first process also learns if another makes
  /// another call. Costs a barrier.
  [[nodiscard]] pending<tensor> broadcast_to_all(const tensor& value,
                                                 std::string_view value_name = {});

  /// Gives all calls that are noted their options, over those of the group. To be called before
  /// `packed`. Errors: throws `failure` as `troupe::prepare`; invalid_argument for an array on a
  /// device that no device adds.
  void prepare(const communication_options& options);

  /// The bytes that `packed` may have to copy.
  [[nodiscard]] size_t bytes() const;

  /// The calls for the communicator.
  [[nodiscard]] packed_calls packed() const { return pack(calls_, bytes_per_pack_); }

  /// Takes the results of the calls. @param results One for each of `packed.calls`, in their order.
  void settle(const packed_calls& packed, const std::vector<tensor>& results);

  /// The result of each call, in the order in which they were noted.
  [[nodiscard]] std::vector<tensor>& results() { return *results_; }

  /// The divisor of each result that lies on a device.
  [[nodiscard]] const std::vector<double>& divisors() const { return divisors_; }

private:
  [[nodiscard]] std::string call_name(std::string_view value_name) const;
  pending<tensor> note(collective_kind kind, std::span<const tensor> contributions,
                       std::string_view value_name, double divisor = 1);
  pending<tensor> note(collective_call call, double divisor = 1);

  const process_group& group_;
  std::string name_;
  std::string run_; ///< " (run 3)"; empty before the first run.
  std::vector<collective_call> calls_;
  std::vector<double> divisors_;
  int64_t bytes_per_pack_ = 0;
  std::shared_ptr<std::vector<tensor>> results_ = std::make_shared<std::vector<tensor>>();
};

// These do between processes what the functions without an exchange do for the replicas of one
// process. A null exchange stands for one process.

/// As `reduce_arrays`; the arrays are kept until the result is asked for. Each of `components`
/// counts, so that a process may bring only one.
[[nodiscard]] pending<tensor> reduce_arrays(reduce_op op, std::span<const tensor> components,
                                            process_exchange* exchange,
                                            std::string_view value_name = {});

/// As `reduce_components`.
[[nodiscard]] pending<gradient> reduce_components(reduce_op op,
                                                  std::span<const gradient> components,
                                                  process_exchange* exchange,
                                                  std::string_view value_name = {});

/// As `cross_device_ops::gather`.
[[nodiscard]] pending<tensor> gather_components(std::span<const tensor> components, int64_t axis,
                                                process_exchange* exchange);

} // namespace troupe
