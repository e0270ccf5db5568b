// SPDX-License-Identifier: Apache-2.0
// A job without a chief: one run for each step, in all processes that have replicas.
#include "actors/collective/collective_group.hpp"
#include "actors/training/task_reporter.hpp"
#include "actors/world/completion.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/jobs/job_runner.hpp"
#include "strategies/jobs/observed_tasks.hpp"
#include "strategies/jobs/replica_check.hpp"
#include "strategies/jobs/replica_life.hpp"
#include "strategies/jobs/restore.hpp"
#include "strategies/jobs/spread_snapshot.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace {

/// The reason why this process asks the job to end, once it does.
using stop_request = completion<std::string>;

/// Whether a replica goes on after its step; if not, the reason.
enum class going_on : uint8_t { yes, has_made_all, is_asked_to_stop };

/// One replica's step, as it reports it to all processes.
struct step_report {
  double loss = 0;
  uint32_t examples = 0;
  job_time compute{0};
  job_time computed{0}; ///< Since the step began.
  going_on goes_on = going_on::yes;
  bool keeps = false; ///< Something by `replica_context::keep`.

  static constexpr int64_t numbers = 6;

  // Shape: [1, numbers] f64, which holds times of some months to the nanosecond.
  [[nodiscard]] tensor row() const {
    tensor result{dtype::f64, {1, numbers}};
    std::ranges::copy(std::array{loss, static_cast<double>(examples),
                                 static_cast<double>(compute.count()),
                                 static_cast<double>(computed.count()),
                                 static_cast<double>(goes_on), static_cast<double>(keeps)},
                      result.mutable_values<double>().begin());
    return result;
  }

  // A number out of its range, whichever process reported it, is read as 0.
  [[nodiscard]] static std::vector<step_report> of(const tensor& rows) {
    auto within = [](double value, double most) { return value >= 0 && value <= most ? value : 0; };
    auto time = [&](double value) { return job_time{static_cast<int64_t>(within(value, 0x1p62))}; };
    std::vector<step_report> all;
    auto left = rows.values<double>();
    for (; left.size() >= numbers; left = left.subspan(numbers))
      all.push_back(
        {left[0], static_cast<uint32_t>(within(left[1], UINT32_MAX)), time(left[2]), time(left[3]),
         static_cast<going_on>(within(left[4], static_cast<double>(going_on::is_asked_to_stop))),
         left[5] == 1});
    return all;
  }
};

/// The arrays that each replica of this process keeps.
using kept_arrays = std::vector<std::vector<named_payload>>;

} // namespace

/// One step of one replica, which is another actor in every run.
class replica_step {
public:
  /// Where the job stands, for a replica's new actor.
  struct place {
    uint64_t updates = 0; ///< Made so far.
    job_time began{0};
    bool is_last = false; ///< For this process.
    stop_request stop;
    std::function<job_time(uint32_t replica, uint64_t iteration, job_time elapsed)> pace;
    uint32_t first_replica = 0; ///< The first of this process.
    std::shared_ptr<kept_arrays> kept;
  };

  /// @returns The `step_report` of every replica. Shape: [replicas, step_report::numbers] f64
  static task<tensor> make(replica_context& context, step_function body, place at) {
    auto& activity = context.activity_;
    auto& kept = (*at.kept)[context.replica_id_in_sync_group() - at.first_replica];
    auto progress = progress_of(context.replica_id_in_sync_group(), at.updates);
    progress.kept = kept;
    activity.restore(progress);
    if (at.pace)
      activity.set_pace(
        [pace = at.pace, replica = context.replica_id_in_sync_group()](
          uint64_t iteration, job_time elapsed) { return pace(replica, iteration, elapsed); });
    auto running = body(context);
    co_await running;
    kept = activity.progress().kept;
    auto own = report_of(context, at, !kept.empty()).row();
    auto gathering = context.all_gather(std::move(own), 0);
    auto all = co_await gathering;
    co_return all;
  }

  static replica_progress progress_of(uint32_t replica, uint64_t updates) {
    return {
      .replica = replica, .local_step = updates, .iteration = updates, .computations = updates};
  }

private:
  static step_report report_of(const replica_context& context, const place& at, bool keeps) {
    auto goes_on = at.stop.peek() ? going_on::is_asked_to_stop
                   : at.is_last   ? going_on::has_made_all
                                  : going_on::yes;
    return {context.loss_,
            context.examples_,
            context.compute_time_,
            std::max(job_time{0}, context.computed_at_ - at.began),
            goes_on,
            keeps};
  }
};

namespace {

class job_peer final : public job_runner {
public:
  job_peer(troupe::strategy& strategy, const step_function& body, const training_options& options,
           stop_request stop = {})
    : job_runner(strategy, options,
                 strategy.layout().should_checkpoint ? options.hooks
                                                     : std::vector<std::shared_ptr<session_hook>>{},
                 session_control{stop}),
      body_(body), leads_(strategy.layout().should_checkpoint), stop_request_(std::move(stop)),
      kept_(std::make_shared<kept_arrays>(strategy.num_local_replicas())) {}

  ~job_peer() override { end_actor(world_, reporter_); }

private:
  // The first process looks at the others, where it is to; they have come to the same point.
  void show_tasks(session_plan& plan) override {
    const auto& group = strategy_.layout().group;
    if (!group) return;
    auto& place = *group->placement;
    auto name_of = [](uint32_t rank) { return fmt::format("task reporter {}", rank); };
    for (uint32_t rank = 1; rank < group->size; ++rank) {
      auto name = name_of(rank);
      if (!value_or_throw(place.enter_beside(name, communicator_name(rank)))) continue;
      reporter_ = world_.system().spawn(task_reporter, &world_.observatory());
      world_.introduce(reporter_.id(), name);
      place.put(name, reporter_);
    }
    if (group->rank > 0 || options_.observe_period == job_time{0}) return;
    std::map<uint32_t, std::string> observed;
    for (uint32_t rank = 1; rank < group->size; ++rank)
      observed.emplace(rank, group->names[rank]);
    tasks_.emplace(world_, options_.observe_period, group->names[0], std::move(observed),
                   [this](const flight_records& records) { hooks_.on_flight_records(records); });
    for (uint32_t rank = 1; rank < group->size; ++rank)
      tasks_->adder()(
        rank, value_or_throw(place.find<task_reporter_actor>(communicator_name(0), name_of(rank))));
    tasks_->show(plan);
  }

  uint64_t restore() override {
    auto from = spread_snapshot(strategy_, options_.resume);
    if (from) troupe::restore(strategy_, *from);
    const auto first = strategy_.first_local_replica();
    for (const auto& replica : from ? from->replicas : std::vector<replica_progress>{})
      if (replica.replica - first < kept_->size()) (*kept_)[replica.replica - first] = replica.kept;
    made_ = from ? from->step : updates_made(strategy_, trained_variables(strategy_, options_));
    arrived_.assign(strategy_.num_replicas_in_sync(), world_.now());
    return made_;
  }

  void prepare(const session_plan& plan) override {
    last_ = made_ + plan.steps;
    takes_snapshots_ = plan.takes_snapshots;
  }

  job_report train() override {
    job_report report;
    try {
      is_over_ = !has_steps();
      ended_ = world_.now();
      while (!is_over_)
        make_step(report);
    } catch (...) {
      report.failure = reason_of(std::current_exception());
      hooks_.on_trouble(report.failure->message);
      strategy_.leave_others();
    }
    report.step = made_;
    return report;
  }

  // Only the first process knows what hooks have made of the number of steps.
  bool has_steps() {
    if (!strategy_.layout().group) return last_ > made_;
    auto own = make_tensor({1}, {last_ > made_ ? 1.0F : 0.0F});
    return of_first_process("whether there are steps to make", own).values<float>()[0] != 0;
  }

  void make_step(job_report& report) {
    auto replicas = static_cast<uint32_t>(strategy_.num_replicas_in_sync());
    if (leads_)
      hooks_.on_open_step({.step = made_ + 1, .live = replicas, .needed = replicas, .tokens = {}});
    replica_step::place at{.updates = made_,
                           .began = world_.now(),
                           .is_last = leads_ && made_ + 1 == last_,
                           .stop = stop_request_,
                           .pace = options_.pace,
                           .first_replica = strategy_.first_local_replica(),
                           .kept = kept_};
    auto rows = strategy_.run([body = body_, at](replica_context& context) {
      return replica_step::make(context, body, at);
    });
    ++made_;
    auto all = step_report::of(rows.primary());
    if (all.size() != strategy_.num_replicas_in_sync())
      throw_failure(errc::malformed, "step {} was told of by {} replicas; there are {}", made_,
                    all.size(), strategy_.num_replicas_in_sync());
    auto record = record_of(all, at.began);
    if (leads_) {
      if (options_.on_step) options_.on_step(record);
      hooks_.after_step(record);
    }
    conclude(all, report);
    check();
    evaluate_and_save();
  }

  // Where processes hold parts of a variable, they meet for both.
  void evaluate_and_save() {
    const auto every = options_.evaluation.every_steps;
    after_step work{.evaluates = leads_ && every > 0 && made_ % every == 0,
                    .saves = leads_ && takes_snapshots_
                             && hooks_.wants_snapshot(made_, world_.now(), is_over_)};
    if (has_parts_elsewhere() || keeps_elsewhere()) work = of_first_process(work);
    if (work.evaluates) evaluate();
    if (work.saves) save();
  }

  step_record record_of(const std::vector<step_report>& all, job_time began) {
    auto replicas = static_cast<uint32_t>(all.size());
    step_record record{.step = made_,
                       .began = std::exchange(ended_, world_.now()),
                       .needed = replicas,
                       .live = replicas};
    record.ended = ended_;
    for (uint32_t i = 0; i < replicas; ++i) {
      auto arrived = std::min(began + all[i].computed, ended_);
      record.accepted.push_back({.replica = i,
                                 .local_step = made_ - 1,
                                 .arrived = arrived,
                                 .compute = all[i].compute,
                                 .waited = began - std::exchange(arrived_[i], arrived),
                                 .loss = all[i].loss,
                                 .examples = all[i].examples});
    }
    std::ranges::stable_sort(record.accepted, {}, &contribution::arrived);
    record.apply = ended_ - record.accepted.back().arrived;
    return record;
  }

  // Whether this was the last step, which all processes see alike.
  void conclude(const std::vector<step_report>& all, job_report& report) {
    auto asks = std::ranges::find(all, going_on::is_asked_to_stop, &step_report::goes_on);
    auto own = stop_request_.peek();
    if (asks != all.end()) {
      const auto& group = strategy_.layout().group;
      auto rank = static_cast<size_t>(asks - all.begin()) / (group ? group->replicas_each : 1);
      report.stopped = own ? *own : fmt::format("asked to stop by {}", group->names[rank]);
    } else if (!strategy_.layout().group && own) {
      report.stopped = own; // no other process is to be told
    }
    auto goes_on = [](const step_report& step) { return step.goes_on == going_on::yes; };
    keeps_ = std::ranges::any_of(all, &step_report::keeps);
    is_over_ = report.stopped || !std::ranges::all_of(all, goes_on);
  }

  void check() {
    auto every = options_.check_replicas_every;
    if (every > 0 && (made_ % every == 0 || is_over_))
      check_replicas(strategy_, strategy_.variables(), made_);
  }

  // Other processes give their parts. An evaluation that fails does not end the job.
  void evaluate() {
    const auto& evaluation = options_.evaluation;
    try {
      std::vector<tensor> values;
      for (const auto& variable : evaluated_variables(strategy_, options_))
        if (leads_ || is_on_read(variable)) values.push_back(strategy_.read(variable));
      if (leads_) evaluation.on_result(made_, evaluation.evaluate(values));
    } catch (...) {
      warn_of_evaluation(made_);
    }
  }

  void save() {
    job_snapshot taken{.step = made_};
    if (leads_ || has_parts_elsewhere()) taken = take_snapshot(strategy_, made_);
    taken.replicas = progress_of_all();
    if (!leads_) return;
    taken.tokens.assign(strategy_.num_replicas_in_sync(), made_); // for a job with a chief
    hooks_.after_snapshot(taken);
  }

  // Where replicas keep something, all processes are asked.
  std::vector<replica_progress> progress_of_all() {
    job_snapshot here{.step = made_};
    for (uint32_t i = 0; i < kept_->size(); ++i)
      here.replicas.push_back(
        {.replica = strategy_.first_local_replica() + i, .kept = (*kept_)[i]});
    std::vector<std::optional<job_snapshot>> parts{here};
    if (keeps_elsewhere()) parts = gather_snapshots(strategy_, "what replicas keep", here);
    std::vector<replica_progress> all;
    for (uint32_t i = 0; i < strategy_.num_replicas_in_sync(); ++i)
      all.push_back(replica_step::progress_of(i, made_));
    for (const auto& part : parts)
      for (const auto& replica : part ? part->replicas : std::vector<replica_progress>{})
        if (replica.replica < all.size()) all[replica.replica].kept = replica.kept;
    return all;
  }

  // Work to do before the next step.
  struct after_step {
    bool evaluates = false;
    bool saves = false;
  };

  static bool is_on_read(const variable& variable) {
    return variable.synchronization() == variable_synchronization::on_read;
  }

  // Whether an evaluation, and a snapshot, take all processes.
  [[nodiscard]] bool has_parts_elsewhere() const {
    return strategy_.layout().group && std::ranges::any_of(strategy_.variables(), is_on_read);
  }

  [[nodiscard]] bool keeps_elsewhere() const {
    return strategy_.layout().group != nullptr && keeps_;
  }

  after_step of_first_process(const after_step& work) {
    auto own = make_tensor({2}, {work.evaluates ? 1.0F : 0.0F, work.saves ? 1.0F : 0.0F});
    auto first = of_first_process("whether to evaluate and to save", own);
    auto flags = first.values<float>();
    return {.evaluates = flags[0] != 0, .saves = flags[1] != 0};
  }

  // The first process's array, in all of them.
  tensor of_first_process(const std::string& purpose, const tensor& own) {
    return strategy_.cross_replica(
      [&](cross_replica_context& context) { return context.reducing().share_first(purpose, own); });
  }

  const step_function& body_;
  bool leads_;
  stop_request stop_request_;
  uint64_t made_ = 0; ///< Updates, those made before included.
  uint64_t last_ = 0;
  std::shared_ptr<kept_arrays> kept_;
  bool keeps_ = false;            ///< A replica of any process keeps something.
  bool takes_snapshots_ = false;  ///< Whether hooks have planned any.
  std::vector<job_time> arrived_; ///< When each replica was done with its last computation.
  job_time ended_{0};             ///< When the last step was.
  bool is_over_ = false;
  task_reporter_actor reporter_;        ///< Null in the first process, and where there is but one.
  std::optional<observed_tasks> tasks_; ///< Nothing, if other processes are not observed here.
};

} // namespace

job_report run_as_peer(strategy& strategy, const step_function& step,
                       const training_options& options) {
  return job_peer{strategy, step, options}.run();
}

} // namespace troupe
