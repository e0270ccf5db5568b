// SPDX-License-Identifier: Apache-2.0
// Looks into a folder again and again, and evaluates each new checkpoint.
#include "strategies/jobs/sidecar_evaluator.hpp"

#include "actors/checkpoint/job_file.hpp"
#include "actors/interfaces/activity_messages.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/world/completion.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>

namespace troupe {

namespace {

// Time passes in a world only for its actors, so one of them sleeps for us.
void pause(world& world, job_time length, const std::stop_token& stop) {
  completion<void> over;
  auto sleeper
    = world.system().spawn([over, length](caf::event_based_actor* self) -> caf::behavior {
        self->delayed_send(self, length, watch_tick{});
        auto wake = [self, over] {
          self->quit();
          over({});
        };
        return {[wake](watch_tick) { wake(); }, [wake](give_up) { wake(); }};
      });
  std::stop_callback on_stop{
    stop, [&] { world.call([sleeper] { caf::anon_send(sleeper, give_up{}); }); }};
  // The sleeper ends the wait: what the world may say against it is said again by its next user.
  static_cast<void>(over.wait(world));
}

} // namespace

sidecar_evaluator::sidecar_evaluator(world& world, sidecar_evaluator_options options)
  : world_(world), options_(std::move(options)),
    checkpoints_(checkpoint_directory::look_at(options_.checkpoint_dir)) {
  require(!options_.checkpoint_dir.empty() && options_.evaluate,
          "a sidecar_evaluator needs a checkpoint_dir, and a function to evaluate");
  require(options_.poll_every > job_time{0},
          "poll_every must be positive; the evaluator sleeps so long between two looks");
  options_.on_warning = line_teller("on_warning of an evaluator", std::move(options_.on_warning));
}

expected<std::vector<uint64_t>> sidecar_evaluator::steps_there() const {
  auto is_there = checkpoints_.is_there();
  if (!is_there) return tl::unexpected<error>(is_there.error());
  return *is_there ? checkpoints_.steps() : std::vector<uint64_t>{};
}

// Whether there was something to evaluate.
expected<bool> sidecar_evaluator::evaluate(uint64_t step, expected<checkpoint> whole) const {
  auto warn = [this](const std::string& line) {
    options_.on_warning("checkpoint passed over: " + line);
    return false;
  };
  if (!whole) return warn(whole.error().message);
  auto snapshot = to_snapshot(whole->content);
  if (!snapshot)
    return warn(
      fmt::format("{}: {}", checkpoints_.path_of(step).string(), snapshot.error().message));
  try {
    found_checkpoint found{std::move(*snapshot), std::move(whole->content.metadata)};
    auto value = options_.evaluate(found);
    if (options_.on_result) options_.on_result(found, value);
    return true;
  } catch (...) {
    auto reason = reason_of(std::current_exception());
    return fail(reason.code,
                fmt::format("evaluating the checkpoint of step {}: {}", step, reason.message));
  }
}

// Sleeps before the next look, unless the system has refused to read for too long.
bool sidecar_evaluator::may_try_again(const error& reason) {
  if (reason.code != errc::resource) return false;
  if (!unreadable_since_) {
    unreadable_since_ = world_.now();
    options_.on_warning(
      fmt::format("{}; tried again for {:g} s", reason.message, seconds(options_.limits.timeout)));
  }
  if (world_.now() - *unreadable_since_ > options_.limits.timeout) return false;
  pause(world_, options_.poll_every, options_.stop);
  return true;
}

error sidecar_evaluator::waited_in_vain(const evaluation_schedule& schedule) const {
  auto last = schedule.last_evaluated();
  return {errc::deadline_exceeded,
          fmt::format("{} has left no checkpoint in {}{} and no sign of life for {:g} s",
                      options_.waits_for, options_.checkpoint_dir.string(),
                      last ? fmt::format(" after that of step {}", *last) : std::string{},
                      seconds(options_.limits.timeout))};
}

sidecar_report sidecar_evaluator::start() {
  evaluation_schedule schedule{options_.limits, world_.now()};
  sidecar_report report;
  auto ended = [&](std::optional<error> failure) {
    report.evaluations = schedule.count();
    report.last_step = schedule.last_evaluated();
    report.failure = std::move(failure);
    return report;
  };
  while (true) {
    if (options_.stop.stop_requested()) {
      report.is_stopped = true;
      return ended({});
    }
    auto is_over = options_.is_over && options_.is_over(); // asked first: see `sight`
    auto progress = options_.progress ? options_.progress() : 0;
    auto steps = steps_there();
    if (!steps) {
      if (may_try_again(steps.error())) continue;
      return ended(steps.error());
    }
    auto next = schedule.next({is_over, *steps, progress, world_.now()});
    switch (next.what) {
    case evaluation_schedule::action::finish:
      return ended({});
    case evaluation_schedule::action::give_up:
      return ended(waited_in_vain(schedule));
    case evaluation_schedule::action::wait:
      unreadable_since_.reset();
      pause(world_, options_.poll_every, options_.stop);
      break;
    case evaluation_schedule::action::evaluate: {
      auto whole = checkpoints_.read(next.step);
      if (!whole && whole.error().code == errc::resource) {
        if (may_try_again(whole.error())) break;
        return ended(whole.error());
      }
      unreadable_since_.reset();
      auto counts = evaluate(next.step, std::move(whole));
      if (!counts) return ended(counts.error());
      schedule.on_done(next.step, *counts, world_.now());
    }
    }
  }
}

} // namespace troupe
