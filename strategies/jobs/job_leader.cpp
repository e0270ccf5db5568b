// SPDX-License-Identifier: Apache-2.0
// A job with a chief, in the process where the chief stands.
#include "actors/policies/backup_arrays.hpp"
#include "actors/training/chief.hpp"
#include "actors/training/recorder.hpp"
#include "actors/world/completion.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/jobs/evaluating_replica.hpp"
#include "strategies/jobs/job_members.hpp"
#include "strategies/jobs/job_runner.hpp"
#include "strategies/jobs/observed_tasks.hpp"
#include "strategies/jobs/replica_life.hpp"
#include "strategies/jobs/restore.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// The members that hold variables alone.
std::set<uint32_t> holders_in(const strategy& strategy) {
  const auto& layout = strategy.layout();
  std::set<uint32_t> holders;
  if (layout.owner_copies > 1) return holders; // others hold what they held
  for (const auto& variable : strategy.variables())
    holders.insert(layout.placement->where("owner " + variable.name()));
  return holders;
}

class job_leader final : public job_runner {
public:
  job_leader(troupe::strategy& strategy, const sync_replicas_optimizer& optimizer,
             const session_function& session, const training_options& options)
    : job_runner(strategy, options, options.hooks,
                 session_control{[this](const std::string& reason) { ask_to_stop(reason); }}),
      placement_(strategy.layout().placement), optimizer_(optimizer), session_(session) {}

private:
  std::optional<job_report> gather() override {
    sites_ = enter_replicas(strategy_, options_);
    if (placement_ == nullptr) return std::nullopt;
    if (!placement_->others().empty()) {
      call_roll();
      std::stop_callback on_stop{options_.stop,
                                 [&] { members_->tell_end({.stopped = "asked to stop"}); }};
      auto called = members_->entered();
      if (!called && called.error().code == errc::cancelled)
        return job_report{.stopped = "asked to stop"};
      if (!called) return job_report{.failure = called.error()};
      world_.set_clock(called->clock);
      absent_ = called->absent;
    }
    placement_->begin();
    placement_->tell_spared(spared());
    return std::nullopt;
  }

  void call_roll() {
    roll_call_config config{.members = placement_->others(),
                            .seed = world_.seed(),
                            .lives_before = lives_before(),
                            .replicas = strategy_.num_replicas_in_sync(),
                            .agreement = job_agreement(strategy_, options_),
                            .holders = holders_in(strategy_),
                            .optional = optional(),
                            .enter_deadline = placement_->start_deadline()};
    if (options_.observe_period > job_time{0}) {
      tasks_.emplace(world_, options_.observe_period, placement_->name_here(), placement_->others(),
                     [this](const flight_records& records) { hooks_.on_flight_records(records); });
      config.on_here = tasks_->adder();
    }
    members_.emplace(world_, *placement_, std::move(config));
  }

  void show_tasks(session_plan& plan) override {
    if (tasks_) tasks_->show(plan);
  }

  // The members that bring replicas, where the job does not need all.
  [[nodiscard]] optional_members optional() const {
    optional_members found;
    if (options_.min_replicas == 0) return found;
    uint32_t here = 0;
    for (uint32_t index = 0; index < sites_.size(); ++index) {
      const auto& site = sites_[index];
      (site.is_here ? here : found.replicas[site.process]) += is_dead(options_, index) ? 0 : 1;
    }
    found.replicas_min = std::max(options_.min_replicas, here) - here;
    return found;
  }

  // The tasks that may be lost: the chief would not take that for the end of the job.
  [[nodiscard]] spared_tasks spared() const {
    auto waits_for_return = options_.rejoin_timeout > job_time{0};
    return {.workers = !options_.stops_on_loss
                       && (waits_for_return
                           || may_lose_replicas(optimizer_.options(), options_.min_replicas)),
            .parameter_servers = strategy_.layout().owner_copies > 1};
  }

  // Makes and wires the actors that replicas talk to, too.
  uint64_t restore() override {
    auto builder = optimizer_; // copies build for each other
    auto variables = trained_variables(strategy_, options_);
    const auto& from = options_.resume;
    std::optional<std::vector<uint64_t>> tokens;
    if (from) {
      if (builder.options().dynamic)
        backups_before_ = value_or_throw(read_backup_estimates(from->backups));
      troupe::restore(strategy_, builder, variables, *from);
      replicas_before_ = from->replicas;
      tokens = from->tokens;
    }
    auto first_step = from ? from->step : updates_made(strategy_, variables);
    if (members_) members_->begin(first_step, replicas_before_);
    builder.build(strategy_, std::move(variables), first_step, tokens,
                  links_of(strategy_, options_));
    actors_ = builder.actors();
    return first_step;
  }

  void prepare(const session_plan& plan) override {
    if (plan.has_others_hook && !plan.has_chiefs_hook)
      throw_failure(
        errc::failed_precondition,
        "no hook of this job is the chief's, so its steps would never close; make the hook "
        "with is_chief, or none at all");
    first_step_ = plan.first_step;
    if (plan.steps == 0) return;
    if (options_.evaluation.every_steps > 0)
      evaluator_.emplace(strategy_, options_, *actors_,
                         [this](uint64_t step) { warn_of_evaluation(step); });
    spawn_chief(plan);
    replicas_.emplace(
      replica_surroundings{
        strategy_, options_, optimizer_, session_, actors_, chief_, replicas_before_, {}},
      sites_);
    for (auto index : replicas_->here())
      spawn_replica(index);
    if (members_)
      members_->on_loss([this](uint32_t member, const error& reason) { lose(member, reason); });
    tell_absent();
  }

  void tell_absent() {
    if (absent_.empty()) return;
    auto names = mapped(absent_, [](const auto& member) { return member.second; });
    auto is_absent = [this](const replica_site& site) { return absent_.contains(site.process); };
    auto line = fmt::format("the job begins with {} of {} replicas; {} may enter later",
                            sites_.size() - std::ranges::count_if(sites_, is_absent), sites_.size(),
                            fmt::join(names, ", "));
    warn(line);
  }

  void spawn_chief(const session_plan& plan) {
    auto config = optimizer_.get_chief_queue_runner();
    if (plan.init_tokens) config.sync.initial_tokens = *plan.init_tokens;
    for (uint32_t index = 0; index < sites_.size(); ++index) {
      auto is_late = absent_.contains(sites_[index].process);
      if (is_late) lives_[index] = lives_before() + 1; // it begins in midst, as one that returns
      if (is_late || is_dead(options_, index)) config.absent.push_back(index);
    }
    config.min_replicas = options_.min_replicas;
    config.steps = plan.steps;
    config.recorder = spawn_recorder();
    config.deadline = options_.deadline;
    config.rejoin_timeout = options_.rejoin_timeout;
    config.stops_on_loss = options_.stops_on_loss;
    config.on_warning = [this](const std::string& line) { warn(line); };
    config.on_trouble = [this](const std::string& trouble) { hooks_.on_trouble(trouble); };
    config.on_open_step = [this](const open_step& step) { hooks_.on_open_step(step); };
    config.resumes = options_.resume.has_value();
    config.backups = std::move(backups_before_);
    if (plan.takes_snapshots)
      config.wants_snapshot = [this](uint64_t step, bool last) {
        return hooks_.wants_snapshot(step, world_.now(), last);
      };
    config.world = &world_;
    if (placement_ != nullptr) {
      value_or_throw(placement_->enter("chief"));
      chief_actors_ = actors_seen_from("chief", strategy_, *actors_, true);
      config.tokens = chief_actors_.tokens;
      config.owners = chief_actors_.owners;
      for (auto& each : config.collected) { // of one variable: there are no bundles
        each.accumulator = chief_actors_.accumulators[each.positions.front()];
        each.holder = chief_actors_.owners[each.positions.front()];
      }
    }
    for (const auto& variable : strategy_.variables()) // which steps do not update, but may change
      if (!actors_->position_of(variable)) {
        config.variables.push_back(variable.name());
        config.owners.push_back(variable.owner());
      }
    chief_ = world_.system().spawn(chief, std::move(config));
    world_.introduce(chief_.id(), "chief");
    watch_chief();
    if (placement_ == nullptr) return;
    placement_->put("chief", chief_);
    tell_directory(strategy_, chief_);
  }

  // No actor is left to end a job once its chief is gone.
  void watch_chief() {
    auto* chief = caf::actor_cast<caf::abstract_actor*>(chief_);
    chief->attach_functor([ended = ended_](const caf::error& reason) {
      if (reason) ended(fail(errc::unavailable, "the chief is gone"));
    });
  }

  recorder_actor spawn_recorder() {
    recorder_config records;
    records.on_step = [this](const step_record& record) { on_step(record); };
    records.on_snapshot = [this](const job_snapshot& taken) { hooks_.after_snapshot(taken); };
    records.on_end = ended_;
    recorder_ = world_.system().spawn(recorder, std::move(records));
    world_.introduce(recorder_.id(), "recorder");
    return recorder_;
  }

  void on_step(const step_record& record) {
    if (options_.on_step)
      hooks_.call("on_step", &options_.on_step, [&] { options_.on_step(record); });
    hooks_.after_step(record);
    if (evaluator_ && record.step % options_.evaluation.every_steps == 0)
      evaluator_->look(record.step);
  }

  void spawn_replica(uint32_t index) {
    auto& next = lives_[index];
    replicas_->spawn(index, next);
    next = std::max<uint64_t>(next, lives_before()) + 1;
  }

  [[nodiscard]] uint32_t lives_before() const {
    return options_.resume ? last_life(*options_.resume) : 0;
  }

  // The chief itself notices the loss of replicas that have joined it.
  void lose(uint32_t member, const error& reason) {
    for (auto index : replicas_->away_in(member))
      caf::anon_send(chief_, make_farewell(index, reason));
  }

  job_report train() override {
    if (!chief_) { // there is no step to make
      dismiss();
      return {.step = first_step_};
    }
    if (placement_ != nullptr) watch_returns();
    auto ended = ended_.wait(world_);
    if (evaluator_) evaluator_->end();
    if (placement_ != nullptr) clear();
    return ended ? *ended : job_report{.failure = ended.error()};
  }

  void watch_returns() {
    placement_->on_return([this](uint32_t index) {
      if (!is_dead(options_, index)) spawn_replica(index);
    });
    if (strategy_.layout().owner_copies > 1)
      placement_->on_owners_return([this](uint32_t process) {
        auto collect
          = [this](const variable& source, size_t place, const auto& owner) -> caf::actor {
          if (!actors_->accumulator_of(source)) return {};
          return optimizer_.collect_again(strategy_, source, place, owner,
                                          links_of(strategy_, options_));
        };
        bring_back(strategy_, process, collect);
      });
  }

  void watch_no_returns() {
    placement_->on_return({});
    placement_->on_owners_return({});
    tell_directory(strategy_, {});
  }

  // The chief's last messages may not have reached the other processes yet.
  void clear() {
    watch_no_returns();
    actors_->end();
    caf::anon_send_exit(chief_, caf::exit_reason::kill);
    caf::anon_send_exit(recorder_, caf::exit_reason::kill);
    replicas_->kill();
  }

  job_report leave(job_report report) override {
    if (members_) report.failure = members_->leave({report.step, report.failure, report.stopped});
    return report;
  }

  // Ends what there is of the job in this process; then no actor refers to this runner any more.
  void dismiss() {
    if (placement_ != nullptr && chief_) watch_no_returns();
    if (evaluator_) evaluator_->end();
    if (replicas_) replicas_->kill();
    end_actor(world_, chief_);
    end_actor(world_, recorder_);
    if (actors_) actors_->end();
  }

  // Tells members why this process throws. A missing process ends the job for all of them alike.
  job_report abandon(const std::exception_ptr& thrown) override {
    dismiss();
    try {
      std::rethrow_exception(thrown);
    } catch (const failure& failed) {
      auto is_missing = failed.reason().code == errc::unavailable
                        || failed.reason().code == errc::deadline_exceeded;
      auto is_shared = members_ && !members_->are_gone();
      auto report = leave({.failure = failed.reason()});
      if (is_shared && is_missing) return report;
      throw;
    }
  }

  void ask_to_stop(const std::string& reason) {
    world_.call([chief = chief_, reason] { caf::anon_send(chief, make_stop_job(reason)); });
  }

  placement* placement_;
  const sync_replicas_optimizer& optimizer_;
  const session_function& session_;
  std::vector<replica_site> sites_;
  std::map<uint32_t, std::string> absent_; ///< Members that were not there when the job began.
  std::optional<observed_tasks> tasks_;    ///< Nothing, if other processes are not observed.
  std::vector<replica_progress> replicas_before_; ///< If the job goes on from a checkpoint.
  backup_estimates backups_before_;               ///< Its estimates for dynamic backups.
  uint64_t first_step_ = 0;                       ///< Updates made before.
  std::shared_ptr<const job_actors> actors_;
  std::optional<evaluating_replica> evaluator_;
  chief_actor chief_;
  job_actors chief_actors_; ///< As the chief knows them, where there is a placement.
  recorder_actor recorder_;
  std::optional<job_replicas> replicas_;
  std::map<uint32_t, uint64_t> lives_; ///< The number of each replica's next life.
  completion<job_report> ended_;       ///< The chief's report.
  std::optional<job_members> members_; ///< Nothing, if there are none. Last: they leave first.
};

} // namespace

job_report run_as_leader(strategy& strategy, const sync_replicas_optimizer& optimizer,
                         const session_function& session, const training_options& options) {
  return job_leader{strategy, optimizer, session, options}.run();
}

} // namespace troupe
