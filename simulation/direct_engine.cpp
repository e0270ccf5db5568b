// SPDX-License-Identifier: Apache-2.0
// The direct engine: each moment ends computations, and may end a step.
#include "simulation/direct_engine.hpp"

#include "actors/policies/step_rules.hpp"
#include "actors/world/moment_rank.hpp"
#include "messages/errors/failure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr size_t replicas_ahead = 8; // their turn comes after about the time that memory takes

} // namespace

direct_engine::direct_engine(const scenario& scenario, scenario_report& report)
  : scenario_(scenario), report_(report), book_(report, scenario), draws_(scenario),
    updates_(scenario.update, scenario.sync.total_num_replicas),
    gradients_(0, scenario.sync.one_gradient_per_replica, asynchronous_rule::of(scenario.sync)),
    tokens_(scenario.sync.policy), replicas_(scenario.sync.total_num_replicas),
    live_(live_replicas(scenario)), moments_(scenario.sync.total_num_replicas) {
  value_or_throw(scenario.sync.validate());
  if (traits_of(scenario.sync.policy).keeps_pace())
    gate_ = slack_gate<waiter>{scenario.sync.total_num_replicas, scenario.sync.slack};
  if (scenario.sync.dynamic) choice_.emplace(*scenario.sync.dynamic);
  for (uint32_t replica = 0; replica < replicas_.size(); ++replica)
    identities_.push_back(identity_of(fmt::format("replica {}", replica)));
}

void direct_engine::run() {
  begin_job();
  while (!is_over() && !moments_.empty())
    pass_moment();
  report_.job.step = report_.step_times.size();
  if (!is_over()) stall();
}

void direct_engine::begin_job() {
  if (traits_of(scenario_.sync.policy).keeps_pace())
    for (uint32_t replica = 0; replica < replicas_.size(); ++replica)
      if (!std::ranges::binary_search(live_, replica))
        static_cast<void>(gate_.leave(replica)); // none waits yet
  if (auto count = scenario_.sync.first_tokens(); count > 0)
    static_cast<void>(tokens_.put(0, count));
  begin_step();
  for (auto replica : live_)
    begin_gradient(replica, 0);
}

// The chief acts when all that was due is done. Where training is asynchronous, the gradients of
// more than one step may be there.
void direct_engine::pass_moment() {
  now_ = moments_.next();
  auto is_asynchronous = traits_of(scenario_.sync.policy).is_asynchronous();
  while (!moments_.empty() && moments_.next() == now_) {
    find_due();
    for (auto replica : due_)
      end_computation(replica);
    if (is_closed_ && is_asynchronous) break; // there may be no end of computations without time
  }
  while (is_closed_ && !is_over())
    end_step();
}

// Replicas that are due at one moment come by rank; a single one needs none.
void direct_engine::find_due() {
  due_.clear();
  moments_.take_next(due_);
  report_.events += due_.size();
  if (due_.size() == 1) return;
  ranked_.clear();
  for (auto replica : due_)
    ranked_.push_back({moment_rank(scenario_.seed, now_, identities_[replica]), replica});
  std::ranges::sort(ranked_, {}, &ranked_replica::rank);
  std::ranges::transform(ranked_, due_.begin(), &ranked_replica::replica);
}

void direct_engine::end_computation(uint32_t replica) {
  auto& state = replicas_[replica];
  if (--state.left > 0) return compute(replica);
  origin from{.replica = replica,
              .local_step = state.local_step,
              .iteration = state.iteration,
              .compute = state.compute,
              .waited = state.waited};
  uint64_t not_before = 0;
  if (!gradients_.drop_if_late(from, now_)) {
    not_before = gradients_.accept(from, now_);
    close_if_full();
  }
  ask(replica, not_before);
}

void direct_engine::begin_gradient(uint32_t replica, uint64_t token) {
  auto& state = replicas_[replica];
  state.local_step = token;
  state.left = scenario_.local_sgd.local_steps;
  state.compute = job_time{0};
  ++state.iteration;
  updates_.begin(replica, token);
  compute(replica);
}

void direct_engine::compute(uint32_t replica) {
  auto& state = replicas_[replica];
  auto time = updates_.remaining(replica, now_) + draws_.next(replica);
  auto ends = later(now_, time);
  state.compute += ends - now_;
  moments_.push(ends, replica);
}

void direct_engine::ask(uint32_t replica, uint64_t not_before) {
  auto& state = replicas_[replica];
  state.asked = now_;
  waiter asks{replica, state.local_step, not_before};
  if (traits_of(scenario_.sync.policy).keeps_pace()) {
    for (auto& [waiter, token] : tokens_.take_all(gate_.arrive(replica, asks), not_before))
      grant(waiter.replica, token);
  } else if (auto token = tokens_.take(asks, asks.local_step, not_before)) {
    grant(replica, *token);
  }
}

void direct_engine::grant(uint32_t replica, uint64_t token) {
  replicas_[replica].waited = now_ - replicas_[replica].asked;
  begin_gradient(replica, token);
}

void direct_engine::close_if_full() {
  if (is_closed_ || gradients_.given() < needed_) return;
  closed_ = gradients_.close_step(needed_);
  is_closed_ = true;
}

void direct_engine::end_step() {
  record_.step = report_.step_times.size() + 1;
  record_.began = began_;
  record_.ended = now_;
  record_.needed = needed_;
  record_.live = static_cast<uint32_t>(live_.size());
  record_.updates.assign(1, {.variable = "only", .ended = now_});
  record_.accepted.clear();
  record_.stale.clear();
  record_.cancelled.clear();
  step_ledger::close_only(record_, closed_.accepted, closed_.stale);
  // In order of arrival; there is none if a step's gradients all count as given.
  record_.apply = now_ - (record_.accepted.empty() ? job_time{0} : record_.accepted.back().arrived);
  if (traits_of(scenario_.sync.policy).cancels()) cancel();
  if (choice_) choice_->add(record_, {});
  scenario_.update ? book_.add_and_tell(updates_.add(record_)) : book_.add_and_tell(record_);
  is_closed_ = false;
  if (is_over()) return;
  auto granted = tokens_.put(record_.step, scenario_.sync.tokens_per_step());
  for (size_t i = 0; i < granted.size(); ++i) {
    if (i + replicas_ahead < granted.size()) bring_near(granted[i + replicas_ahead].waiter.replica);
    grant(granted[i].waiter.replica, granted[i].step);
  }
  begin_step();
  close_if_full();
}

// Thousands of replicas do not fit into the caches that are near.
void direct_engine::bring_near(uint32_t replica) const {
  __builtin_prefetch(&replicas_[replica], 1);
  draws_.bring_near(replica);
}

// Every replica that computes is told to stop. One that was done at this very moment waits already.
void direct_engine::cancel() {
  record_.cancelled = cancelled_by(record_, live_);
  moments_.clear();
  for (const auto& gradient : record_.cancelled) {
    auto& left = replicas_[gradient.replica].left;
    if (left == 0) continue;
    left = 0;
    ask(gradient.replica, 0);
  }
}

void direct_engine::begin_step() {
  began_ = now_;
  needed_ = scenario_.sync.replicas_to_aggregate;
  if (!choice_) return;
  auto left = static_cast<uint32_t>(live_.size());
  needed_ = choose_needed(*choice_, needed_, {.expected = live_, .left = left}, now_);
}

void direct_engine::stall() {
  stalled_step stalled{.step = report_.step_times.size() + 1,
                       .needed = needed_,
                       .live = static_cast<uint32_t>(live_.size()),
                       .replicas = scenario_.sync.total_num_replicas,
                       .tokens = static_cast<uint32_t>(tokens_.tokens().size())};
  report_.job.failure = to_error(stalled);
  report_.job.open = open_step{stalled.step, stalled.live, stalled.needed, stalled.tokens};
  report_.stalled = stall_report{*report_.job.open, report_.job.failure->message};
}

} // namespace troupe
