// SPDX-License-Identifier: Apache-2.0
// The strategy: where variables live, how many replicas compute, and what they do together.
#pragma once

#include "actors/net/placement.hpp"
#include "actors/training/rendezvous.hpp"
#include "actors/world/world.hpp"
#include "kernels/tensor/tensor.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/cross_replica_context.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/contexts/strategy_input.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/process_group.hpp"
#include "strategies/reduce/reduce_leaves.hpp"
#include "strategies/reduce/replica_devices.hpp"
#include "strategies/values/nest.hpp"
#include "strategies/values/partitioner.hpp"
#include "strategies/values/variable.hpp"
#include "strategies/values/variable_load.hpp"

#include <caf/actor.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

class closure_service;
struct job_links;
class sharded_variable;
class strategy_extended;
class sync_replicas_optimizer;
class variable_bundles;
struct variable_owner_config;

/// The properties in which strategies differ.
struct strategy_layout {
  std::string name;                           ///< "mirrored": for errors.
  std::vector<std::string> worker_devices;    ///< One for each replica of this process.
  std::vector<std::string> parameter_devices; ///< Where variables live.
  /// Whether every replica has a copy of a variable; else all share one for good.
  bool mirrors_variables = false;
  bool runs_replicas = true; ///< Whether `run` is offered.
  bool has_devices = true;   ///< False for the default strategy, which has none of its own.
  bool experimental_between_graph = false;
  bool experimental_should_init = true;
  bool should_checkpoint = true;
  bool should_save_summary = true;
  bool experimental_require_static_shapes = false;
  /// Whether the function that makes a dataset may be called for each replica.
  bool makes_input_per_replica = false;
  /// The processes that run replicas together with this one; null: this one runs all.
  std::shared_ptr<const process_group> group;
  /// How values are reduced; null: one device adds them.
  std::shared_ptr<const cross_device_ops> cross_device_operations;
  /// A run that takes longer ends, and names the missing replicas.
  job_time deadline = std::chrono::minutes{10};
  /// Where owners, and the actors of jobs, stand; null: all here. Outlives the strategy.
  troupe::placement* placement = nullptr;
  /// Processes that hold each variable: 1, or 2, so that the loss of one loses nothing.
  uint32_t owner_copies = 1;
  /// How the placement shares variables between parameter servers.
  troupe::variable_load variable_load = equal_load();
  /// Into how many shards `make_sharded_variable` cuts; null: one.
  partitioner variable_partitioner{};
  /// The devices that replicas of this process compute on, in turn; empty: the world's computing
  /// threads.
  std::vector<std::shared_ptr<compute_device>> compute_devices{};
  /// The devices that the variables of this process lie on and are updated on, in turn; a strategy
  /// that mirrors variables has a copy on each. Empty: the host's memory, where variables that are
  /// synchronised on read always lie.
  std::vector<std::shared_ptr<compute_device>> variable_devices{};
  job_time device_deadline = std::chrono::seconds{60}; ///< For one piece of work on a device.
};

/// Refuses layouts that no strategy can have.
/// Errors: throws `failure` with invalid_argument for no devices, the same one twice or a null one,
/// a deadline that is not positive, more owners of a variable than 2 or than there are places for
/// them, variables on a device that are replicated or share it with replicas, or copies on several.
void check_layout(const strategy_layout& layout);

/// Where a value is made for each replica, and how many there are.
struct value_context {
  uint32_t replica_id_in_sync_group = 0;
  uint32_t num_replicas_in_sync = 1;
};

/// A training step is written once; the strategy decides where its variables live and how many
/// replicas run it. This class is what all strategies share.
///
/// Calls that are made outside all coroutines wait until they are done, while the world turns. In a
/// merge function, the `cross_replica_context` has those that need to wait.
///
/// Thread: the one that made it; replicas reach it through their context.
class strategy {
public:
  virtual ~strategy();
  strategy(const strategy&) = delete;
  strategy& operator=(const strategy&) = delete;

  // ---- variables ----

  /// Makes a variable, held by an owner actor of its own.
  /// @param initial Its first value; the variable takes the dtype and shape, and never writes here.
  /// Errors: throws `failure` with invalid_argument if the name is taken, empty, not UTF-8 or has
  /// control characters, or the options do not go together; type_mismatch if the dtype is f16 or
  /// bf16; limit_exceeded for more than `limits::rank_max` dimensions; wrong_context inside a
  /// replica or another strategy's scope; as `placement::see`, if the variable is held by another
  /// process that is not there in time; as `reducer`, if replicas of several processes meet and
  /// these do not make the same variables. A job with a chief compares them when it begins, as
  /// `training_options::agreement` says.
  variable make_variable(std::string name, const tensor& initial,
                         const variable_options& options = {});

  /// Makes a variable in as many shards as the strategy's partitioner wants, so that one text goes
  /// with strategies that cut and with those that do not: "table/part_0" and so on, or just "table"
  /// in one piece.
  /// Errors: as `sharded_variable::make`; throws `failure` with invalid_argument for a scalar,
  /// which has no rows.
  [[nodiscard]] sharded_variable make_sharded_variable(const std::string& name,
                                                       const tensor& initial,
                                                       const variable_options& options = {});

  /// The variables in order of creation.
  [[nodiscard]] std::span<const variable> variables() const { return variables_; }

  /// The variables that training changes, in order of creation.
  [[nodiscard]] std::vector<variable> trainable_variables() const;

  /// The value of a variable as it is now: an immutable view of the owner's memory. If it is
  /// synchronised on read, the value that its aggregation makes of all copies.
  /// Errors: throws `failure`: unavailable if the owner is gone; wrong_context in a coroutine, or
  /// in work that it computes; invalid_argument for a variable of another world; as
  /// `variable_access`.
  [[nodiscard]] tensor read(const variable& source);

  // As `variable_access` in the cross-replica context.

  tensor assign(const variable& target, variable_operand value);
  tensor assign_add(const variable& target, variable_operand delta);
  tensor assign_sub(const variable& target, variable_operand delta);

  // ---- replicas ----

  /// The number of replicas that combine their gradients, over all processes that run some.
  [[nodiscard]] uint32_t num_replicas_in_sync() const {
    return num_replicas_ * (layout_.group ? layout_.group->size : 1);
  }

  /// The number of replicas that run in this process.
  [[nodiscard]] uint32_t num_local_replicas() const { return num_replicas_; }

  /// The index of the first replica of this process among the replicas of all processes.
  [[nodiscard]] uint32_t first_local_replica() const {
    return layout_.group ? layout_.group->first_replica() : 0;
  }

  /// Runs a function on every replica, and waits until all have returned.
  /// @param function `R f(replica_context&, Arguments...)` or a coroutine `task<R> f(...)`.
  /// @param arguments The same for every replica; but of a distributed value, anywhere in them,
  /// each replica gets its own part.
  /// @returns The results of the replicas, regrouped (strategies/values/nest.hpp): a distributed
  /// value in the place of each leaf. Errors: rethrows what the first replica that failed threw;
  /// throws `failure`: wrong_context; failed_precondition if replicas make different merge_calls;
  /// invalid_argument if they return other structures, or the function is empty; deadline_exceeded,
  /// naming the missing ones.
  template <class Function, class... Arguments>
  auto run(Function function, const Arguments&... arguments) {
    context_check::blocking("run", *this, "call_for_each_replica");
    auto outcome = run_on_replicas(
      bodies_for<Function, Arguments...>(num_replicas_, std::move(function), arguments...));
    return regroup_results<run_result_t<Function, Arguments...>>(std::move(outcome));
  }

  // ---- values of all replicas ----

  /// Reduces the values of all replicas to one; arrays element by element, nests leaf by leaf.
  /// Errors: throws `failure`: wrong_context; invalid_argument if the shapes of replicas differ
  /// (give an axis, then), or a value that is the same for all would be counted several times.
  template <class T>
  [[nodiscard]] auto reduce(reduce_op op, const T& value) {
    return reduce_over(op, value, std::nullopt);
  }

  /// Reduces each replica's value along `axes` first. Replicas may have different numbers of
  /// elements there, even none: a mean divides by the number of elements that there are in all.
  /// @param axes Negative ones count from the last; none is there twice.
  /// Errors: as above; invalid_argument ("`axis` = 2 out of range for `value` with rank 2").
  template <class T>
  [[nodiscard]] auto reduce(reduce_op op, const T& value, std::vector<int64_t> axes) {
    return reduce_over(op, value, std::move(axes));
  }

  template <class T>
  [[nodiscard]] auto reduce(reduce_op op, const T& value, int64_t axis) {
    return reduce(op, value, std::vector<int64_t>{axis});
  }

  /// The copies of a variable as one, each counted. Errors: as `read`; as above.
  [[nodiscard]] tensor reduce(reduce_op op, const variable& value);

  /// The values of all replicas behind each other along `axis`, in the order of replicas; one value
  /// for all replicas, as often as there are replicas. With one replica, its value.
  /// Errors: throws `failure` as `cross_device_ops::gather`; wrong_context; unimplemented for rows.
  [[nodiscard]] tensor gather(const distributed_value<tensor>& value, int64_t axis);
  [[nodiscard]] tensor gather(const tensor& value, int64_t axis);
  [[noreturn]] void gather(const distributed_value<indexed_slices>& value, int64_t axis);

  /// The components of a distributed value. A nest that holds some gives the part of each replica
  /// of this process; any other value stands alone.
  template <class T>
  [[nodiscard]] std::vector<selected_t<T>> experimental_local_results(const T& value) const {
    if constexpr (is_distributed<T>) {
      return value.local_results();
    } else if constexpr (std::is_same_v<selected_t<T>, T>) {
      return {value};
    } else {
      std::vector<selected_t<T>> results;
      for (uint32_t i = 0; i < num_replicas_; ++i)
        results.push_back(select_replica(value, i));
      return results;
    }
  }

  /// The copies that the replicas of this process have of a variable, in their order; its value
  /// alone, where they share it. Errors: as `read`.
  [[nodiscard]] std::vector<tensor> experimental_local_results(const variable& variable);

  /// A value for each replica, made by `function(value_context)`; where there is only one, without
  /// mirrored variables, it is the value of all, and may be assigned.
  template <class Function>
  [[nodiscard]] auto experimental_distribute_values_from_function(const Function& function) {
    context_check::cross_replica("experimental_distribute_values_from_function", *this);
    check_given("experimental_distribute_values_from_function", function);
    using value_type = std::invoke_result_t<const Function&, value_context>;
    std::vector<value_type> values;
    for (uint32_t i = 0; i < num_replicas_; ++i)
      values.push_back(function(value_context{first_local_replica() + i, num_replicas_in_sync()}));
    if (num_replicas_in_sync() == 1 && !layout_.mirrors_variables)
      return distributed_value<value_type>::mirrored(std::move(values.front()), 1);
    return distributed_value<value_type>::per_replica(std::move(values));
  }

  // ---- input ----

  /// A dataset of global batches: each is cut into one for every replica.
  /// Errors: throws `failure`: wrong_context; as `distribute`.
  [[nodiscard]] strategy_dataset
  experimental_distribute_dataset(const dataset& global_batches, const input_options& options = {},
                                  auto_shard_policy policy = auto_shard_policy::automatic);

  /// A dataset that `make` returns, with batches of single replicas already.
  /// Errors: throws `failure`: wrong_context; unimplemented for the mode per_replica, but under a
  /// mirrored strategy; invalid_argument, in all processes, if that of one has no elements and that
  /// of another has; as `distribute_from_function`.
  [[nodiscard]] strategy_dataset
  distribute_datasets_from_function(const std::function<dataset(const input_context&)>& make,
                                    const input_options& options = {});

  // ---- contexts ----

  /// Leaves the other processes of the job: they are told, and not waited for. This is for a
  /// program that has caught a failure, and keeps the strategy for its variables.
  /// Reductions over all processes fail from now on.
  void leave_others();

  /// Makes this strategy the current one until the scope ends: see context.hpp.
  [[nodiscard]] strategy_scope scope() { return strategy_scope{*this}; }

  /// The calls that authors of optimizers and metrics need beyond these.
  [[nodiscard]] strategy_extended& extended() { return *extended_; }

  /// Runs a function in the cross-replica context, as a merge function would be, and waits for it.
  /// @param function `R f(cross_replica_context&)` or a coroutine `task<R> f(...)`.
  template <class Function>
  auto cross_replica(Function function) {
    context_check::blocking("cross_replica", *this);
    check_given("cross_replica", function);
    using result_type = awaited_result_t<Function, cross_replica_context>;
    auto result
      = run_cross_replica([function = std::move(function)](cross_replica_context& context) {
          return call_erased(function, std::tuple<>{}, context);
        });
    if constexpr (!std::is_same_v<result_type, std::monostate>)
      return std::move(*std::static_pointer_cast<result_type>(result));
  }

  [[nodiscard]] const strategy_layout& layout() const { return layout_; }

  /// A number that no other strategy of this process has or had.
  [[nodiscard]] uint64_t number() const { return number_; }

  /// The devices that its replicas compute on.
  [[nodiscard]] replica_devices& devices() { return devices_; }

  [[nodiscard]] const replica_devices& devices() const { return devices_; }

  [[nodiscard]] const cross_device_ops& cross_device_operations() const {
    return *layout_.cross_device_operations;
  }

  /// The bundles of variables that replicas of a run read and update together.
  [[nodiscard]] variable_bundles& bundles() { return *bundles_; }

  /// Counts a run. @returns The number of runs before it, which is the same in all processes.
  uint64_t count_run() { return run_count_++; }

  /// Runs that have begun so far; the same number in all processes that make the same calls.
  [[nodiscard]] uint64_t run_count() const { return run_count_; }

  /// Runs of the replicas of this process that have failed so far. The number stays the same while
  /// replicas run.
  [[nodiscard]] uint64_t failed_runs() const { return failed_runs_; }

  /// For reductions of its values. Refers to the strategy, which must outlive it.
  [[nodiscard]] reduction_site site_of_reductions();

  [[nodiscard]] troupe::world& world() const { return world_; }

protected:
  strategy(troupe::world& world, strategy_layout layout);

private:
  friend class cluster_coordinator;
  friend class cross_replica_context;
  friend void bring_back(strategy& strategy, uint32_t process,
                         const std::function<caf::actor(const variable&, size_t,
                                                        const replicated_owner_actor&)>& collect);

  template <class T>
  [[nodiscard]] auto reduce_over(reduce_op op, const T& value,
                                 std::optional<std::vector<int64_t>> axes) {
    context_check::cross_replica("reduce", *this);
    auto leaves = flatten(value);
    if (!layout_.group && !arrays_of(leaves).is_on_devices()) {
      reduce_scope over{.axes = std::move(axes), .replicas = num_replicas_};
      return unflatten(reduce_leaves(op, leaves, over)(), value);
    }
    context_check::blocking("reduce", *this);
    return cross_replica([op, value, axes = std::move(axes)](cross_replica_context& context) {
      return context.reduce(op, value, axes);
    });
  }

  void check_variable(const std::string& name, const tensor& initial,
                      const variable_options& options) const;
  [[nodiscard]] static std::string describe_variable(const std::string& name,
                                                     const variable_options& options);
  [[nodiscard]] std::shared_ptr<variable::data>
  new_variable(std::string name, const tensor& initial, const variable_options& options) const;
  variable add_variable(std::string name, const tensor& initial, const variable_options& options);

  [[nodiscard]] run_outcome run_on_replicas(std::vector<replica_body> bodies);
  [[nodiscard]] std::shared_ptr<void> run_cross_replica(cross_replica_body body);
  void show_presence();
  void open_directory();
  [[nodiscard]] distributed_value<tensor> copies_of(std::string_view call, const variable& source);
  [[nodiscard]] std::vector<processor> places_of(uint32_t owner);
  [[nodiscard]] bool enter_owner(const std::string& owner_name, const variable_form& form);
  void spawn_actors(variable::data& made, const tensor& initial);
  [[nodiscard]] replicated_owner_actor spawn_owner(variable::data& made, const std::string& name,
                                                   variable_owner_config config);
  [[nodiscard]] variable_owner_actor spawn_cache(variable::data& made,
                                                 const std::string& owner_name);
  void replicate(variable::data& made, variable_owner_config config);
  void let_go();
  void leave_group(bool waits);
  [[nodiscard]] job_time timeout() const;

  troupe::world& world_;
  uint64_t number_;
  strategy_layout layout_;
  uint32_t num_replicas_; ///< Replicas of this process.
  replica_devices devices_;
  replica_devices owner_devices_;
  std::vector<variable> variables_;
  std::unique_ptr<strategy_extended> extended_;
  std::unique_ptr<variable_bundles> bundles_;
  std::atomic<uint64_t> run_count_{0};
  std::atomic<uint64_t> failed_runs_{0};
  std::weak_ptr<closure_service> coordinated_by_; ///< At most one coordinator at a time.
  directory_actor directory_; ///< Set where the chief stands, if owners are replicated; else null.
  std::vector<caf::actor> returned_; ///< Replicated owners in a new life; see `bring_back`.
  caf::actor presence_; ///< Lives as long as the chief's process needs variables of others.
};

/// How a parameter server strategy is laid out.
struct parameter_server_options {
  uint32_t replicas = 1;
  /// Where its actors, and those of its jobs, stand; null: all here. Outlives the strategy.
  troupe::placement* placement = nullptr;
  /// With 2, every variable is held by two parameter servers, and the loss of one of them loses
  /// nothing: see docs/failures.md. The `server_options` need the same.
  uint32_t replicate_owners = 1;
  /// How the parameter servers of a cluster share the variables.
  troupe::variable_load variable_load = equal_load();
  /// Into how many shards `make_sharded_variable` cuts a variable; null: one. `make_variable`,
  /// which gives a `variable`, makes it in one piece.
  partitioner variable_partitioner{};
  /// The devices that the replicas of this process compute on, in turn; empty: the world's
  /// computing threads.
  std::vector<std::shared_ptr<compute_device>> compute_devices{};
  /// The devices that the variables of this process lie on and are updated on, with their slots and
  /// averages, in turn; empty: the host's memory. They are not those of `compute_devices`, but may
  /// be other handles to the same GPUs: then no update waits for the work of a replica. Replicas on
  /// the GPU of a variable read it there (`replica_context::read_on_device`), and leave gradients
  /// there.
  std::vector<std::shared_ptr<compute_device>> variable_devices{};
  job_time device_deadline = std::chrono::seconds{60}; ///< For one piece of work on a device.
};

/// Variables live with owners; replicas read them, push gradients, and each goes on at its own pace
/// unless an optimizer such as `sync_replicas_optimizer` synchronises them: they are trained by
/// `train`, not `run`.
///
/// With a `cluster_placement`, the job is that of several processes. Each makes the same strategy,
/// the same variables and the same calls of `train`. `should_checkpoint` and the like are true
/// where the chief stands. After training, variables can be read there, until its strategy ends:
/// for that long the strategies of processes that hold variables wait in their destructors.
class parameter_server_strategy final : public strategy {
public:
  /// Errors: throws `failure`: invalid_argument for 0 replicas, and as `check_layout`; as
  /// `placement::see`, if the process of the chief is not there in time.
  explicit parameter_server_strategy(troupe::world& world, parameter_server_options options = {});
};

} // namespace troupe
