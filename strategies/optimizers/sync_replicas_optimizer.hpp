// SPDX-License-Identifier: Apache-2.0
// Synchronous training with backup replicas, in the terms of TensorFlow's SyncReplicasOptimizer.
#pragma once

#include "actors/policies/sync_options.hpp"
#include "actors/training/accumulator.hpp"
#include "actors/training/chief.hpp"
#include "kernels/updates/update_plan.hpp"
#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "strategies/variables/exponential_moving_average.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The fate of a replica's gradients.
struct apply_outcome {
  uint64_t accepted = 0;    ///< Variables with a gradient that became part of the step.
  uint64_t stale = 0;       ///< Variables with a gradient that came too late and was dropped.
  uint64_t global_step = 0; ///< The token: the step that this replica works on next.
  /// If asked for: the aggregate of the step's gradients, for each gradient that was given. Empty
  /// if the step was over before they came, or the job ended.
  std::vector<std::optional<troupe::gradient>> aggregates;
};

/// Options of `apply_gradients`.
struct apply_options {
  /// Costs a sum of the step's gradients for each variable. A replica that waits for the sum gives
  /// the step no other gradient: refused where a step takes more gradients than there are replicas,
  /// and the job stalls if fewer are left.
  bool read_aggregates = false;
};

/// Which moving averages are kept while a job trains.
struct average_choice {
  std::optional<moving_average> variable_averages; ///< `exponential_moving_average::settings()`.
  /// Variables to average, all of them trained by the job and synchronised on write; empty: all
  /// that it trains. Ignored without `variable_averages`.
  std::vector<variable> variables_to_average;
};

/// How unreliable the links and nodes of a job are, for its accumulators and token queue.
struct job_links {
  job_time ask_again_after{0}; ///< Not 0: a message may come twice, and is answered as before.
  bool may_end = false;        ///< A replica's node may be gone: then it waits for no token.
  bool may_return = false;     ///< It may come back: gradients of its former life count, once.
};

/// A step that waits for all replicas is as slow as the slowest. This optimizer waits for
/// `replicas_to_aggregate` gradients of each variable, averages them, applies the update, and lets
/// every replica go on with a token. The other replicas are backups; their late gradients are
/// dropped. `sync_options::policy` says how late replicas go on.
///
/// A cheap value; copies mean the same settings. Thread: any.
class sync_replicas_optimizer {
public:
  /// @param rule The update rule: `rules::sgd`, `rules::adam` and so on, with its settings.
  /// @param schedule How the learning rate changes over the updates of a variable.
  /// Errors: throws `failure` with invalid_argument, as `validate(rule)` and
  /// `sync_options::validate` do.
  sync_replicas_optimizer(update_rule rule, sync_options options,
                          learning_rate_schedule schedule = {});

  /// @param plan The update rule with its surroundings: clips of the mean, sparse updates.
  /// @param averages Which moving averages the owners keep.
  /// Errors: throws `failure` with invalid_argument, as `validate(plan)` and
  /// `sync_options::validate` do.
  sync_replicas_optimizer(update_plan plan, sync_options options, average_choice averages = {});

  // A move copies, so that a handle that was moved from still means the same.
  sync_replicas_optimizer(const sync_replicas_optimizer&) = default;
  sync_replicas_optimizer& operator=(const sync_replicas_optimizer&) = default;

  /// The plan of every update of a variable.
  [[nodiscard]] update_plan plan_for(const variable& trained) const;

  [[nodiscard]] const sync_options& options() const { return options_; }

  [[nodiscard]] const std::string& get_name() const { return options_.name; }

  /// The loss of this replica's batch and its gradients, computed where `context.compute` computes.
  /// Nothing is aggregated: a clip of these gradients is a clip per replica.
  /// @param grad_loss The gradient of the loss itself, by which all gradients are multiplied.
  /// Errors: throws `failure`: those of the tape; cancelled if the gradient is wanted no more.
  [[nodiscard]] task<computed_gradients> compute_gradients(replica_context& context,
                                                           loss_function loss,
                                                           std::vector<variable> variables,
                                                           double grad_loss = 1) const;

  /// `compute_gradients`, `context.report` of the loss, and `apply_gradients`.
  /// @param examples In the replica's batch, for the report; where losses are sums, the loss that
  /// is reported is divided by it.
  [[nodiscard]] task<apply_outcome> minimize(replica_context& context, loss_function loss,
                                             std::vector<variable> variables, uint32_t examples = 0,
                                             double grad_loss = 1) const;

  /// `minimize` for all trainable variables of the strategy, in order of creation.
  [[nodiscard]] task<apply_outcome> minimize(replica_context& context, loss_function loss,
                                             uint32_t examples = 0) const;

  /// Pushes each gradient to its variable's accumulator; when all are judged, waits for a token.
  /// A variable may be left out; `minimize` and `compute_gradients` give zeros for one that the
  /// loss does not depend on. Where gradients may come twice (`ask_again_after`,
  /// `replicate_owners`), give a variable's once in a step function: a second one passes for the
  /// first, and is not counted. Errors: throws `failure`: invalid_argument ("Must supply at least
  /// one variable") if there is no gradient at all, one does not fit its variable, or a variable
  /// has two; not_found for a variable that the job does not train; cancelled when the job is over.
  [[nodiscard]] task<apply_outcome>
  apply_gradients(replica_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables,
                  apply_options options = {}) const;

  /// Pushes the gradient of a job with one variable, as the call above.
  [[nodiscard]] task<apply_outcome> apply_gradients(replica_context& context,
                                                    troupe::gradient gradient,
                                                    troupe::variable variable) const;

  /// Waits for the next token without giving a gradient: a cancelled step ends so.
  /// @param not_before As in TakeToken; 0: any token.
  /// Errors: throws `failure` with cancelled when the job is over.
  [[nodiscard]] task<uint64_t> take_token(replica_context& context, uint64_t not_before = 0) const;

  /// Spawns an accumulator again, as `build` made the first, after its owner or mirror has begun a
  /// new life. @param place 0 = it stands in the owner's place, 1 = in the mirror's.
  [[nodiscard]] caf::actor collect_again(const strategy& strategy, const variable& variable,
                                         size_t place, const replicated_owner_actor& owner,
                                         const job_links& links) const;

  // ---- the chief's side ----
  //
  // `train` does all this. It is here for programs that put a job of another kind together: in
  // TensorFlow's terms, `build` is what `apply_gradients` adds to the graph.

  /// Refuses variables that no job could train together.
  /// Errors: throws `failure` with invalid_argument if one is of another strategy, or listed twice;
  /// type_mismatch for one that no optimizer updates, such as one of integers.
  static void check_trained(const strategy& strategy, std::span<const variable> variables);

  /// Makes what replicas and chief of a job share: the token queue, and an accumulator for each
  /// variable; tells the owners the plan of updates. A later call begins another job.
  /// @param variables The variables that the job trains: steps give gradients for them.
  /// @param global_step Updates made so far.
  /// @param tokens If the job goes on from a checkpoint: the steps of the tokens in its queue.
  /// @param links How unreliable messages and replicas are.
  ///
  /// In a job of several processes each makes the actors that stand in it, and the process of the
  /// chief tells owners the plan of updates.
  /// Errors: throws `failure` with invalid_argument ("Must supply at least one variable",
  /// "Global step is required to check staleness"), or if a variable that is to be averaged is not
  /// among them; as `check_trained`, and as owners answer UseOptimizer.
  void build(strategy& strategy, std::vector<variable> variables,
             std::optional<uint64_t> global_step,
             const std::optional<std::vector<uint64_t>>& tokens = {}, job_links links = {});

  /// The chief, ready to be spawned but for its recorder and the number of steps.
  /// Errors: throws `failure` with failed_precondition before `build`.
  [[nodiscard]] chief_config get_chief_queue_runner() const;

  /// Tokens to begin with, so that a first step of more gradients than replicas can end.
  /// @param num_tokens -1 = `replicas_to_aggregate`.
  /// Errors: throws `failure` with failed_precondition before `build`; invalid_argument ("Too few
  /// tokens to finish the first step") if there are fewer than N - n.
  [[nodiscard]] uint32_t get_init_tokens(int64_t num_tokens = -1) const;

  /// A hook that begins a job with `num_tokens` tokens. Without one, a job begins with
  /// `sync_options::initial_tokens`. May be made before `build`.
  /// @param is_chief Whether the session closes steps.
  [[nodiscard]] std::shared_ptr<session_hook> make_session_run_hook(bool is_chief,
                                                                    int64_t num_tokens = -1) const;

  /// The actors that the replicas talk to. Errors: throws `failure` with failed_precondition before
  /// `build`.
  [[nodiscard]] std::shared_ptr<const job_actors> actors() const;

  /// The names of the arrays that the optimizer keeps beside each variable.
  [[nodiscard]] std::vector<std::string> get_slot_names() const;

  /// An array that the optimizer keeps beside a variable, as it is now; nothing if none has that
  /// name. Errors: throws `failure` with invalid_argument for a variable of another world.
  /// Thread: the one that made the world.
  [[nodiscard]] std::optional<tensor> get_slot(strategy& strategy, const variable& variable,
                                               const std::string& name) const;

  /// All arrays that the optimizer keeps: "weights/momentum". Tokens and local steps are not among
  /// them.
  /// Thread: the one that made the world. Errors: as `actors`.
  [[nodiscard]] std::map<std::string, tensor> variables(strategy& strategy) const;

private:
  friend class training_session;

  /// Pushes gradients that are stale, so they are dropped unseen: this ends a computation that a
  /// checkpoint found under way.
  [[nodiscard]] task<void> push_nothing(replica_context& context) const;

  [[nodiscard]] static origin origin_of(const replica_context& context);

  [[nodiscard]] accumulator_config config_for(const strategy& strategy, const variable& variable,
                                              uint64_t first_step, const job_links& links) const;

  std::shared_ptr<const update_plan> plan_; // shared, so that copies are cheap
  std::shared_ptr<const average_choice> averages_;
  sync_options options_;
  using built_job = std::shared_ptr<const job_actors>;
  std::shared_ptr<built_job> job_ = std::make_shared<built_job>(); // copies build for each other
};

} // namespace troupe
