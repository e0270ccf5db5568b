// SPDX-License-Identifier: Apache-2.0
// Drawing a job and its faults, and writing down what happens.
#include "tests/sim/drawn_job.hpp"

#include "actors/policies/step_rules.hpp"
#include "simulation/distributions/distribution.hpp"
#include "tests/sim/dice.hpp"
#include "tests/sim/stuck_alarm.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <utility>

using namespace std::chrono_literals;

namespace troupe::test {

namespace {

constexpr std::array computing{"constant(1)", "uniform(0.5, 1.5)", "0.5 + exponential(0.5)",
                               "two_point(0.2, 3)", "lognormal(1, 0.3) slow=1/4*2"};

constexpr std::array message_kinds{"", "PushGradient", "PushReply", "TakeToken", "Token"};

sync_options draw_sync(dice& draw) {
  sync_options sync;
  sync.policy = draw.one_of(all_sync_policies);
  sync.total_num_replicas = 2 + draw.below(6);
  auto backups = draw.below(std::min<uint32_t>(3, sync.total_num_replicas));
  sync.replicas_to_aggregate = sync.total_num_replicas - backups;
  const auto& traits = traits_of(sync.policy);
  if (traits.keeps_pace()) {
    sync.replicas_to_aggregate = 1;
    sync.slack = draw.below(4);
  }
  if (traits.may_adapt() && draw.one_in(5)) {
    sync.replicas_to_aggregate = sync.total_num_replicas;
    sync.dynamic = dynamic_backups{.gain = gain_model::power};
  }
  sync.one_gradient_per_replica = traits.counts_tokens() && draw.one_in(3);
  return sync;
}

network_options draw_network(dice& draw, uint64_t seed) {
  network_options network;
  network.owners = 1 + draw.below(2);
  network.seed = seed;
  network.detection = draw.one_in(2) ? 0ms : 300ms;
  if (draw.one_in(4)) {
    network.bytes_per_second = 1e6;
    network.model_bytes = network.gradient_bytes = 1000 * (1 + draw.below(100));
  }
  if (draw.one_in(4)) network.service = [](uint32_t, uint64_t) { return 20ms; };
  if (draw.one_in(3)) return network;
  auto times = distribution::parse(draw.one_in(2) ? "constant(0.02)" : "exponential(0.05)")
                 .value()
                 .times(seed + 1);
  network.latency = [times](const passage& goes) { return times(goes.end, goes.count); };
  return network;
}

std::string a_replica(dice& draw, const scenario& job) {
  return fmt::format("replica {}", draw.below(job.sync.total_num_replicas));
}

// At most one fault is for good, and only if there is a backup to stand in.
fault draw_fault(dice& draw, const scenario& job, bool may_be_for_good) {
  constexpr std::array kinds{
    fault_kind::crash, fault_kind::crash_with_token, fault_kind::freeze,  fault_kind::partition,
    fault_kind::slow,  fault_kind::messages,         fault_kind::corrupt, fault_kind::swizzle,
    fault_kind::crash};
  fault one{.kind = draw.one_of(kinds)};
  one.at = draw.between(0s, std::chrono::seconds{job.steps});
  one.lasts = draw.between(500ms, 6s);
  one.who = {a_replica(draw, job)};
  one.factor = 1 + draw.below(20);
  one.one_way = draw.one_in(2);
  one.how = draw.one_in(2) ? corruption::not_a_number : corruption::wrong_shape;
  if (one.kind == fault_kind::crash && draw.one_in(4))
    one.who = {draw.one_in(2) ? "chief" : "ps 0"};
  else if (one.kind == fault_kind::crash && may_be_for_good && draw.one_in(2))
    one.lasts = 0s;
  else if (one.kind == fault_kind::freeze && draw.one_in(6))
    one.who = {draw.one_in(2) ? "chief" : "ps 0"};
  if (one.kind == fault_kind::swizzle) one.who.clear();
  if (one.kind == fault_kind::messages) {
    one.message = draw.one_of(message_kinds);
    one.probabilities = {.lost = draw.one_in(2) ? 0.1 : 0.0, .duplicated = 0.2, .reordered = 0.2};
  }
  return one;
}

fault_plan draw_faults(dice& draw, const scenario& job) {
  fault_plan plan;
  auto backups = job.sync.total_num_replicas - job.sync.replicas_to_aggregate;
  auto may_be_for_good = backups > job.dead_replicas.size();
  for (auto count = draw.below(4); count > 0; --count) {
    plan.faults.push_back(draw_fault(draw, job, may_be_for_good));
    may_be_for_good = may_be_for_good && plan.faults.back().lasts > 0s;
  }
  return plan;
}

// Two replicas are away, and not for the same time.
void draw_overlap(dice& draw, scenario& job) {
  constexpr std::array kinds{fault_kind::crash, fault_kind::partition, fault_kind::freeze};
  auto first = draw.below(job.sync.total_num_replicas);
  auto second
    = (first + 1 + draw.below(job.sync.total_num_replicas - 1)) % job.sync.total_num_replicas;
  auto at = draw.between(0s, std::chrono::seconds{job.steps});
  for (auto replica : {first, second}) {
    fault one{.kind = draw.one_of(kinds), .at = at, .who = {fmt::format("replica {}", replica)}};
    one.lasts = draw.between(2500ms, 12s);
    job.faults.faults.push_back(one);
    at += draw.between(0s, 3s);
  }
}

// Crashes and returns all the time.
void draw_churn(dice& draw, scenario& job) {
  job.faults.rates.crash_mean = draw.between(5s, 40s);
  job.faults.rates.return_mean = draw.between(200ms, 2s);
  job.faults.rates.down_max = 1 + draw.below(2);
  job.faults.rates.warm_up = draw.between(0s, 3s);
}

// Clocks of some nodes run fast or slow, and are ahead, for a while.
fault draw_skew(dice& draw, const scenario& job) {
  fault skew{.kind = fault_kind::skew};
  skew.at = draw.between(0s, 5s);
  skew.lasts = draw.between(1s, 20s);
  skew.who = {draw.one_in(3) ? "chief" : a_replica(draw, job), "ps 0"};
  skew.ahead = draw.between(0s, 3s);
  skew.rate = draw.one_in(2) ? 1.25 : 0.8;
  return skew;
}

// Half of the jobs have processes that come when they come.
void draw_roll_call(dice& draw, scenario& job) {
  job.network->meets_at_roll_call = draw.one_in(2);
  if (!job.network->meets_at_roll_call) return;
  auto nodes = 1 + job.network->owners + job.sync.total_num_replicas;
  for (uint32_t count = draw.below(3); count > 0; --count)
    job.late_starts[1 + draw.below(nodes - 1)] = draw.between(0s, 8s);
}

// Half of the jobs that meet at a roll call may begin without some of their processes.
void draw_fewer(dice& draw, scenario& job) {
  if (!job.network->meets_at_roll_call || traits_of(job.sync.policy).counts_tokens()) return;
  auto fewest = fewest_replicas(job.sync);
  auto most = job.sync.total_num_replicas - static_cast<uint32_t>(job.dead_replicas.size());
  if (draw.one_in(2)) job.min_replicas = fewest + draw.below(most - fewest + 1);
}

// Half of the jobs that can hold every variable twice do, and may lose one of the two holders.
void draw_replication(dice& draw, scenario& job) {
  if (job.network->owners < 2 || draw.one_in(2)) return;
  job.replicate_owners = 2;
  if (draw.one_in(4)) return;
  fault loss{.kind = fault_kind::crash, .at = draw.between(0s, std::chrono::seconds{job.steps})};
  loss.lasts = draw.one_in(2) ? draw.between(500ms, 6s) : 0s;
  loss.who = {draw.one_in(2) ? "ps 0" : "ps 1"};
  job.faults.faults.push_back(loss);
}

scenario draw_scenario(uint64_t seed) {
  dice draw{seed, "drawn job"};
  scenario job;
  job.seed = seed;
  job.sync = draw_sync(draw);
  job.steps = 10 + draw.below(15);
  job.compute = distribution::parse(draw.one_of(computing)).value().times(seed);
  job.network = draw_network(draw, seed);
  auto backups = job.sync.total_num_replicas - job.sync.replicas_to_aggregate;
  if (backups > 0 && draw.one_in(4)) job.dead_replicas = {draw.below(job.sync.total_num_replicas)};
  job.faults = draw_faults(draw, job);
  if (draw.one_in(6)) draw_overlap(draw, job);
  if (draw.one_in(8)) draw_churn(draw, job);
  if (job.sync.policy == sync_policy::latest_token && draw.one_in(4))
    job.local_sgd = {.local_steps = 1 + draw.below(3), .averaging_time = 100ms};
  job.sync.require_finite = true;
  if (job.faults.loses_messages()) job.ask_again_after = 2s;
  job.snapshot_every = 1 + draw.below(5);
  job.deadline = 10min;
  job.network->silence_timeout = draw.one_in(2) ? 2500ms : 0ms;
  if (draw.one_in(4)) job.faults.faults.push_back(draw_skew(draw, job));
  draw_roll_call(draw, job);
  draw_replication(draw, job);
  draw_fewer(draw, job);
  return job;
}

size_t element_of(uint32_t replica, uint32_t number) {
  return ballot_model::numbers + size_t{replica} * ballot_model::gradients_max + number;
}

/// Makes the gradients of a job, and keeps them.
class gradient_book {
public:
  gradient_book(ballot_model model, std::vector<made_gradient>& made)
    : model_(model), made_(made), counts_(model.replicas, 0) {}

  computed_batch make(std::span<const tensor> values, uint32_t replica) {
    auto number = counts_[replica]++;
    auto gradients = model_.differentiate(values, replica, number);
    made_.push_back({replica, number, {values.begin(), values.end()}, gradients});
    return {.loss = 0, .gradients = {gradients.begin(), gradients.end()}, .examples = 1};
  }

private:
  ballot_model model_;
  std::vector<made_gradient>& made_;
  std::vector<uint32_t> counts_;
};

learning_options learning_of(evidence& course, const update_plan& plan) {
  auto book = std::make_shared<gradient_book>(course.model, course.made);
  auto task = std::make_shared<learning_task>();
  for (uint32_t i = 0; i < course.model.variables; ++i)
    task->variables.emplace_back(fmt::format("w{}", i), course.model.first_value());
  task->differentiate = [book](std::span<const tensor> values, uint32_t replica, uint64_t) {
    return book->make(values, replica);
  };
  task->evaluate = [&course](std::span<const tensor> values, std::span<const uint32_t>) {
    course.values.assign(values.begin(), values.end());
    return 0.0;
  };
  return {.task = task, .plan = plan, .evaluate_every = 1'000'000};
}

} // namespace

tensor ballot_model::first_value() const {
  auto value = zeros({static_cast<int64_t>(numbers + size_t{replicas} * gradients_max)});
  for (uint32_t i = 0; i < numbers; ++i)
    value.mutable_values<float>()[i] = 1.0F + static_cast<float>(i);
  return value;
}

std::vector<tensor> ballot_model::differentiate(std::span<const tensor> values, uint32_t replica,
                                                uint32_t number) const {
  std::vector<tensor> gradients;
  for (const auto& value : values) {
    auto gradient = zeros(value.extents());
    auto into = gradient.mutable_values<float>();
    for (uint32_t i = 0; i < numbers; ++i)
      into[i] = 0.3F * value.values<float>()[i]
                + 0.1F * static_cast<float>((replica * 7 + number * 3 + i * 5) % 11);
    into[element_of(replica, number)] = 1;
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

float ballot_model::share(const tensor& value, uint32_t replica, uint32_t number) {
  return -value.values<float>()[element_of(replica, number)] / learning_rate;
}

std::string evidence::describe() const {
  std::vector<std::string> faults;
  for (const auto& one : what.faults.faults)
    faults.push_back(fmt::format("{} {} at {:.2f} s for {:.2f} s", to_string(one.kind),
                                 fmt::join(one.who, "+"),
                                 std::chrono::duration<double>(one.at).count(),
                                 std::chrono::duration<double>(one.lasts).count()));
  if (!what.faults.rates.is_empty()) faults.emplace_back("churn");
  return fmt::format("{}{} of {}, {}{}, {} steps, {} variables{}{}{}{}{}{}{}; {}",
                     what.sync.dynamic ? "dynamic, at most " : "", what.sync.replicas_to_aggregate,
                     what.sync.total_num_replicas, to_string(what.sync.policy),
                     what.sync.one_gradient_per_replica ? " distinct" : "", what.steps,
                     model.variables, what.dead_replicas.empty() ? "" : ", one dead",
                     what.local_sgd.local_steps > 1 ? ", local steps" : "",
                     what.network->bytes_per_second > 0 ? ", cards" : "",
                     what.network->service ? ", service" : "",
                     what.replicate_owners > 1 ? ", held twice" : "",
                     what.network->meets_at_roll_call ? ", a roll call" : "",
                     what.network->silence_timeout > 0s ? ", silence timeout" : "",
                     faults.empty() ? "no faults" : fmt::to_string(fmt::join(faults, "; ")));
}

std::unique_ptr<const evidence> run_drawn_job(uint64_t seed) {
  auto what = draw_scenario(seed);
  return run_job(what, what.network->owners);
}

std::unique_ptr<const evidence> run_job(scenario what, uint32_t variables,
                                        const update_plan& plan) {
  auto seen = std::make_unique<evidence>();
  auto& course = *seen;
  course.seed = what.seed;
  course.what = std::move(what);
  course.model = {course.what.sync.total_num_replicas, variables};
  course.what.learning = learning_of(course, plan);
  course.what.on_step = [&course](const step_record& step) { course.steps.push_back(step); };
  {
    stuck_alarm alarm{course.seed, "the job", course.describe()};
    course.report = simulate(course.what);
  }
  const auto& seen_last = course.report.losses.back();
  if (seen_last.step != course.report.job.step) course.values.clear();
  return seen;
}

} // namespace troupe::test
