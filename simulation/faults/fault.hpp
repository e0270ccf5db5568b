// SPDX-License-Identifier: Apache-2.0
// The faults of a simulation, and their times.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"
#include "simulation/network/fault_injector.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// | kind             | what happens to those it is about                                        |
/// |------------------|--------------------------------------------------------------------------|
/// | crash            | the node ends; after `lasts` it is back: a replica rejoins, and the loss |
/// |                  | of the chief's or an owner's node restarts the job from its last         |
/// |                  | snapshot; the job takes a replicated owner in again instead              |
/// | crash_with_token | a crash, but not before the replica has got its next token               |
/// | freeze           | the node does nothing, and neither hears nor says anything               |
/// | partition        | messages wait that cross from `who` to `other`, and back unless          |
/// |                  | `one_way`                                                                |
/// | slow             | whatever the node hears and says takes `factor` times as long            |
/// | messages         | messages of the kind `message` to and from `who` are lost, doubled or    |
/// |                  | late                                                                     |
/// | corrupt          | the replica's next gradient is not what it should be, as `how` says      |
/// | skew             | the node's clock goes `ahead`, and runs `rate` times as fast             |
/// | swizzle          | a random half of `who` is cut off one by one, and let back in another    |
/// |                  | order                                                                    |
///
/// A replica's process that has lost the chief, or an owner without a mirror, because one of both
/// was silent, ends and is started again: it comes back when it is neither frozen nor cut off any
/// more, and what a crash takes is over. If a process of another kind is given up the job ends, and
/// begins again then; but for parameter servers whose variables have mirrors. If two of these lose
/// only each other, one of them ends.
enum class fault_kind : uint8_t {
  crash,
  crash_with_token,
  freeze,
  partition,
  slow,
  messages,
  corrupt,
  skew,
  swizzle,
};

/// The name that files and flags use. Errors: of the second, invalid_argument, naming all.
[[nodiscard]] std::string_view to_string(fault_kind kind);
[[nodiscard]] expected<fault_kind> parse_fault_kind(std::string_view name);

/// How a gradient is corrupt.
enum class corruption : uint8_t { none, not_a_number, wrong_shape };

/// One thing that goes wrong.
struct fault {
  fault_kind kind = fault_kind::crash;
  job_time at{0};    ///< On the world's clock.
  job_time lasts{0}; ///< 0 = for good; of a swizzle: until all are back.
  /// Nodes: "replica 3", "ps 0", "chief"; empty = all replicas; of `messages`, any node.
  std::vector<std::string> who;
  std::vector<std::string> other; ///< The other side of a partition; empty = all other nodes.
  bool one_way = false;
  double factor = 10;  ///< For `slow`; above 0. Several at a time multiply.
  job_time ahead{0};   ///< For `skew`: stays for good, because such clocks do not go back.
  double rate = 1;     ///< For `skew`, until it is over; above 0. Several at a time multiply.
  std::string message; ///< For `messages`: "PushGradient", "Token"; empty = all kinds.
  fault_probabilities probabilities = {}; ///< For `messages`.
  corruption how = corruption::not_a_number;
};

/// Faults by chance: a process for each replica, drawn from the seed. A mean of 0 = never.
struct fault_rates {
  job_time crash_mean{0};  ///< Between a replica's start and its crash (MTBF); exponential.
  job_time return_mean{0}; ///< Until it is back (MTTR); exponential; 0 = never.
  job_time warm_up{0};     ///< The run's beginning, in which no replica crashes.
  double permanent = 0;    ///< The share of crashes after which the replica stays down; 0 to 1.
  uint32_t down_max
    = 0; ///< No replica crashes while so many are down, for good or not; 0 = it may.
  job_time freeze_mean{0};  ///< Between freezes of a replica; exponential.
  job_time thaw_mean{0};    ///< How long one lasts.
  job_time wave_mean{0};    ///< Between waves in which several replicas crash at once.
  uint32_t wave_size = 1;   ///< How many; they are back like others.
  job_time swizzle_mean{0}; ///< Between swizzles of all replicas.
  job_time swizzle_lasts{std::chrono::seconds{10}};

  [[nodiscard]] bool is_empty() const {
    return crash_mean + freeze_mean + wave_mean + swizzle_mean == job_time{0};
  }

  /// About how many faults of all replicas come while a step is made: an estimate of what it takes
  /// to simulate one. A replica that crashes computes its gradient again.
  /// @param gradient_seconds How long a replica computes. @param step_seconds_max A step ends then.
  [[nodiscard]] double count_in_step(uint32_t replicas, double gradient_seconds,
                                     double step_seconds_max) const;
};

/// The end of a fault that lasts for good.
constexpr job_time for_good = job_time::max();

/// All that goes wrong in a run.
struct fault_plan {
  std::vector<fault> faults;
  fault_rates rates;

  [[nodiscard]] bool is_empty() const { return faults.empty() && rates.is_empty(); }

  /// Errors: invalid_argument, naming the fault and what is wrong with it: nodes that there are
  /// not, times below 0, factors that are none, probabilities above 1.
  [[nodiscard]] expected<void> validate(uint32_t replicas, uint32_t owners) const;

  /// True if messages may be lost or doubled: then replicas have to ask again.
  [[nodiscard]] bool loses_messages() const;

  /// The longest time that a replica is away which comes back; 0 if none does. One that is frozen
  /// or cut off is given up if `silence_timeout` is not 0, and comes back, too. A drawn time
  /// counts as one that one in 10^8 exceeds.
  [[nodiscard]] job_time longest_absence(job_time silence_timeout) const;

  /// True if gradients are not what they should be.
  [[nodiscard]] bool corrupts() const;

  /// True if the chief's or an owner's node crashes, or is frozen or cut off and so may be given
  /// up.
  [[nodiscard]] bool restarts_job() const;
};

} // namespace troupe
