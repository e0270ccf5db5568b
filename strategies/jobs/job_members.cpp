// SPDX-License-Identifier: Apache-2.0
// Waiting for processes to come, and to leave.
#include "strategies/jobs/job_members.hpp"

#include "actors/training/roll_call.hpp"
#include "messages/failure.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/send.hpp>

#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

/// What the roll call says, each of it once.
struct job_members::answers {
  std::promise<void> all_entered;
  std::optional<expected<job_time>> entered;
  std::promise<void> all_left;
  std::optional<job_ending> ending;

  void enter(expected<job_time> clock) {
    if (entered) return;
    entered = std::move(clock);
    all_entered.set_value();
  }

  void leave(job_ending how) {
    if (ending) return;
    ending = std::move(how);
    all_left.set_value();
  }

  std::mutex mutex; ///< Of what follows.
  std::function<void(uint32_t, const error&)> tell_loss;
  std::vector<std::pair<uint32_t, error>> lost;

  void lose(uint32_t member, const error& reason) {
    std::lock_guard guard{mutex};
    lost.emplace_back(member, reason);
    if (tell_loss) tell_loss(member, reason);
  }
};

namespace {

std::set<uint32_t> holders_in(const strategy& strategy) {
  const auto& layout = strategy.layout();
  std::set<uint32_t> holders;
  if (layout.owner_copies > 1) return holders; // others hold what they held
  for (const auto& variable : strategy.variables())
    holders.insert(layout.placement->where("owner " + variable.name()));
  return holders;
}

} // namespace

job_members::job_members(strategy& strategy)
  : strategy_(strategy), answers_(std::make_shared<answers>()) {}

job_members::~job_members() {
  if (roll_)
    static_cast<void>(
      end({.failure = error{errc::failed_precondition, "the chief's process gave the job up"}}));
}

expected<void> job_members::gather(const std::string& agreement, const std::stop_token& stop) {
  auto* placement = strategy_.layout().placement;
  if (placement == nullptr || placement->others().empty()) return {};
  static_cast<void>(value_or_throw(placement->enter("roll call")));
  auto& world = strategy_.world();
  roll_call_config config{.members = placement->others(),
                          .seed = world.seed(),
                          .replicas = strategy_.num_replicas_in_sync(),
                          .agreement = agreement,
                          .holders = holders_in(strategy_),
                          .enter_deadline = placement->start_deadline(),
                          .world = &world};
  config.on_entered
    = [answers = answers_](expected<job_time> clock) { answers->enter(std::move(clock)); };
  config.on_waiting = [placement](const std::string& line) { placement->tell_waiting(line); };
  config.on_lost
    = [answers = answers_](uint32_t member, const error& reason) { answers->lose(member, reason); };
  config.on_left = [answers = answers_](const job_ending& ending) { answers->leave(ending); };
  roll_ = world.system().spawn(roll_call, std::move(config));
  world.introduce(roll_.id(), "roll call");
  watch_roll_call();
  placement->put("roll call", roll_);
  auto over = answers_->all_entered.get_future();
  std::stop_callback on_stop{stop, [&] { tell_ending({.stopped = "asked to stop"}); }};
  if (auto turned = world.run_until(over); !turned) return turned;
  if (!*answers_->entered) return tl::unexpected<error>(answers_->entered->error());
  world.set_clock(**answers_->entered);
  return {};
}

// If its node is lost, which is simulated only, no actor is left to say which members are there.
void job_members::watch_roll_call() {
  auto* roll = caf::actor_cast<caf::abstract_actor*>(roll_);
  roll->attach_functor([answers = answers_](const caf::error& reason) {
    if (!reason) return;
    const error gone{errc::unavailable, "the chief's process is gone"};
    answers->enter(tl::unexpected<error>(gone));
    answers->leave({.failure = gone});
  });
}

void job_members::begin(uint64_t first_step, std::span<const replica_progress> replicas) {
  if (roll_) caf::anon_send(roll_, make_job_begins(first_step, strategy_.world().now(), replicas));
}

void job_members::on_loss(std::function<void(uint32_t member, const error& reason)> told) {
  std::lock_guard guard{answers_->mutex};
  answers_->tell_loss = std::move(told);
  if (!answers_->tell_loss) return;
  for (const auto& [member, reason] : answers_->lost)
    answers_->tell_loss(member, reason);
}

job_report job_members::end(job_report report) {
  if (!roll_) return report;
  tell_ending(report);
  auto over = answers_->all_left.get_future();
  auto turned = strategy_.world().run_until(over);
  roll_ = nullptr;
  report.failure = turned ? answers_->ending->failure : turned.error();
  return report;
}

void job_members::tell_ending(const job_report& report) {
  strategy_.world().call(
    [roll = roll_, ending = make_job_ended({report.step, report.failure, report.stopped})] {
      caf::anon_send(roll, ending);
    });
}

} // namespace troupe
