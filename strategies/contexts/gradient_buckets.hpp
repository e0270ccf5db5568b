// SPDX-License-Identifier: Apache-2.0
// Buckets of gradients, which are combined while other gradients are still computed.
#pragma once

#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/contexts/replica_context.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe {

/// A backward pass computes the gradients of the last layers first. They can travel to the other
/// processes while the rest is computed. So variables are put into buckets, the last ones first. A
/// bucket leaves as soon as all replicas of this process have marked its gradients as ready, and
/// the buckets before it have left:
///
///     gradient_buckets buckets{strategy, variables};
///     ...
///     auto marker = buckets.begin(context); // in each replica, in every step
///     auto computing = context.compute([=](std::stop_token) {
///       for (size_t layer = layers; layer-- > 0;)
///         marker.ready(weights[layer], backward(layer));
///       return true;
///     });
///     co_await computing;
///     auto reducing = buckets.reduced(context);
///     auto sums = co_await reducing;
///     auto applying = optimizer.apply_reduced_gradients(context, sums);
///     co_await applying;
///
/// Where a tape computes the gradients, `optimizer.minimize(context, loss, buckets)` does all this.
/// Gradients that lie on devices leave when all replicas have come to `reduced`. If devices add
/// between processes, they are added there. Their sums stay where their variables lie; where each
/// device has one, a replica is given the sum on its own device. Gradients of a narrower dtype than
/// their variable's are widened first, on the host.
/// Between `begin` and `reduced` a replica makes no other call that other processes take part in.
/// After a run that has failed, make new buckets.
///
/// A cheap value; copies mean the same buckets. Thread: any.
class gradient_buckets {
public:
  /// @param variables The variables in the order of a forward pass. @param strategy Outlives the
  /// buckets.
  /// @param bytes_per_bucket A bucket is full once it is larger. Buckets hold one dtype each.
  /// Errors: throws `failure` with invalid_argument for no variables, one twice, or one of another
  /// strategy.
  gradient_buckets(strategy& strategy, std::vector<variable> variables,
                   size_t bytes_per_bucket = size_t{4} << 20);

  // A move copies, so that a handle that was moved from still means the same.
  gradient_buckets(const gradient_buckets&) = default;
  gradient_buckets& operator=(const gradient_buckets&) = default;

  /// The variables in the order in which they were given.
  [[nodiscard]] const std::vector<variable>& variables() const;

  /// The variables of each bucket, by index, in the order in which buckets leave.
  [[nodiscard]] const std::vector<std::vector<size_t>>& layout() const;

  /// The number of buckets of this step that have their sums. Thread: any.
  [[nodiscard]] size_t settled() const;

  /// A replica's step, as the work that it computes sees it. Thread: any.
  class marker {
  public:
    marker(const marker&) = default; // a move copies, too
    marker& operator=(const marker&) = default;

    /// Marks a gradient as final. Rows leave as the array that they are rows of.
    /// Cost: the call that fills a bucket sends it; it copies small gradients, as `pack` does.
    /// Errors: throws `failure`: invalid_argument for a variable that is in no bucket, another
    /// shape, or row numbers out of range; type_mismatch for a dtype that does not widen to the
    /// variable's; failed_precondition for a gradient that is ready already.
    void ready(const variable& variable, const gradient& gradient) const;

  private:
    friend class gradient_buckets;
    struct place;

    explicit marker(std::shared_ptr<const place> here) : place_(std::move(here)) {}

    std::shared_ptr<const place> place_;
  };

  /// Begins a step of a replica.
  /// Errors: throws `failure`: wrong_context; failed_precondition if its last step is not reduced.
  [[nodiscard]] marker begin(replica_context& context) const;

  /// Waits for all buckets: a merge_call, which all replicas have to make.
  /// @returns The sums over all replicas of all processes, in the order of the variables.
  /// Errors: as `merge_call`; throws `failure`: failed_precondition if a gradient is not ready; as
  /// `reducer`.
  [[nodiscard]] task<std::vector<gradient_and_variable>> reduced(replica_context& context) const;

private:
  struct shared_state;

  std::shared_ptr<shared_state> state_;
};

} // namespace troupe
