// SPDX-License-Identifier: Apache-2.0
// The coordinator: one process gives functions to workers, which run them at their own pace.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/coordinator/closure_service.hpp"
#include "strategies/coordinator/coordinated_function.hpp"
#include "strategies/coordinator/per_worker.hpp"
#include "strategies/coordinator/remote_value.hpp"
#include "strategies/coordinator/worker_nest.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// Asynchronous training by parameter servers needs no steps that all make together. One program is
/// started once for each process; all make the same strategy, variables, coordinator, inputs and
/// functions, in the same order. Then the chief's process schedules calls and the others serve:
///
///     cluster_coordinator coordinator{strategy};
///     auto data = coordinator.create_per_worker_dataset(my_batches);
///     auto step = coordinator.make_function(
///       "step", [=](closure_context& context, dataset_iterator& batches) -> task<double> {...});
///     if (!coordinator.leads()) {
///       coordinator.serve();
///       return;
///     }
///     auto iterator = data.iterator();
///     for (int i = 0; i < 1000; ++i) coordinator.schedule(step, iterator);
///     coordinator.join();
///
/// Calls go out in the order in which they were scheduled, to any worker that is idle, and end in
/// any order. Each is made **at least once**: a worker that is lost is not waited for, another one
/// makes its call again, whatever the first has changed already. A worker that is started again
/// serves again, with inputs made anew. A parameter server that is lost fails the calls that need
/// it; where owners are replicated, they go on, and each change counts once.
///
/// The first error of a call cancels all others, and is thrown once, by `schedule`, `join` or
/// `done`, when none runs any more; then the coordinator works as before. A fetch of the result
/// of a call that failed throws that call's error, at any time.
///
/// In one process there are as many workers as the strategy has replicas. In a cluster, one for
/// each replica of the processes that are called workers; a process that is called chief only
/// coordinates. Where none is, worker 0's process leads, and works, too.
///
/// All coordinators of one strategy are the same. It ends with the last of them: what is queued is
/// cancelled, what runs is waited for, and the others' `serve` returns.
/// Thread: the one that made the world.
/// Source: TensorFlow, `tf.distribute.coordinator.ClusterCoordinator`.
class cluster_coordinator {
public:
  /// @param strategy Outlives it. @param options They count for the first one of that strategy.
  /// Errors: throws `failure`: invalid_argument for another strategy than a parameter server
  /// strategy, or a queue without room; failed_precondition in a cluster without workers.
  explicit cluster_coordinator(troupe::strategy& strategy, coordinator_options options = {});

  cluster_coordinator(const cluster_coordinator&) = delete;
  cluster_coordinator& operator=(const cluster_coordinator&) = delete;

  [[nodiscard]] troupe::strategy& strategy() const { return service_->strategy(); }

  /// Whether this process schedules; else it has to `serve`.
  [[nodiscard]] bool leads() const { return service_->leads(); }

  [[nodiscard]] uint32_t num_workers() const { return service_->workers(); }

  // ---- in all processes, before the first call ----

  /// Makes a function that can be scheduled.
  /// @param name Not that of another one.
  /// @param function `R f(closure_context&, ...)` or a coroutine `task<R> f(...)`. Its parameters
  /// and results are what can travel (closure_leaves.hpp); a parameter `T&`, or in a nest a
  /// `std::reference_wrapper<T>`, is what each worker has of its own. Each call is made by a copy
  /// of the function. Errors: throws `failure` with invalid_argument for a name that is taken,
  /// empty or too long.
  template <class Function>
  auto make_function(const std::string& name, Function function) {
    check_given("make_function", function);
    using signature = detail::closure_signature<Function>;
    service_->registry().add(name, signature::registered(std::move(function)));
    return typename signature::handle{service_.get(), name};
  }

  /// A dataset for each worker, which the worker makes when a function first needs it. If that
  /// fails, so does each call that needs it.
  [[nodiscard]] per_worker_dataset
  create_per_worker_dataset(const std::function<dataset(const input_context&)>& make);

  /// As above, for a dataset that is the same for all workers.
  [[nodiscard]] per_worker_dataset create_per_worker_dataset(const dataset& source);

  /// An object of any type for each worker, made by the worker when a function first needs it.
  /// @param make `T make(const input_context&)`.
  template <class Make>
  [[nodiscard]] auto create_per_worker_resource(Make make) {
    check_given("create_per_worker_resource", make);
    using type = std::invoke_result_t<Make&, const input_context&>;
    auto number = service_->registry().add(
      {[make = std::move(make)](const input_context& context, uint32_t) mutable {
         return std::make_shared<type>(make(context));
       },
       &typeid(type)});
    return per_worker_resource<type>{service_.get(), {number, 0}};
  }

  /// Works for the coordinator until it ends, or `stop` is asked to stop.
  /// Errors: throws `failure`: wrong_context where it leads; unavailable, naming the process that
  /// leads, if that is gone without a word; as `placement::see`.
  void serve(const std::stop_token& stop = {}) { service_->serve(stop); }

  // ---- where it leads ----

  /// Has a function called by some worker. Waits only while the queue is full.
  /// @param arguments Values, or nests in which some are there for each worker (worker_nest.hpp).
  /// Errors: throws `failure`: the first error of the calls before; this one is cancelled, then;
  /// unavailable, from then on, once a parameter server is gone that held variables alone;
  /// invalid_argument for values of a number of workers that there is not, or of another
  /// coordinator; limit_exceeded for texts that are too long; wrong_context.
  template <class Result, class... Parameters, class... Arguments>

  requires(sizeof...(Parameters) == sizeof...(Arguments)
           && (schedulable_as<Arguments, Parameters> && ...)) //
    remote_value<Result> schedule(const coordinated_function<Result, Parameters...>& function,
                                  const Arguments&... arguments) {
    service_->check_call("schedule");
    service_->check_own(function.of(), "the function");
    auto outcome = std::make_shared<closure_outcome>();
    service_->schedule(function.name(), {argument<Parameters>(arguments)...}, outcome);
    return remote_value<Result>{std::move(outcome)};
  }

  /// Waits until all calls have been made; without workers, for their return.
  /// @param timeout A negative one is 0.
  /// Errors: throws `failure`: the first error of a call; deadline_exceeded after `timeout`, and
  /// if no call returns for `coordinator_options::stall_deadline`; unavailable, as `schedule`.
  void join(job_time timeout = world::for_ever) {
    service_->check_call("join");
    service_->join(timeout);
  }

  /// Whether all calls have been made. After an error it waits for those that still run.
  /// Errors: throws `failure`: the first error of a call.
  [[nodiscard]] bool done() {
    service_->check_call("done");
    return service_->done();
  }

  /// The values of remote values, anywhere in a nest; everything else as it is. Waits for them.
  /// Errors: throws `failure`: that of the call; cancelled, if another one failed first ("The
  /// corresponding function is cancelled. Please reschedule the function."); deadline_exceeded, as
  /// `join`.
  template <class T>
  [[nodiscard]] fetched_t<T> fetch(const T& nest) {
    service_->check_call("fetch");
    return map_nest(detail::fetch_leaf{service_->world()}, nest);
  }

private:
  template <class Parameter, class Argument>
  [[nodiscard]] closure_argument argument(const Argument& nest) const {
    using value_type = written_t<Parameter>;
    auto leaves_for = [&](uint32_t worker) {
      return leaves_of<value_type>(part_of(nest, {service_.get(), worker}));
    };
    if constexpr (!differs_between_workers<Argument>) {
      return leaves_for(0);
    } else {
      std::vector<std::vector<closure_value>> leaves;
      for (uint32_t worker = 0; worker < num_workers(); ++worker)
        leaves.push_back(leaves_for(worker));
      return leaves;
    }
  }

  template <class T>
  [[nodiscard]] static std::vector<closure_value> leaves_of(const T& value) {
    std::vector<closure_value> leaves;
    write_leaves<T>(value, leaves);
    check_leaves(leaves);
    return leaves;
  }

  std::shared_ptr<closure_service> service_;
};

} // namespace troupe
