// SPDX-License-Identifier: Apache-2.0
// A job with a chief, in a process where the chief does not stand.
#include "actors/training/member.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/completion.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/jobs/job_runner.hpp"
#include "strategies/jobs/replica_life.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace troupe {

namespace {

constexpr auto no_step_is_wanted = std::numeric_limits<uint64_t>::max();

const error asked_to_stop{errc::cancelled, "asked to stop"};
const error job_is_over{errc::cancelled, "the job is over"};

// How long replicas of this process may take to leave when the job is over.
constexpr job_time leave_deadline = std::chrono::seconds{30};

// A process that can reach another no more may hear in a moment that this ends the job for all.
constexpr job_time word_timeout = std::chrono::seconds{1};

/// Counts the replicas of this process that have not left yet.
struct headcount {
  std::atomic<size_t> left = 1;     ///< With the runner, as long as it waits for none.
  std::atomic<size_t> reaching = 0; ///< Replicas that are not cut off.
  completion<void> all_gone;
  completion<void> over; ///< Told when all replicas are cut off, with the last one's reason.

  void leave() {
    if (--left == 0) all_gone({});
  }

  void end(const error& reason) {
    if (reason.code == errc::unavailable && --reaching == 0) over(tl::unexpected<error>(reason));
    leave();
  }
};

class job_member final : public job_runner {
public:
  job_member(troupe::strategy& strategy, const sync_replicas_optimizer& optimizer,
             const session_function& session, const training_options& options)
    : job_runner(strategy, options, {},
                 session_control{[this](const std::string& reason) { ask_to_stop(reason); }}),
      placement_(*strategy.layout().placement), optimizer_(optimizer), session_(session) {}

  ~job_member() override {
    clear();
    end_actor(world_, member_);
    placement_.give_up({});
  }

private:
  std::optional<job_report> gather() override {
    placement_.give_up({});
    auto begins = wait_for_beginning();
    placement_.give_up({}); // only the job's end ends waits from now on, and may have come already
    if (end_.has_come()) placement_.give_up(job_is_over);
    if (begins) {
      begins_ = std::move(*begins);
      return std::nullopt;
    }
    leaves_alone_ = begins.error() == asked_to_stop;
    if (leaves_alone_) return job_report{.stopped = asked_to_stop.message};
    strategy_.leave_others(); // no process needs what it holds
    return job_report{.failure = begins.error()};
  }

  // Errors: as the roll call's; cancelled, if this process is asked to stop before it begins.
  [[nodiscard]] expected<msg<wire::JobBegins>> wait_for_beginning() {
    std::stop_callback on_stop{options_.stop, [this, begin = begin_] {
                                 placement_.give_up(asked_to_stop);
                                 begin(tl::unexpected<error>(asked_to_stop));
                               }};
    try {
      enter();
    } catch (const failure& failed) {
      if (failed.reason() != asked_to_stop) throw;
    }
    return begin_.wait(world_);
  }

  void enter() {
    value_or_throw(placement_.enter("roll call"));
    auto roll = value_or_throw(placement_.find<roll_call_actor>("member", "roll call"));
    entrance own{.member = placement_.here(),
                 .clock = world_.now(),
                 .seed = world_.seed(),
                 .replicas = strategy_.num_replicas_in_sync(),
                 .agreement = job_agreement(strategy_, options_)};
    // Once the job is over, waiting for an actor to be spawned elsewhere is in vain.
    auto on_end = [this, end = end_, over = count_->over](expected<job_ending> ended) {
      end(std::move(ended));
      placement_.give_up(job_is_over);
      over({});
    };
    member_ = world_.system().spawn(
      member, member_config{roll, own, &world_.observatory(), begin_, on_end, left_});
    world_.introduce(member_.id(), fmt::format("member {}", own.member));
  }

  // Where a job goes on with fewer replicas, only those of this process stop.
  void ask_to_stop(const std::string& reason) {
    if (options_.min_replicas > 0 && replicas_ && !replicas_->here().empty()) {
      leave_.request_stop();
      count_->over(tl::unexpected<error>(asked_to_stop));
    } else if (chief_) {
      caf::anon_send(chief_, make_stop_job(reason));
    }
  }

  uint64_t restore() override {
    world_.set_clock(job_time{static_cast<int64_t>(begins_->reader().getClockNanoseconds())});
    return begins_->reader().getFirstStep();
  }

  // The chief's process hears of what is wrong elsewhere, too, and ends the job.
  void prepare(const session_plan& plan) override {
    try {
      build(plan.first_step);
    } catch (const failure& failed) {
      auto code = failed.reason().code;
      if (code != errc::unavailable && code != errc::cancelled) throw;
    }
  }

  void build(uint64_t first_step) {
    auto life = begins_->reader().getLife();
    auto builder = optimizer_; // copies build for each other
    builder.build(strategy_, trained_variables(strategy_, options_), first_step, {},
                  links_of(strategy_, options_));
    actors_ = builder.actors();
    if (life > 0) offer_all_again(strategy_);
    value_or_throw(placement_.enter("chief"));
    chief_ = value_or_throw(placement_.find<chief_actor>("member", "chief"));
    auto& replicas
      = replicas_.emplace(replica_surroundings{strategy_, options_, optimizer_, session_, actors_,
                                               chief_, read_replicas(*begins_), leave_.get_token()},
                          enter_replicas(strategy_, options_));
    auto here = replicas.here();
    count_->reaching = here.size();
    for (auto index : here) {
      auto replica = replicas.spawn(index, life);
      ++count_->left;
      caf::actor_cast<caf::abstract_actor*>(replica)->attach_functor(
        [count = count_](const caf::error& reason) { count->end(from_caf(reason)); });
    }
  }

  job_report train() override {
    auto goes_on = count_->over.wait(world_);
    if (!goes_on && goes_on.error() == asked_to_stop) return depart();
    auto is_over = goes_on || end_.comes(world_, word_timeout);
    clear();
    if (!is_over) return part(goes_on.error());
    auto ended = end_.wait(world_);
    return ended ? report_of(*ended) : broken_off({}, ended.error());
  }

  // After this no replica refers to the caller's functions any more.
  void clear() {
    if (!actors_) return;
    count_->leave();
    auto have_left = leave_.stop_requested() && count_->all_gone.comes(world_, leave_deadline);
    if (replicas_ && !have_left)
      for (const auto& replica : replicas_->spawned())
        caf::anon_send(replica, make_cancel_step(no_step_is_wanted));
    if (!count_->all_gone.comes(world_, leave_deadline)) replicas_->kill();
    last_step_ = std::max(actors_->step_heard->load(), newest_version());
    std::exchange(actors_, nullptr)->end();
  }

  // The newest version among the variables that this process holds.
  [[nodiscard]] uint64_t newest_version() const {
    uint64_t newest = 0;
    for (const auto& variable : actors_->variables) {
      if (!variable.is_here()) continue;
      auto snapshot
        = ask<msg<wire::VariableSnapshot>>(world_, variable.owner(), make_read_variable());
      if (snapshot) newest = std::max(newest, snapshot->reader().getVersion());
    }
    return newest;
  }

  // Its replicas finish their steps and leave, and the job goes on without this process.
  job_report depart() {
    clear();
    if (auto ended = end_.peek()) return report_of(*ended);
    leaves_alone_ = true;
    strategy_.leave_others();
    return {.step = last_step_, .stopped = "left the job, as it was asked to,"};
  }

  // The job may go on without this process, which has lost a peer that it cannot do without. A new
  // start gives it new links.
  job_report part(error reason) {
    leaves_alone_ = true;
    strategy_.leave_others();
    return {.step = last_step_, .failure = with_last_step(std::move(reason), last_step_)};
  }

  job_report leave(job_report report) override {
    if (leaves_alone_) return report;
    caf::anon_send(member_, make_leave_job(placement_.here()));
    auto left = left_.wait(world_);
    if (left) return report_of(*left);
    if (report.failure) return report; // whichever process is gone by now
    return broken_off(std::move(report), left.error());
  }

  // How the job ended for a process that was not told.
  [[nodiscard]] job_report broken_off(job_report report, error reason) const {
    report.step = std::max(report.step, last_step_);
    if (reason.code == errc::unavailable) reason = with_last_step(std::move(reason), report.step);
    report.failure = std::move(reason);
    return report;
  }

  [[nodiscard]] static error with_last_step(error reason, uint64_t step) {
    if (step > 0) reason.message += fmt::format("; the job had come to step {}", step);
    return reason;
  }

  [[nodiscard]] static job_report report_of(const job_ending& ending) {
    return {.step = ending.step, .failure = ending.failure, .stopped = ending.stopped};
  }

  placement& placement_;
  const sync_replicas_optimizer& optimizer_;
  const session_function& session_;
  member_actor member_;
  chief_actor chief_;
  completion<msg<wire::JobBegins>> begin_;
  completion<job_ending> end_;
  completion<job_ending> left_;
  std::optional<msg<wire::JobBegins>> begins_;
  std::shared_ptr<const job_actors> actors_;
  std::optional<job_replicas> replicas_;
  std::stop_source leave_; ///< Asked for: this process leaves the job, which goes on.
  std::shared_ptr<headcount> count_ = std::make_shared<headcount>();
  uint64_t last_step_ = 0;
  bool leaves_alone_ = false; ///< Without a word to the other processes.
};

} // namespace

job_report run_as_member(strategy& strategy, const sync_replicas_optimizer& optimizer,
                         const session_function& session, const training_options& options) {
  return job_member{strategy, optimizer, session, options}.run();
}

} // namespace troupe
