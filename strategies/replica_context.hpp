// SPDX-License-Identifier: Apache-2.0
// What a step function sees of the replica that runs it.
#pragma once

#include "actors/activity.hpp"
#include "actors/failure.hpp"
#include "actors/tensor_payload.hpp"
#include "kernels/random.hpp"
#include "strategies/variable.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

struct training_cast;

/// The step function of a trainer runs on every replica at once; the context tells it which replica
/// it is, reads variables for it and computes for it. What it awaits throws `failure`.
///
/// Thread: only the step function that it was given to.
class replica_context {
public:
  /// Where a replica stands among the others.
  struct place {
    uint32_t replica = 0;
    uint32_t replicas = 1;
    std::shared_ptr<const training_cast> cast; ///< Whom this job's gradients and tokens go to.
  };

  replica_context(activity& activity, place place)
    : activity_(activity), place_(std::move(place)) {}

  /// This replica's index, from 0 to below `num_replicas_in_sync`.
  [[nodiscard]] uint32_t replica_id_in_sync_group() const { return place_.replica; }

  [[nodiscard]] uint32_t num_replicas_in_sync() const { return place_.replicas; }

  /// The global step that this replica's next gradient is for.
  [[nodiscard]] uint64_t local_step() const { return activity_.local_step(); }

  /// How many steps this replica has made before this one, dropped ones included.
  [[nodiscard]] uint64_t iteration() const { return activity_.iteration(); }

  /// A random stream of this replica's current iteration: the same numbers in every world.
  [[nodiscard]] random_key random(std::string_view purpose) const;

  /// The values of variables as they are now: immutable views of their owners' memory.
  /// Cost: one request for each variable, all at once.
  [[nodiscard]] task<std::vector<tensor>> read(std::vector<variable> variables);

  /// Likewise for one variable.
  [[nodiscard]] task<tensor> read(variable source);

  /// Runs `work(std::stop_token)` on the world's computing threads and gives back what it returns.
  /// Compute gradients here, not in the step function itself: this one's time is what the ledger
  /// shows, what `pace` stretches, and what a step that has enough gradients cancels.
  /// Errors: rethrows what `work` threw; throws `failure` with cancelled if the gradient is wanted
  /// no more, which a step function need not catch.
  template <class Work>
  [[nodiscard]] task<std::invoke_result_t<Work, std::stop_token>> compute(Work work);

  /// Asks an actor, of Troupe or of your own, and waits for its `Reply` without holding a thread.
  /// @returns An awaitable of `expected<Reply>`: the reply, or the other side's error; unavailable
  /// if it is gone.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto request(Handle to, Message message) {
    return activity_.request<Reply>(std::move(to), std::move(message));
  }

  /// Has checkpoints hold `value` for this replica, such as the position in its data: that of the
  /// last call counts. Not to be written to afterwards.
  void keep(const std::string& name, const tensor& value) {
    activity_.keep(name, to_payload(value));
  }

  /// What was kept under that name, in this job or in the one that it goes on from.
  [[nodiscard]] std::optional<tensor> kept(const std::string& name) const;

  /// What the ledger and the metrics say of this step.
  /// @param loss Mean over the batch. @param examples In the batch.
  void report(double loss, uint32_t examples) {
    loss_ = loss;
    examples_ = examples;
  }

private:
  friend class sync_replicas_optimizer;
  friend class training_session;

  void settle(const work_outcome& outcome);

  activity& activity_;
  place place_;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  uint32_t examples_ = 0;
  job_time compute_time_{0}; ///< In this step so far.
  job_time waited_{0};       ///< For the token that began this step.
  bool has_token_ = true;    ///< False between the end of a step and the token for the next.
  uint64_t tokens_taken_ = 0;
};

template <class Work>
task<std::invoke_result_t<Work, std::stop_token>> replica_context::compute(Work work) {
  using result_type = std::invoke_result_t<Work, std::stop_token>;
  auto result = std::make_shared<std::optional<result_type>>();
  std::function<void(std::stop_token)> run
    = [work = std::move(work), result](std::stop_token stop) { result->emplace(work(stop)); };
  auto computing = activity_.compute(std::move(run));
  auto outcome = co_await computing;
  settle(outcome);
  co_return std::move(**result);
}

} // namespace troupe
