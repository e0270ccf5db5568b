// SPDX-License-Identifier: Apache-2.0
// The part of a process in a job that has its chief elsewhere.
#include "strategies/jobs/job_member.hpp"

#include "actors/training/member.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/training_cast.hpp"
#include "strategies/jobs/replica_life.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <limits>
#include <utility>
#include <variant>

namespace troupe {

namespace {

constexpr auto no_step_is_wanted = std::numeric_limits<uint64_t>::max();

const error asked_to_stop{errc::cancelled, "asked to stop"};

// How long replicas of this process may take to leave when the job is over.
constexpr job_time leave_deadline = std::chrono::seconds{30};

// A process that can reach another no more may hear in a moment that this ends the job for all.
constexpr job_time word_patience = std::chrono::seconds{1};

/// A value that others will know; the first one told counts.
template <class T>
class awaited {
public:
  [[nodiscard]] auto teller() const {
    return [shared = shared_](expected<T> value) {
      if (shared->is_told.exchange(true)) return;
      shared->value = std::move(value);
      shared->is_known.set_value();
    };
  }

  /// Errors: those of the value, too.
  [[nodiscard]] expected<T> wait(world& world) const {
    if (auto turned = world.run_until(shared_->known); !turned)
      return tl::unexpected<error>(turned.error());
    return *shared_->value;
  }

  /// Whether it is known within that time.
  [[nodiscard]] bool comes(world& world, job_time patience) const {
    return world.run_until(shared_->known, patience).has_value();
  }

private:
  struct content {
    std::atomic<bool> is_told = false;
    std::promise<void> is_known;
    std::future<void> known = is_known.get_future();
    std::optional<expected<T>> value;
  };

  std::shared_ptr<content> shared_ = std::make_shared<content>();
};

/// Counts the replicas of this process that have not left yet.
struct headcount {
  std::atomic<size_t> left = 1;     ///< With the stage, as long as it is not cleared.
  std::atomic<size_t> reaching = 0; ///< Those that have not ended for what they could not reach.
  std::promise<void> all_gone;
  std::function<void(const error&)>
    on_cut_off; ///< Told when all have, and of the last one's reason.

  void leave() {
    if (--left == 0) all_gone.set_value();
  }

  void end(const error& reason) {
    if (reason.code == errc::unavailable && --reaching == 0) on_cut_off(reason);
    leave();
  }
};

/// The part of a job that stands in a process that does not lead.
class member_stage {
public:
  member_stage(strategy& strategy, const sync_replicas_optimizer& optimizer,
               const session_function& body, const training_options& options)
    : strategy_(strategy), world_(strategy.world()), placement_(*strategy.layout().placement),
      script_(
        std::make_shared<const replica_script>(replica_script{optimizer, body, options.pace})),
      options_(options) {}

  member_stage(const member_stage&) = delete;
  member_stage& operator=(const member_stage&) = delete;

  ~member_stage() {
    clear();
    dismiss_member();
    placement_.give_up({});
  }

  [[nodiscard]] job_report play() {
    auto begins = wait_for_beginning();
    if (!begins) return stay_out(begins.error());
    has_begun_ = true;
    world_.set_clock(job_time{static_cast<int64_t>(begins->reader().getClockNanoseconds())});
    try {
      build(*begins);
    } catch (const failure& failed) {
      if (failed.reason() == asked_to_stop) return {.stopped = asked_to_stop.message};
      if (!is_about_others(failed.reason())) throw;
    }
    std::stop_callback on_stop{options_.stop, [this] { ask_to_stop(); }};
    auto goes_on = over_.wait(world_);
    auto is_over = goes_on || end_.comes(world_, word_patience);
    clear();
    return is_over ? leave(end_.wait(world_)) : part(goes_on.error());
  }

private:
  // What is wrong elsewhere, the chief's process hears of, too, and ends the job.
  [[nodiscard]] static bool is_about_others(const error& reason) {
    return reason.code == errc::unavailable || reason.code == errc::cancelled;
  }

  // Once the job is over, waiting for an actor to come on stage is in vain.
  [[nodiscard]] auto end_teller() {
    return [this, tell = end_.teller(), tell_over = over_.teller()](expected<job_ending> ended) {
      placement_.give_up(error{errc::cancelled, "the job is over"});
      tell(std::move(ended));
      tell_over({});
    };
  }

  // Errors: as the roll call's; cancelled, if this process is asked to stop before it begins.
  [[nodiscard]] expected<msg<wire::JobBegins>> wait_for_beginning() {
    placement_.give_up({});
    std::stop_callback on_stop{options_.stop, [this, tell = begin_.teller()] {
                                 placement_.give_up(asked_to_stop);
                                 tell(tl::unexpected<error>(asked_to_stop));
                               }};
    try {
      enter();
    } catch (const failure& failed) {
      if (failed.reason() != asked_to_stop) throw;
    }
    auto begins = begin_.wait(world_);
    placement_.give_up({});
    return begins;
  }

  // The job does not begin, as far as this process is concerned.
  [[nodiscard]] job_report stay_out(const error& why) {
    if (why == asked_to_stop) return {.stopped = why.message, .has_begun = false};
    strategy_.leave_others(); // no process needs what it holds
    return leave(tl::unexpected<error>(why));
  }

  void enter() {
    value_or_throw(placement_.enter("roll call"));
    auto roll = value_or_throw(placement_.find<roll_call_actor>("member", "roll call"));
    entrance who{.member = placement_.here(),
                 .clock = world_.now(),
                 .seed = world_.seed(),
                 .replicas = strategy_.num_replicas_in_sync(),
                 .agreement = options_.agreement};
    member_ = world_.system().spawn(
      member, member_config{roll, who, begin_.teller(), end_teller(), left_.teller()});
    world_.introduce(member_.id(), fmt::format("member {}", who.member));
  }

  void build(const msg<wire::JobBegins>& begins) {
    auto first_step = begins.reader().getFirstStep();
    auto saved = read_replicas(begins);
    auto life = begins.reader().getLife();
    auto builder = script_->optimizer; // copies build for each other
    builder.build(strategy_, trained_variables(strategy_, options_), first_step, {},
                  links_of(strategy_, options_));
    cast_ = builder.cast();
    if (life > 0) offer_all_again(strategy_);
    value_or_throw(placement_.enter("chief"));
    chief_ = value_or_throw(placement_.find<chief_actor>("member", "chief"));
    auto sites = enter_replicas(strategy_, options_);
    for (uint32_t index = 0; index < sites.size(); ++index)
      if (sites[index].is_here && !is_dead(options_, index)) ++count_->reaching;
    count_->on_cut_off
      = [tell = over_.teller()](const error& reason) { tell(tl::unexpected<error>(reason)); };
    replica_company company{strategy_, options_, script_, chief_, cast_, sites};
    for (uint32_t index = 0; index < sites.size(); ++index) {
      if (!sites[index].is_here || is_dead(options_, index)) continue;
      replicas_.push_back(company.spawn(index, {first_step, saved_of(saved, index), life}));
      ++count_->left;
      caf::actor_cast<caf::abstract_actor*>(replicas_.back())
        ->attach_functor(
          [count = count_](const caf::error& reason) { count->end(from_caf(reason)); });
    }
  }

  void ask_to_stop() {
    if (chief_) caf::anon_send(chief_, make_stop_job(asked_to_stop.message));
  }

  // After this no replica refers to the caller's functions any more.
  void clear() {
    if (!cast_) return;
    for (const auto& replica : replicas_)
      caf::anon_send(replica, make_cancel_step(no_step_is_wanted));
    auto gone = count_->all_gone.get_future();
    count_->leave();
    if (!world_.run_until(gone, leave_deadline))
      for (const auto& replica : replicas_)
        caf::anon_send_exit(replica, caf::exit_reason::kill);
    last_step_ = std::max(cast_->step_heard->load(), newest_version());
    std::exchange(cast_, nullptr)->end();
  }

  // After this the member tells nothing any more.
  void dismiss_member() {
    if (!member_) return;
    auto gone = std::make_shared<std::promise<void>>();
    auto over = gone->get_future();
    caf::actor_cast<caf::abstract_actor*>(member_)->attach_functor([gone] { gone->set_value(); });
    caf::anon_send_exit(member_, caf::exit_reason::kill);
    static_cast<void>(world_.run_until(over, leave_deadline));
  }

  // Of the variables that are held here.
  [[nodiscard]] uint64_t newest_version() const {
    uint64_t newest = 0;
    for (const auto& variable : cast_->variables) {
      if (!variable.is_here()) continue;
      auto snapshot
        = ask<msg<wire::VariableSnapshot>>(world_, variable.owner(), make_read_variable());
      if (snapshot) newest = std::max(newest, snapshot->reader().getVersion());
    }
    return newest;
  }

  // The job may go on without this process, which has lost a peer that it cannot do without. A new
  // start gives it new links.
  job_report part(error why) {
    strategy_.leave_others();
    if (last_step_ > 0) why.message += fmt::format("; the job had come to step {}", last_step_);
    return report_of({.step = last_step_, .failure = std::move(why)});
  }

  // @param ended How the job ended, as far as this process knows.
  job_report leave(expected<job_ending> ended) {
    caf::anon_send(member_, make_leave_job(placement_.here()));
    auto left = left_.wait(world_);
    if (left) return report_of(*left);
    auto known = ended.value_or(job_ending{.step = last_step_});
    if (known.failure) return report_of(known); // whichever process is gone by now
    known.failure = ended ? left.error() : ended.error();
    known.step = std::max(known.step, last_step_);
    if (known.failure->code == errc::unavailable && known.step > 0)
      known.failure->message += fmt::format("; the job had come to step {}", known.step);
    return report_of(known);
  }

  [[nodiscard]] job_report report_of(const job_ending& ending) const {
    return {.step = ending.step,
            .failure = ending.failure,
            .stopped = ending.stopped,
            .has_begun = has_begun_};
  }

  strategy& strategy_;
  world& world_;
  placement& placement_;
  std::shared_ptr<const replica_script> script_;
  const training_options& options_;
  member_actor member_;
  chief_actor chief_;
  awaited<msg<wire::JobBegins>> begin_;
  awaited<job_ending> end_;
  awaited<std::monostate> over_; ///< The end, or that no replica here can go on.
  awaited<job_ending> left_;
  std::shared_ptr<const training_cast> cast_;
  std::vector<replica_actor> replicas_;
  std::shared_ptr<headcount> count_ = std::make_shared<headcount>();
  uint64_t last_step_ = 0;
  bool has_begun_ = false;
};

} // namespace

job_report follow(strategy& strategy, const sync_replicas_optimizer& optimizer,
                  const session_function& session, const training_options& options) {
  return member_stage{strategy, optimizer, session, options}.play();
}

} // namespace troupe
