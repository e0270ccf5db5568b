// SPDX-License-Identifier: Apache-2.0
// Putting the cast of a training job on stage.
#include "strategies/jobs/training.hpp"

#include "actors/training/chief.hpp"
#include "actors/training/recorder.hpp"
#include "actors/training/replica.hpp"
#include "actors/training/token_queue.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/training_cast.hpp"
#include "strategies/jobs/hook_list.hpp"
#include "strategies/jobs/job_lines.hpp"
#include "strategies/jobs/job_member.hpp"
#include "strategies/jobs/job_members.hpp"
#include "strategies/jobs/replica_life.hpp"
#include "strategies/jobs/restore.hpp"
#include "strategies/jobs/training_session.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <map>

namespace troupe {

namespace {

// No actor keeps requests that are asked again by others than stand-ins.
void check_replication(const strategy& strategy, const training_options& options) {
  if (strategy.layout().owner_copies == 1) return;
  if (options.ask_again_after > job_time{0})
    throw failure{{errc::unimplemented, "owners are not replicated over links that lose messages; "
                                        "leave ask_again_after at 0, or replicate_owners at 1"}};
}

void check(const strategy& strategy, const sync_replicas_optimizer& optimizer,
           const training_options& options) {
  auto refuse = [](std::string line) { throw failure{{errc::invalid_argument, std::move(line)}}; };
  if (strategy.variables().empty())
    refuse("the strategy has no variables; make one before training");
  if (strategy.layout().group)
    throw failure{
      {errc::unimplemented,
       fmt::format("a {} strategy of several processes has no chief; call `train` without a "
                   "sync_replicas_optimizer, or use a parameter_server strategy",
                   strategy.layout().name)}};
  if (options.steps == 0) refuse("steps is 0; training needs at least 1");
  check_replication(strategy, options);
  auto expected_replicas = optimizer.options().total_num_replicas;
  if (strategy.num_replicas_in_sync() != expected_replicas)
    refuse(fmt::format("the strategy has {} replicas, the optimizer expects {}; make them agree",
                       strategy.num_replicas_in_sync(), expected_replicas));
}

// The tasks that may be lost: the chief would not take that for the end of the job.
spared_tasks spared_by(const strategy& strategy, const sync_options& sync,
                       const training_options& options) {
  auto waits_for_return = options.rejoin_patience > job_time{0};
  return {.workers = !options.stops_on_loss && (waits_for_return || may_lose_replicas(sync)),
          .parameter_servers = strategy.layout().owner_copies > 1};
}

// Makes and wires the actors that replicas talk to.
std::shared_ptr<const training_cast> build(strategy& strategy, sync_replicas_optimizer optimizer,
                                           const training_options& options, job_members& members) {
  auto variables = trained_variables(strategy, options);
  auto links = links_of(strategy, options);
  if (options.resume) {
    restore(strategy, optimizer, variables, *options.resume);
    members.begin(options.resume->step, options.resume->replicas);
    optimizer.build(strategy, std::move(variables), options.resume->step, options.resume->tokens,
                    links);
  } else {
    auto updates = updates_made(strategy, variables);
    members.begin(updates, {});
    optimizer.build(strategy, std::move(variables), updates, {}, links);
  }
  return optimizer.cast();
}

// What replicas do if steps are all of it.
task<void> run_steps(training_session& session, step_function step) {
  while (!session.should_stop()) {
    auto running = session.run(step);
    co_await running;
  }
}

// The evaluator has a token queue of its own, and so works on the newest step there is, at its
// pace.
task<void> evaluate(activity& activity, replica_context::place place, uint64_t first_step,
                    evaluation evaluation) {
  activity.set_local_step(first_step);
  auto tokens = place.cast->tokens;
  auto variables = place.cast->variables;
  auto index = place.replica;
  replica_context context{activity, std::move(place)};
  while (true) {
    auto taking
      = activity.request<msg<wire::Token>>(tokens, make_take_token(index, activity.local_step()));
    auto token = value_or_throw(co_await taking);
    activity.set_local_step(token.reader().getStep());
    auto reading = context.read(variables);
    auto values = co_await reading;
    auto computing = context.compute(
      [&evaluation, values](std::stop_token) { return evaluation.evaluate(values); });
    auto result = co_await computing;
    evaluation.on_result(activity.local_step(), result);
  }
}

task<void> evaluate_until_closed(activity& activity, replica_context::place place,
                                 uint64_t first_step, evaluation evaluation,
                                 std::shared_ptr<std::promise<void>> ended) {
  try {
    auto evaluating = evaluate(activity, std::move(place), first_step, std::move(evaluation));
    co_await evaluating;
  } catch (...) { // NOLINT(bugprone-empty-catch): a look at the variables never ends a job
  }
  ended->set_value();
}

/// How a job ends here, once.
struct curtain {
  std::promise<void> over;
  job_report report;

  void conclude(const job_report& with) {
    if (is_over.exchange(true)) return;
    report = with;
    over.set_value();
  }

private:
  std::atomic<bool> is_over = false;
};

/// One job on its stage, from the first actor to the report, in the process where its chief stands.
class stage {
public:
  stage(strategy& strategy, const sync_replicas_optimizer& optimizer,
        const training_options& options, job_members& members)
    : strategy_(strategy), world_(strategy.world()), placement_(strategy.layout().placement),
      optimizer_(optimizer), options_(options), members_(members),
      hooks_(options.hooks,
             session_control{[this](const std::string& reason) { ask_to_stop(reason); }}),
      cast_(build(strategy, optimizer, options, members)) {}

  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  ~stage() { members_.on_loss({}); }

  job_report play(const session_function& body) {
    script_
      = std::make_shared<const replica_script>(replica_script{optimizer_, body, options_.pace});
    auto plan = make_plan();
    spawn_evaluator();
    spawn_chief(plan);
    sites_ = enter_replicas(strategy_, options_);
    for (uint32_t index = 0; index < sites_.size(); ++index)
      if (sites_[index].is_here && !is_dead(options_, index)) spawn_replica(index);
    members_.on_loss([this](uint32_t member, const error& reason) { lose(member, reason); });
    hooks_.after_create_session();
    std::stop_callback on_stop{options_.stop, [this] { ask_to_stop("asked to stop"); }};
    if (placement_ != nullptr) watch_returns();
    auto over = ending_->over.get_future();
    auto turned = world_.run_until(over);
    end_evaluator();
    if (placement_ != nullptr) clear();
    auto& report = ending_->report;
    if (!turned) report.failure = turned.error();
    hooks_.end(report);
    if (!report.failure) report.failure = hooks_.failure();
    return report;
  }

private:
  session_plan make_plan() {
    session_plan plan{.world = world_, .first_step = cast_->first_step, .steps = options_.steps};
    try {
      hooks_.begin(plan);
      if (!plan.has_chief)
        throw failure{{errc::failed_precondition,
                       "no hook of this job is the chief's, so nobody would close its steps; make "
                       "the hook with is_chief, or none at all"}};
    } catch (...) {
      cast_->end();
      throw;
    }
    return plan;
  }

  void spawn_chief(const session_plan& plan) {
    auto config = optimizer_.get_chief_queue_runner();
    if (plan.init_tokens) config.sync.initial_tokens = *plan.init_tokens;
    for (uint32_t index = 0; index < strategy_.num_replicas_in_sync(); ++index)
      if (is_dead(options_, index)) config.absent.push_back(index);
    config.steps = plan.steps;
    config.recorder = spawn_recorder();
    config.deadline = options_.deadline;
    config.rejoin_patience = options_.rejoin_patience;
    config.stops_on_loss = options_.stops_on_loss;
    config.on_warning
      = [this](const std::string& what) { hooks_.call([&] { tell_warning(options_, what); }); };
    config.on_trouble = [this](const std::string& what) { hooks_.on_trouble(what); };
    config.resumes = options_.resume.has_value();
    if (plan.takes_snapshots)
      config.wants_snapshot = [this](uint64_t step, bool last) {
        return hooks_.wants_snapshot(step, world_.now(), last);
      };
    config.world = &world_;
    if (placement_ != nullptr) {
      value_or_throw(placement_->enter("chief"));
      chief_cast_ = cast_seen_from("chief", strategy_, *cast_, true);
      config.tokens = chief_cast_.tokens;
      config.accumulators = chief_cast_.accumulators;
      config.owners = chief_cast_.owners;
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
    chief->attach_functor([ending = ending_](const caf::error& reason) {
      if (reason) ending->conclude({.failure = error{errc::unavailable, "the chief is gone"}});
    });
  }

  recorder_actor spawn_recorder() {
    recorder_config records;
    records.on_step = [this](const step_record& record) { on_step(record); };
    records.on_snapshot = [this](const job_snapshot& taken) { hooks_.after_snapshot(taken); };
    records.on_end = [ending = ending_](const job_report& report) { ending->conclude(report); };
    recorder_ = world_.system().spawn(recorder, std::move(records));
    world_.introduce(recorder_.id(), "recorder");
    return recorder_;
  }

  void on_step(const step_record& record) {
    if (options_.on_step) hooks_.call([&] { options_.on_step(record); });
    hooks_.after_step(record);
    if (evaluation_tokens_ && record.step % options_.evaluation.every_steps == 0)
      caf::anon_send(evaluation_tokens_, make_put_tokens(record.step, 1));
  }

  void watch_returns() {
    placement_->on_return([this](uint32_t index) {
      if (!is_dead(options_, index)) spawn_replica(index);
    });
    if (strategy_.layout().owner_copies > 1)
      placement_->on_owners_return([this](uint32_t process) {
        auto collect = [this](const variable& of, size_t place, const auto& owner) -> caf::actor {
          if (!optimizer_.cast()->accumulator_of(of)) return {};
          return optimizer_.collect_again(strategy_, of, place, owner,
                                          links_of(strategy_, options_));
        };
        bring_back(strategy_, process, collect);
      });
  }

  // Those of its replicas that have come are missed by the chief itself.
  void lose(uint32_t member, const error& reason) {
    for (uint32_t index = 0; index < sites_.size(); ++index)
      if (!sites_[index].is_here && sites_[index].process == member)
        caf::anon_send(chief_, make_farewell(index, reason.code, reason.message));
  }

  void spawn_replica(uint32_t index) {
    replica_company company{strategy_, options_, script_, chief_, cast_, sites_};
    std::span<const replica_progress> saved;
    if (options_.resume) saved = options_.resume->replicas;
    auto lives = company.spawn(index, {cast_->first_step, saved_of(saved, index), lives_[index]++});
    if (placement_ != nullptr) replicas_.push_back(lives);
  }

  void spawn_evaluator() {
    if (options_.evaluation.every_steps == 0) return;
    evaluation_tokens_ = world_.system().spawn(
      token_queue, token_queue_config{sync_policy::latest_token, cast_->first_step, {}});
    world_.introduce(evaluation_tokens_.id(), "evaluation tokens");
    auto cast = std::make_shared<training_cast>(*cast_);
    cast->tokens = evaluation_tokens_;
    auto place = place_of(strategy_.num_replicas_in_sync());
    place.cast = cast;
    replica_config config{.index = place.replica, .world = &world_};
    auto ended = std::make_shared<std::promise<void>>();
    evaluator_ended_ = ended->get_future();
    config.body = [place, first_step = cast_->first_step, evaluation = options_.evaluation,
                   ended](activity& activity) {
      return evaluate_until_closed(activity, place, first_step, evaluation, ended);
    };
    auto lives = world_.system().spawn(replica, std::move(config));
    world_.introduce(lives.id(), "evaluator");
  }

  // After this nothing refers to the caller's functions any more.
  void end_evaluator() {
    if (!evaluation_tokens_) return;
    caf::anon_send(evaluation_tokens_, make_close_tokens());
    static_cast<void>(world_.run_until(evaluator_ended_));
    caf::anon_send_exit(evaluation_tokens_, caf::exit_reason::user_shutdown);
  }

  // What the chief told the others on its way out may not have reached them yet.
  void clear() {
    placement_->on_return({});
    placement_->on_owners_return({});
    tell_directory(strategy_, {});
    cast_->end();
    caf::anon_send_exit(chief_, caf::exit_reason::kill);
    caf::anon_send_exit(recorder_, caf::exit_reason::kill);
    for (const auto& replica : replicas_)
      caf::anon_send_exit(replica, caf::exit_reason::kill);
  }

  void ask_to_stop(const std::string& reason) {
    world_.call([chief = chief_, reason] { caf::anon_send(chief, make_stop_job(reason)); });
  }

  [[nodiscard]] replica_context::place place_of(uint32_t index) const {
    return {index, strategy_.num_replicas_in_sync(), cast_, &strategy_, {}};
  }

  strategy& strategy_;
  world& world_;
  placement* placement_;
  const sync_replicas_optimizer& optimizer_;
  const training_options& options_;
  job_members& members_;
  hook_list hooks_;
  std::shared_ptr<const training_cast> cast_;
  std::shared_ptr<const replica_script> script_;
  chief_actor chief_;
  training_cast chief_cast_; ///< As the chief knows it, where there is a placement.
  recorder_actor recorder_;
  std::vector<replica_actor> replicas_; ///< Where they stand on other nodes.
  token_queue_actor evaluation_tokens_;
  std::future<void> evaluator_ended_;
  std::shared_ptr<curtain> ending_ = std::make_shared<curtain>();
  std::vector<replica_site> sites_;    ///< Where replicas stand, by index.
  std::map<uint32_t, uint64_t> lives_; ///< How many a replica has had.
};

// The process of the chief. What it throws, its members are told.
job_report lead(strategy& strategy, const sync_replicas_optimizer& optimizer,
                const session_function& session, const training_options& options) {
  job_members members{strategy};
  if (auto gathered = members.gather(options.agreement, options.stop); !gathered) {
    job_report report{.failure = gathered.error()};
    if (gathered.error().code == errc::cancelled) report = {.stopped = "asked to stop"};
    report.has_begun = false;
    return members.end(std::move(report));
  }
  if (auto* placement = strategy.layout().placement)
    placement->tell_spared(spared_by(strategy, optimizer.options(), options));
  try {
    return members.end(stage{strategy, optimizer, options, members}.play(session));
  } catch (const failure& failed) {
    auto is_missing = failed.reason().code == errc::unavailable
                      || failed.reason().code == errc::deadline_exceeded;
    auto is_shared = members.has_any();
    auto report = members.end({.failure = failed.reason()});
    if (is_shared && is_missing) return report;
    throw;
  }
}

} // namespace

job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const step_function& step, const training_options& options) {
  session_function body = [step](training_session& session) { return run_steps(session, step); };
  return train(strategy, optimizer, body, options);
}

job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const session_function& session, const training_options& options) {
  check(strategy, optimizer, options);
  auto* placement = strategy.layout().placement;
  if (placement != nullptr && !placement->leads())
    return tell_failure(options, follow(strategy, optimizer, session, options));
  return tell_failure(options, lead(strategy, optimizer, session, options));
}

} // namespace troupe
