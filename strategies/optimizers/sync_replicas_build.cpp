// SPDX-License-Identifier: Apache-2.0
// Builds the actors of a synchronous job, and configures its chief.
#include "actors/training/gradient_check.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "actors/training/token_queue.hpp"
#include "actors/training/variable_bundle.hpp"
#include "actors/world/ask.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

namespace troupe {

namespace {

/// Begins a job as its optimizer says.
class sync_replicas_hook final : public session_hook {
public:
  sync_replicas_hook(sync_replicas_optimizer optimizer, bool is_chief, int64_t num_tokens)
    : optimizer_(std::move(optimizer)), is_chief_(is_chief), num_tokens_(num_tokens) {}

  void begin(session_plan& plan) override {
    static_cast<void>(optimizer_.actors()); // refuses before `build`
    (is_chief_ ? plan.has_chiefs_hook : plan.has_others_hook) = true;
    if (is_chief_) plan.init_tokens = optimizer_.get_init_tokens(num_tokens_);
  }

private:
  sync_replicas_optimizer optimizer_;
  bool is_chief_;
  int64_t num_tokens_;
};

// The factor of the mean gradient, if an update does nothing but multiply by it; else 0.
double only_rate_of(const update_plan& plan, const sync_options& options) {
  const auto* rule = std::get_if<rules::sgd>(&plan.rule);
  auto is_clipped
    = plan.clip.value_max > 0 || plan.clip.norm_max > 0 || options.clip_global_norm > 0;
  auto is_constant = std::holds_alternative<schedules::constant>(plan.schedule.shape)
                     && plan.schedule.warm_up_updates == 0;
  return rule != nullptr && rule->weight_decay == 0 && is_constant && !is_clipped
           ? rule->learning_rate
           : 0;
}

std::string accumulator_name(const variable& variable, size_t place) {
  return fmt::format("{}accumulator {}", place_prefixes[place], variable.name());
}

// Whether owners may lend their variables to bundles, in their own process. A step that needs the
// norm of each gradient asks each owner. So does a step of variables with copies on several
// devices, which change together.
bool may_bundle(const strategy& strategy, const sync_options& options) {
  const auto& layout = strategy.layout();
  auto is_on_several = layout.mirrors_variables && layout.variable_devices.size() > 1;
  return layout.placement == nullptr && !options.measures() && !is_on_several;
}

// The name of a variable, or of the bundle that begins with it.
std::string name_of(const job_actors& actors, size_t position) {
  const auto& name = actors.variables[position].name();
  const auto* bundle = actors.bundle_of(position);
  return bundle == nullptr ? name
                           : fmt::format("{} and {} more", name, bundle->variables.size() - 1);
}

/// Spawns the actors of a job that stand in this process, and ends them again if the build fails.
class actor_builder {
public:
  actor_builder(strategy& strategy, job_actors& actors)
    : world_(strategy.world()), placement_(strategy.layout().placement), actors_(actors) {}

  actor_builder(const actor_builder&) = delete;
  actor_builder& operator=(const actor_builder&) = delete;

  ~actor_builder() {
    if (!is_complete_) actors_.end();
  }

  [[nodiscard]] bool leads() const { return placement_ == nullptr || placement_->leads(); }

  /// @returns Null, if the actor stands elsewhere.
  template <class Handle, class Behavior, class Config>
  [[nodiscard]] Handle spawn(const std::string& name, Behavior behavior, Config config) {
    if (placement_ != nullptr && !value_or_throw(placement_->enter(name))) return {};
    Handle spawned = world_.system().spawn(behavior, std::move(config));
    actors_.here.push_back(caf::actor_cast<caf::actor>(spawned));
    world_.introduce(spawned.id(), name);
    if (placement_ != nullptr) placement_->put(name, spawned);
    return spawned;
  }

  /// Bundles variables. @param config For the accumulator of the first variable.
  void add_bundle(const lent_variables& lent, accumulator_config config) {
    auto first = lent.positions.front();
    auto& bundle = actors_.bundles.emplace_back(
      bundle_of_variables{.where = lent.where, .variables = lent.positions});
    auto name = name_of(actors_, first);
    bundle.holder = config.bundle
      = spawn<bundle_actor>("bundle of " + name, variable_bundle,
                            bundle_config{name, lent.variables, lent.owner, lent.stream, &world_});
    config.owner = nullptr;
    for (auto position : lent.positions)
      if (position != first) config.behind.push_back(actors_.variables[position].form());
    bundle.collector = spawn<bundle_accumulator_actor>(
      accumulator_name(actors_.variables[first], 0), accumulator, std::move(config));
    for (auto position : lent.positions) {
      actors_.accumulators[position] = bundle.collector;
      caf::anon_send(actors_.variables[position].owners_here()[0], use_bundle{bundle.holder});
    }
  }

  /// Spawns the accumulator of a variable; if the variable is replicated, one in each place.
  void add_accumulators(size_t position, accumulator_config config) {
    const auto& variable = actors_.variables[position];
    auto is_replicated = config.owner_is_replicated;
    for (size_t place = 0; place < (is_replicated ? place_prefixes.size() : 1); ++place) {
      if (is_replicated) config.owner = variable.owners_here()[place];
      auto spawned
        = spawn<bundle_accumulator_actor>(accumulator_name(variable, place), accumulator, config);
      if (is_replicated && spawned)
        caf::anon_send(variable.owners_here()[place], use_accumulator{spawned});
      if (place == 0) actors_.accumulators[position] = std::move(spawned);
    }
  }

  /// Finds the accumulators that the chief needs and that stand elsewhere.
  void complete() {
    for (size_t i = 0; leads() && i < actors_.variables.size(); ++i)
      if (auto& accumulator = actors_.accumulators[i]; !accumulator)
        accumulator = value_or_throw(
          placement_->find<accumulator_actor>("chief", accumulator_name(actors_.variables[i], 0)));
    is_complete_ = true;
  }

private:
  world& world_;
  placement* placement_;
  job_actors& actors_;
  bool is_complete_ = false;
};

// Refuses variables to average that the job does not train.
void check_averaged(const average_choice& averages, std::span<const variable> trained) {
  if (!averages.variable_averages) return;
  for (const auto& averaged : averages.variables_to_average)
    if (std::ranges::count(trained, averaged) == 0)
      throw_failure(errc::invalid_argument,
                    "variables_to_average has '{}', which this job does not train: an average is "
                    "made of updates",
                    averaged.name());
}

token_queue_config queue_config(const sync_options& options, uint64_t first_step,
                                const std::optional<std::vector<uint64_t>>& tokens,
                                const job_links& links) {
  token_queue_config config{.policy = options.policy,
                            .first_step = first_step,
                            .replicas = options.total_num_replicas,
                            .slack = options.slack,
                            .remembers = links.ask_again_after > job_time{0},
                            .watches = links.may_end};
  if (tokens) { // those of this step are still to be put
    config.first_step = std::max<uint64_t>(first_step, 1) - 1;
    config.tokens = *tokens;
  }
  return config;
}

variable_payload state_of(strategy& strategy, const variable& variable) {
  context_check::waiting("get_slot", "look at slots when `train` has returned");
  check_same_world("get_slot", strategy.world(), variable);
  auto state = value_or_throw(
    ask<msg<wire::VariableState>>(strategy.world(), variable.owner(), make_read_state()));
  return read_state(state.reader(), state.owner());
}

} // namespace

// A step that lacks the gradient of one variable could never end.
void sync_replicas_optimizer::check_trained(const strategy& strategy,
                                            std::span<const variable> variables) {
  std::unordered_set<variable> seen;
  for (const auto& variable : variables) {
    if (&variable.owner_strategy() != &strategy)
      throw_failure(errc::invalid_argument,
                    "variable '{}' is of another strategy; train those of this one",
                    variable.name());
    if (!seen.insert(variable).second)
      throw_failure(errc::invalid_argument, "variable '{}' is listed twice in variables",
                    variable.name());
    value_or_throw(check_updatable(variable.form()));
  }
}

void sync_replicas_optimizer::build(strategy& strategy, std::vector<variable> variables,
                                    std::optional<uint64_t> global_step,
                                    const std::optional<std::vector<uint64_t>>& tokens,
                                    job_links links) {
  if (variables.empty())
    throw_failure(errc::invalid_argument,
                  "Must supply at least one variable: the job has none to train");
  if (!global_step)
    throw_failure(errc::invalid_argument,
                  "Global step is required to check staleness: give the updates made so far");
  check_trained(strategy, variables);
  check_averaged(*averages_, variables);
  auto actors = std::make_shared<job_actors>();
  actor_builder builder{strategy, *actors};
  actors->first_step = *global_step;
  actors->asynchronous = asynchronous_rule::of(options_);
  actors->ask_again_after = links.ask_again_after;
  actors->step_heard = std::make_shared<std::atomic<uint64_t>>(*global_step);
  if (builder.leads())
    for (const auto& variable : variables)
      static_cast<void>(value_or_throw(ask<msg<wire::OptimizerInUse>>(
        strategy.world(), variable.owner(), make_use_optimizer(to_settings(plan_for(variable))))));
  actors->tokens = builder.spawn<token_queue_actor>(
    "token queue", token_queue, queue_config(options_, *global_step, tokens, links));
  actors->variables = std::move(variables);
  actors->positions = positions_of(actors->variables);
  actors->accumulators.resize(actors->variables.size());
  strategy.bundles().end();
  if (may_bundle(strategy, options_))
    for (const auto& lent : lent_together(strategy, actors->variables)) {
      const auto& first = actors->variables[lent.positions.front()];
      builder.add_bundle(lent, config_for(strategy, first, *global_step, links));
    }
  for (size_t i = 0; i < actors->variables.size(); ++i)
    if (actors->bundle_of(i) == nullptr)
      builder.add_accumulators(i, config_for(strategy, actors->variables[i], *global_step, links));
  builder.complete();
  *job_ = actors;
}

accumulator_config sync_replicas_optimizer::config_for(const strategy& strategy,
                                                       const variable& variable,
                                                       uint64_t first_step,
                                                       const job_links& links) const {
  accumulator_config config{variable.form(), variable.owner(), first_step, &strategy.world()};
  const auto& policy = traits_of(options_.policy);
  config.one_gradient_per_replica
    = options_.one_gradient_per_replica
      || (links.may_return && !policy.repeats && !policy.is_asynchronous());
  config.asynchronous = asynchronous_rule::of(options_);
  config.requires_finite = options_.require_finite;
  config.gradients_are_sums = options_.losses_are_sums;
  config.remembers = links.ask_again_after > job_time{0};
  config.owner_is_replicated = strategy.layout().owner_copies > 1;
  config.place = variable.place();
  return config;
}

caf::actor sync_replicas_optimizer::collect_again(const strategy& strategy,
                                                  const variable& variable, size_t place,
                                                  const replicated_owner_actor& owner,
                                                  const job_links& links) const {
  auto config = config_for(strategy, variable, actors()->first_step, links);
  config.owner = owner;
  auto name = accumulator_name(variable, place);
  auto spawned = strategy.world().system().spawn(accumulator, std::move(config));
  strategy.world().introduce(spawned.id(), name);
  strategy.layout().placement->put(name, spawned);
  caf::anon_send(owner, use_accumulator{spawned});
  return caf::actor_cast<caf::actor>(spawned);
}

std::shared_ptr<const job_actors> sync_replicas_optimizer::actors() const {
  if (!*job_)
    throw_failure(errc::failed_precondition,
                  "optimizer '{}' has no job yet: call `build`, or `train`, which does; "
                  "apply_gradients should be called before this",
                  options_.name);
  return *job_;
}

chief_config sync_replicas_optimizer::get_chief_queue_runner() const {
  auto job = actors();
  chief_config config;
  config.sync = options_;
  config.learning_rate = only_rate_of(*plan_, options_);
  config.first_step = job->first_step;
  config.tokens = job->tokens;
  for (size_t i = 0; i < job->variables.size(); ++i) {
    config.variables.push_back(job->variables[i].name());
    config.owners.push_back(job->variables[i].owner());
    const auto* bundle = job->bundle_of(i);
    if (bundle != nullptr && bundle->variables.front() != i) continue;
    collected_variables collected{
      name_of(*job, i), job->accumulators[i], job->variables[i].owner(), {i}};
    if (bundle != nullptr) {
      collected.holder = bundle->holder;
      collected.positions = bundle->variables;
    }
    config.collected.push_back(std::move(collected));
  }
  return config;
}

uint32_t sync_replicas_optimizer::get_init_tokens(int64_t num_tokens) const {
  static_cast<void>(actors());
  if (num_tokens == -1) return options_.replicas_to_aggregate;
  auto needed = int64_t{options_.replicas_to_aggregate} - int64_t{options_.total_num_replicas};
  if (num_tokens < needed)
    throw_failure(errc::invalid_argument,
                  "Too few tokens to finish the first step: {} (given) vs {} (needed)", num_tokens,
                  needed);
  if (num_tokens > sync_options::initial_tokens_max)
    throw_failure(errc::invalid_argument, "{} tokens at the start; {} are the most", num_tokens,
                  sync_options::initial_tokens_max);
  return static_cast<uint32_t>(std::max<int64_t>(num_tokens, 0));
}

std::shared_ptr<session_hook>
sync_replicas_optimizer::make_session_run_hook(bool is_chief, int64_t num_tokens) const {
  return std::make_shared<sync_replicas_hook>(*this, is_chief, num_tokens);
}

std::vector<std::string> sync_replicas_optimizer::get_slot_names() const {
  auto names = slot_names(plan_->rule);
  return {names.begin(), names.end()};
}

std::optional<tensor> sync_replicas_optimizer::get_slot(strategy& strategy,
                                                        const variable& variable,
                                                        const std::string& name) const {
  auto state = state_of(strategy, variable);
  for (auto& slot : state.slots)
    if (slot.name == name) return std::move(slot.value);
  return std::nullopt;
}

std::map<std::string, tensor> sync_replicas_optimizer::variables(strategy& strategy) const {
  std::map<std::string, tensor> result;
  for (const auto& variable : actors()->variables)
    for (auto& slot : state_of(strategy, variable).slots)
      result.emplace(variable.name() + "/" + slot.name, std::move(slot.value));
  return result;
}

} // namespace troupe
