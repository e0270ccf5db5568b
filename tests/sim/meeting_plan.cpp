// SPDX-License-Identifier: Apache-2.0
// Drawing a meeting, and computing it in a plain loop.
#include "tests/sim/meeting_plan.hpp"

#include "kernels/tensor/change.hpp"
#include "kernels/tensor/random.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace std::chrono_literals;

namespace troupe::test {

namespace {

constexpr int64_t width = 5; // of "w"

/// Draws for one purpose.
class dice {
public:
  explicit dice(uint64_t seed) : stream_(random_key{seed, "meeting", 0, 0}) {}

  uint32_t below(uint32_t end) { return static_cast<uint32_t>(stream_.below(end)); }

  bool one_in(uint32_t count) { return below(count) == 0; }

  job_time below(job_time end) {
    return job_time{static_cast<int64_t>(static_cast<double>(end.count()) * stream_.uniform())};
  }

private:
  random_stream stream_;
};

// A job makes about so many steps in so much time.
job_time time_of(const meeting_plan& plan) {
  auto step = plan.compute_max + 4 * plan.latency_max;
  return 5 * plan.latency_max + step * static_cast<int64_t>(plan.steps);
}

meeting_trouble draw_trouble(dice& draw, const meeting_plan& plan, trouble_kind kind) {
  meeting_trouble one{
    .kind = kind, .who = draw.below(plan.processes), .at = draw.below(time_of(plan))};
  for (uint32_t rank = 0; kind == trouble_kind::partition && rank < plan.processes; ++rank)
    if (rank != one.who && draw.one_in(3)) one.with.insert(rank);
  if (one.with.size() + 1 == plan.processes) one.with.clear();
  one.length = draw.below(2 * meeting_plan::silence_timeout);
  if (kind == trouble_kind::late) one.at = draw.below(meeting_plan::start_deadline + 2s);
  if (kind == trouble_kind::throws) one.step = draw.below(static_cast<uint32_t>(plan.steps));
  if (kind == trouble_kind::slow) one.factor = 2 + draw.below(10);
  return one;
}

// Beside another one: what does not end a job badly by itself.
meeting_trouble draw_companion(dice& draw, const meeting_plan& plan) {
  constexpr std::array kinds{trouble_kind::slow, trouble_kind::stops, trouble_kind::late};
  auto one = draw_trouble(draw, plan, kinds[draw.below(kinds.size())]);
  if (one.kind == trouble_kind::late) one.at = draw.below(meeting_plan::start_deadline - 2s);
  return one;
}

} // namespace

const char* to_string(trouble_kind kind) {
  constexpr std::array<const char*, trouble_kind_count> names{
    "crash",  "freeze", "partition", "unheard", "slow",
    "leaves", "throws", "stops",     "late",    "absent"};
  return names[static_cast<size_t>(kind)];
}

std::string meeting_plan::describe() const {
  std::vector<std::string> what;
  auto seconds_of = [](job_time time) { return std::chrono::duration<double>(time).count(); };
  for (const auto& one : troubles)
    what.push_back(
      fmt::format("{} {} at {:.3f} s for {:.3f} s{}", to_string(one.kind), one.who,
                  seconds_of(one.at), seconds_of(one.length),
                  one.with.empty() ? "" : fmt::format(" with {}", fmt::join(one.with, "+"))));
  return fmt::format(
    "{} processes of {} replicas, {} steps{}{}{}; {}", processes, replicas_each, steps,
    first_steps > 0 ? fmt::format(", the first {} by themselves", first_steps) : "",
    counts_on_read ? ", a ballot" : "", resume ? ", resumed" : "",
    what.empty() ? "no trouble" : fmt::to_string(fmt::join(what, "; ")));
}

meeting_plan draw_meeting(uint64_t seed) {
  dice draw{seed};
  meeting_plan plan{.seed = seed,
                    .processes = 2 + draw.below(3),
                    .replicas_each = 1 + draw.below(2),
                    .steps = 4 + draw.below(8),
                    .save_every = 1 + draw.below(3),
                    .counts_on_read = draw.one_in(3),
                    .compute_max = draw.below(job_time{200ms}),
                    .latency_max = draw.below(job_time{30ms}),
                    .detection = draw.below(2) * 300ms};
  auto kind = static_cast<trouble_kind>(draw.below(trouble_kind_count));
  if (kind == trouble_kind::leaves || draw.one_in(4))
    plan.first_steps = 1 + draw.below(static_cast<uint32_t>(plan.steps) - 1);
  if (draw.one_in(12)) return plan; // nothing goes wrong
  plan.troubles.push_back(draw_trouble(draw, plan, kind));
  if (kind == trouble_kind::late || kind == trouble_kind::absent || draw.one_in(2)) return plan;
  auto companion = draw_companion(draw, plan);
  if (companion.kind != kind) plan.troubles.push_back(companion);
  return plan;
}

// ---- what is computed ----

bool is_equal(const tensor& a, const tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

meeting_values first_values() {
  return {filled(dtype::f32, {width}, 0.5), filled(dtype::f32, {}, -1)};
}

// Depends on the variables, the replica and its iteration.
meeting_values meeting_gradients(const meeting_plan& plan, const meeting_values& at,
                                 uint32_t replica, uint64_t iteration) {
  random_stream noise{random_key{plan.seed, "meeting gradient", replica, iteration}};
  meeting_values result;
  for (const auto& value : at) {
    auto gradient = zeros(value.extents());
    auto to = gradient.mutable_values<float>();
    auto from = value.values<float>();
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = 0.5F * from[i] + static_cast<float>(noise.normal());
    result.push_back(std::move(gradient));
  }
  return result;
}

std::vector<meeting_values> serial_meeting(const meeting_plan& plan) {
  rules::momentum::for_elements<float> rule{meeting_rule};
  std::vector<meeting_values> all{first_values()};
  std::vector<std::vector<std::array<float, 1>>> slots{{width, {0}}, {1, {0}}};
  for (uint64_t step = 0; step < plan.steps; ++step) {
    const auto before = all.back();
    std::vector<meeting_values> brought;
    for (uint32_t replica = 0; replica < plan.replicas(); ++replica)
      brought.push_back(meeting_gradients(plan, before, replica, step));
    auto& after = all.emplace_back();
    for (size_t i = 0; i < before.size(); ++i) {
      auto value = zeros(before[i].extents());
      auto to = value.mutable_values<float>();
      for (size_t k = 0; k < to.size(); ++k) {
        auto sum = brought[0][i].values<float>()[k];
        for (uint32_t replica = 1; replica < plan.replicas(); ++replica)
          sum += brought[replica][i].values<float>()[k];
        to[k] = rule(before[i].values<float>()[k], sum / static_cast<float>(plan.replicas()),
                     slots[i][k]);
      }
      after.push_back(std::move(value));
    }
  }
  return all;
}

} // namespace troupe::test
