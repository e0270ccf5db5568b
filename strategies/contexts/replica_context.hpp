// SPDX-License-Identifier: Apache-2.0
// The context of a step function: the calls that it makes for its replica.
#pragma once

#include "actors/replication/request_session.hpp"
#include "actors/training/rendezvous.hpp"
#include "actors/world/activity.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/cross_replica_context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/contexts/replicas_at_work.hpp"
#include "strategies/contexts/variable_access.hpp"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

struct job_actors;

/// A value that a replica brings to a reduction. Each counts, even if all are the same.
template <class T>
using brought_value = std::shared_ptr<const T>;

/// Whether work that a replica computes is for its device, not for the computing threads.
template <class Work>
concept computes_on_device = std::invocable<Work, std::stop_token, compute_stream&>;

/// The type that work of a replica returns.
template <class Work>
using computed_by =
  typename std::conditional_t<computes_on_device<Work>,
                              std::invoke_result<Work, std::stop_token, compute_stream&>,
                              std::invoke_result<Work, std::stop_token>>::type;

/// The step function of a trainer runs on every replica at once; the context tells it which replica
/// it is, reads and changes variables for it, computes for it, and lets it meet the other replicas.
/// Its tasks throw `failure`.
///
/// Thread: only the step function that it was given to.
class replica_context final : public variable_access {
public:
  /// Where a replica stands among the others.
  struct place {
    uint32_t replica = 0;                     ///< Index among the replicas of this process.
    uint32_t replicas = 1;                    ///< Replicas of this process.
    std::shared_ptr<const job_actors> actors; ///< The actors of a job; null in a run.
    troupe::strategy* owner = nullptr;
    rendezvous_actor meeting;   ///< Where the replicas of a run meet; null in a job.
    uint32_t first_replica = 0; ///< Index of this process's first replica among all replicas.

    // The two members that decide which changes of variables a replica of a job may make.

    uint32_t replicas_here = 1;                ///< Replicas of the job in this process.
    std::shared_ptr<replicas_at_work> at_work; ///< Which of them are at work. Null in a run.
  };

  replica_context(activity& activity, place here) : activity_(activity), place_(std::move(here)) {}

  replica_context(const replica_context&) = delete;
  replica_context& operator=(const replica_context&) = delete;

  /// This replica's index, from 0 to below `num_replicas_in_sync`.
  [[nodiscard]] uint32_t replica_id_in_sync_group() const {
    return place_.first_replica + place_.replica;
  }

  [[nodiscard]] uint32_t num_replicas_in_sync() const;

  [[nodiscard]] troupe::strategy& strategy() const { return *place_.owner; }

  /// The device that this replica computes on: "cpu:1".
  [[nodiscard]] const std::string& device() const;

  /// The global step that this replica's next gradient is for.
  [[nodiscard]] uint64_t local_step() const { return activity_.local_step(); }

  /// How many steps this replica has made before this one, dropped ones included; in a `run`, how
  /// many of these the strategy has made before.
  [[nodiscard]] uint64_t iteration() const { return activity_.iteration(); }

  /// A random stream of this replica's current iteration: the same numbers in every world.
  [[nodiscard]] random_key random(std::string_view purpose) const;

  /// The values of variables as they are now: immutable views of their owners' memory.
  /// Cost: one request for each variable, all at once.
  [[nodiscard]] task<std::vector<tensor>> read(std::vector<variable> variables);

  /// As `read`, for work that this replica computes: a variable that lies on its device is given
  /// where it lies, and may be read there only; others lie in the host's memory. A gradient
  /// that is left beside such a variable is handed over by reference: it must stay as it is until
  /// it is part of an update, so give a copy of what `cuda_stream::repeat` returns.
  [[nodiscard]] task<std::vector<tensor>> read_on_device(std::vector<variable> variables);

  /// The value of one variable, in the host's memory: this replica's copy of it.
  [[nodiscard]] task<tensor> read(variable source) override;

  // ---- with the other replicas, in a run ----

  /// Waits until all replicas are in the same merge_call; then `merge`, that of replica 0, runs
  /// once in the cross-replica context, with the arguments of all regrouped
  /// (strategies/values/nest.hpp), and each replica gets its own part of the result.
  /// @param merge `R f(cross_replica_context&, ...)` or a coroutine `task<R> f(...)`.
  /// Errors: throws `failure`: wrong_context; invalid_argument for an empty function;
  /// failed_precondition if another replica is in a call
  /// with another function or structure, or has returned; cancelled if another replica failed; and
  /// rethrows, in every replica, what `merge` threw.
  template <class Merge, class... Arguments>
  [[nodiscard]] auto merge_call(Merge merge, Arguments... arguments)
    -> task<selected_t<awaited_result_t<Merge, cross_replica_context, regrouped_t<Arguments>...>>>;

  /// The sum or mean of the values of all replicas, for each of them. Nests are reduced leaf by
  /// leaf: arrays, sparse rows, numbers. A value counts once for each replica that gives it.
  /// Replicas may share an array of the result, which is read-only then.
  /// @param options In each process, the options of its first replica count.
  /// Errors: as `merge_call`; throws `failure` in every replica if values do not fit together, or
  /// as `reducer`.
  template <class T>
  [[nodiscard]] task<T> all_reduce(reduce_op op, T value, communication_options options = {});

  /// The values of all replicas behind each other along `axis`, where their extents may differ.
  /// The result is read-only where replicas share it.
  /// @param options As for `all_reduce`.
  /// Errors: as `merge_call`; `failure` as `cross_device_ops::gather`, and as
  /// `reducer`.
  [[nodiscard]] task<tensor> all_gather(tensor value, int64_t axis,
                                        communication_options options = {});

  /// Turns the gradient by the result of `all_reduce(op, x)` into the gradient by x, which is
  /// reduced by the same operation.
  [[nodiscard]] task<tensor> all_reduce_gradient(reduce_op op, tensor by_result) {
    return all_reduce(op, std::move(by_result));
  }

  /// Turns the gradient by the result of `all_gather(x, axis)` into the gradient by x: this
  /// replica's part of the sum. @param extent The extent of this replica's x along `axis`.
  [[nodiscard]] task<tensor> all_gather_gradient(tensor by_result, int64_t axis, int64_t extent);

  /// Makes a variable, as `strategy::make_variable` does, once for all replicas: all have to make
  /// it, and get the same one. It begins with the value of replica 0. Names may differ by a number
  /// at the end of each part: "dense_1/bias" is the "dense/bias" of another replica.
  /// Errors: as `merge_call`; as `strategy::make_variable`; throws `failure` with invalid_argument
  /// if names differ ("Tried to create variable ... with mismatching name").
  [[nodiscard]] task<variable> make_variable(std::string name, tensor initial,
                                             variable_options options = {});

  /// A merge_call of the function `cross_replica_context::update`: all replicas have to make it.
  /// @returns What the function returned for this replica's copy.
  template <class Function, class... Arguments>
  [[nodiscard]] auto update(variable target, Function function, Arguments... arguments) {
    auto updating = [function](cross_replica_context& context, variable of_all,
                               regrouped_t<Arguments>... regrouped) {
      return context.update(std::move(of_all), function, std::move(regrouped)...);
    };
    return merge_call(std::move(updating), std::move(target), std::move(arguments)...);
  }

  /// Runs `work(std::stop_token)` on the world's computing threads and gives back what it returns.
  /// Compute gradients here, not in the step function itself: this one's time is what the ledger
  /// shows, what `pace` stretches, and what a step that has enough gradients cancels.
  /// Errors: rethrows what `work` threw; throws `failure` with cancelled if the gradient is wanted
  /// no more, which a step function need not catch.
  /// `work(std::stop_token, compute_stream&)` computes on the replica's device instead, by what it
  /// asks the stream for; the result is given back when the stream has done it.
  /// Errors: as above; throws `failure` with unavailable if the device is lost, deadline_exceeded
  /// if it stands still, resource if it refuses.
  template <class Work>
  [[nodiscard]] task<computed_by<Work>> compute(Work work);

  /// Copies arrays that lie on devices of the strategy to pinned memory of the host, for a caller
  /// that looks at results which it left there. Arrays of the host stay as they are.
  /// @param arrays Live until this is over. Errors: as `compute`; throws `failure` with
  /// invalid_argument for one that is not row-major.
  [[nodiscard]] task<void> bring_to_host(std::vector<tensor*> arrays);

  /// Asks an actor, of Troupe or of your own, and waits for its `Reply` without holding a thread.
  /// @returns An awaitable of `expected<Reply>`: the reply, or the other side's error; unavailable
  /// if it is gone, invalid_argument for an empty handle, user_code if its handler throws.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto request(Handle to, Message message) {
    return activity_.request<Reply>(std::move(to), std::move(message));
  }

  /// Has checkpoints hold `value` for this replica, such as the position in its data. The value of
  /// the last call counts. It must not be written to afterwards.
  /// Errors: throws `failure` with limit_exceeded for a name of more than 4,096 bytes, or a tensor
  /// of rank 33 or more; invalid_argument for a name that is no UTF-8; failed_precondition for
  /// elements on a device.
  void keep(const std::string& name, const tensor& value);

  /// The value that was kept under that name, in this job or in the job that it goes on from.
  [[nodiscard]] std::optional<tensor> kept(const std::string& name) const;

  /// Tells the ledger and the metrics about this step.
  /// @param loss The mean over the batch. @param examples The number of examples in the batch; 0:
  /// it is not known.
  void report(double loss, uint32_t examples) {
    // A NaN alone would say that nothing was reported.
    auto is_unclear = examples == 0 && std::isnan(loss);
    loss_ = is_unclear ? std::numeric_limits<double>::infinity() : loss;
    examples_ = examples;
  }

protected:
  [[nodiscard]] task<tensor> apply(variable target, change operation,
                                   variable_operand operand) override;

private:
  friend class replica_step;
  friend class sync_replicas_optimizer;
  friend class training_session;

  void settle(const work_outcome& outcome);

  /// Makes a change of a variable in a step of a job.
  [[nodiscard]] task<tensor> apply_in_job(variable target, change operation,
                                          variable_operand operand);

  /// Asks the owner for a change in a job, which counts once. @param message The change, without a
  /// number.
  [[nodiscard]] task<tensor> change_once(variable target, msg<wire::ChangeVariable> message);

  [[nodiscard]] task<std::vector<tensor>> read_for(std::vector<variable> variables,
                                                   troupe::device computes_on);

  /// Values on a device that bundles hold, left where they lie, by the index of the variable.
  [[nodiscard]] task<std::map<size_t, tensor>> read_bundles(troupe::device device);

  /// The actor to ask for a variable: in a job, as this replica knows it.
  /// Errors: throws `failure` as `check_same_world`.
  [[nodiscard]] const variable_owner_actor& owner_of(const variable& source) const;

  /// Tells the others that this replica is in a merge_call. It is woken with the arguments of all
  /// if it is replica 0, else with the result.
  void arrive(merge_site site, std::shared_ptr<void> arguments);

  /// Tells the others the result of replica 0's merge function.
  void announce(merge_result merged);

  activity& activity_;
  place place_;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  uint32_t examples_ = 0;
  job_time compute_time_{0}; ///< Time spent computing in this step so far.
  job_time computed_at_{0};  ///< When the last computation was over, on the world's clock.
  job_time waited_{0};       ///< How long it waited for the token that began this step.
  bool has_token_ = true;    ///< False between the end of a step and the token for the next.
  uint64_t tokens_taken_ = 0;
  uint64_t questions_ = 0;                    ///< Requests for tokens so far.
  std::map<size_t, request_numbers> changes_; ///< By variable, where they may be asked for again.
};

template <class Work>
task<computed_by<Work>> replica_context::compute(Work work) {
  check_given("compute", work);
  if constexpr (computes_on_device<Work>) {
    auto handed = hand_over<std::stop_token, compute_stream&>(place_.owner, std::move(work));
    auto computing = activity_.compute_on_device(std::move(handed.run));
    auto outcome = co_await computing;
    settle(outcome);
    co_return handed.take();
  } else {
    auto handed = hand_over<std::stop_token>(place_.owner, std::move(work));
    auto computing = activity_.compute(std::move(handed.run));
    auto outcome = co_await computing;
    settle(outcome);
    co_return handed.take();
  }
}

template <class Merge, class... Arguments>
auto replica_context::merge_call(Merge merge, Arguments... arguments)
  -> task<selected_t<awaited_result_t<Merge, cross_replica_context, regrouped_t<Arguments>...>>> {
  using result_type = awaited_result_t<Merge, cross_replica_context, regrouped_t<Arguments>...>;
  using nest_type = std::tuple<Arguments...>;
  context_check::replica("merge_call", *this);
  check_given("merge_call", merge);
  merge_site site{&typeid(Merge)};
  if constexpr (std::is_pointer_v<Merge>) site.address = reinterpret_cast<const void*>(merge);
  auto own = std::make_shared<nest_type>(std::move(arguments)...);
  site.structure = structure_of(*own);
  std::shared_ptr<void> woken;
  if (place_.replicas == 1) {
    woken = std::make_shared<gathered_arguments>(1, std::move(own));
  } else {
    arrive(std::move(site), std::move(own));
    auto sleeping = activity_.woken();
    woken = co_await sleeping;
  }
  if (place_.replica == 0) {
    merge_result merged;
    context_guard entered{{.kind = context_kind::cross_replica,
                           .owner = place_.owner,
                           .beside = context_stack::current().top().beside}};
    try {
      auto gathered = std::static_pointer_cast<gathered_arguments>(woken);
      auto regrouped = regroup_erased<nest_type>(*gathered);
      cross_replica_context context{*place_.owner, activity_};
      auto merging = call_erased(std::move(merge), std::move(regrouped), context);
      merged.value = co_await merging;
    } catch (...) {
      merged.thrown = std::current_exception();
    }
    announce(merged);
    if (merged.thrown) std::rethrow_exception(merged.thrown);
    woken = std::move(merged.value);
  }
  co_return select_replica(*std::static_pointer_cast<result_type>(woken), place_.replica);
}

template <class T>
task<T> replica_context::all_reduce(reduce_op op, T value, communication_options options) {
  auto reduce = [options](cross_replica_context& context, const distributed_value<reduce_op>& ops,
                          const distributed_value<brought_value<T>>& values) {
    return context.reduce_brought(ops.local_results(), values.local_results(), options);
  };
  auto own = std::make_shared<const T>(std::move(value));
  return merge_call(reduce, op, brought_value<T>{std::move(own)});
}

} // namespace troupe
