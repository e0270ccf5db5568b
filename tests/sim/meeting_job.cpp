// SPDX-License-Identifier: Apache-2.0
// Playing a meeting, and writing down what happens.
#include "tests/sim/meeting_job.hpp"

#include "kernels/tensor/change.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/sim/stuck_alarm.hpp"
#include "tests/simulation/network/process_placement.hpp"
#include "tests/simulation/virtual_programs.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <stop_token>

using namespace std::chrono_literals;

namespace troupe::test {

namespace {

/// Remembers every snapshot of a process, as long as it lives.
class keeper final : public session_hook {
public:
  keeper(uint64_t every, const meeting_process& of, std::vector<job_snapshot>& kept)
    : every_(every), of_(of), kept_(kept) {}

  void begin(session_plan& plan) override { plan.takes_snapshots = true; }

  bool wants_snapshot(uint64_t step, job_time, bool last) override {
    return last || step % every_ == 0;
  }

  void after_snapshot(const job_snapshot& snapshot) override {
    if (!of_.was_killed) kept_.push_back(snapshot);
  }

private:
  uint64_t every_;
  const meeting_process& of_;
  std::vector<job_snapshot>& kept_;
};

/// All processes of a job, their network, and what happens to them.
class meeting {
public:
  explicit meeting(meeting_course& course)
    : course_(course), plan_(course.plan),
      world_(world::virtual_time({.seed = plan_.seed, .observed = false})),
      network_(world_, plan_.processes, network_options_of(plan_)), stops_(plan_.processes) {
    for (uint32_t rank = 0; rank < plan_.processes; ++rank)
      names_.push_back(fmt::format("worker:{}", rank));
    network_.transport().on_delivery = [this](const delivery& one) {
      log(fmt::format("{} {} {} {}", one.time.count(), one.from, one.to, one.kind));
    };
  }

  void play() {
    course_.processes.resize(plan_.processes);
    {
      virtual_programs programs{world_};
      for (uint32_t rank = 0; rank < plan_.processes; ++rank)
        if (!is_absent(rank))
          programs.add(names_[rank], [this, rank](world& own) { live(own, rank); });
      for (size_t i = 0; i < plan_.troubles.size(); ++i)
        plan_trouble(i, programs);
      programs.play();
    }
    while (world_.make_event()) {
    }
    course_.counts = network_.transport().outcomes().counts();
    course_.actors_left = world_.system().registry().running();
  }

private:
  static network_options network_options_of(const meeting_plan& plan) {
    return {.latency =
              [seed = plan.seed, most = plan.latency_max](const passage& one) {
                random_stream late{random_key{seed, "latency", one.end, one.count}};
                return job_time{
                  static_cast<int64_t>(static_cast<double>(most.count()) * late.uniform())};
              },
            .detection = plan.detection,
            .silence_timeout = meeting_plan::silence_timeout,
            .seed = plan.seed};
  }

  // Source of the hash: FNV-1a.
  void log(const std::string& line) {
    for (auto letter : line + "\n")
      course_.log_hash = (course_.log_hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  }

  [[nodiscard]] const meeting_trouble* trouble_of(uint32_t rank, trouble_kind kind) const {
    auto found = std::ranges::find_if(plan_.troubles, [&](const meeting_trouble& one) {
      return one.who == rank && one.kind == kind;
    });
    return found == plan_.troubles.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool is_absent(uint32_t rank) const {
    return trouble_of(rank, trouble_kind::absent) != nullptr;
  }

  // ---- a process ----

  void live(world& own, uint32_t rank) {
    if (const auto* late = trouble_of(rank, trouble_kind::late)) sleep(own, late->at);
    auto& seen = course_.processes[rank];
    try {
      train_in(own, rank);
    } catch (const failure& failed) {
      if (!seen.was_killed) seen.thrown = failed.reason();
    }
    if (seen.was_killed) return;
    seen.ended = own.now();
    auto reached = seen.report ? seen.report->step : 0;
    log(fmt::format("{} ends at {}: {} {}", names_[rank], own.now().count(), reached,
                    seen.failure().message));
    // Its last messages have a second to arrive, then its node goes.
    auto node = network_.nodes().replica_node(rank);
    network_.events().at(network_.events().now() + 1s,
                         [this, node] { network_.crash(node, true); });
  }

  void sleep(world& own, job_time until) {
    auto over = std::make_shared<std::promise<void>>();
    auto due = over->get_future();
    network_.events().at(until, [over] { over->set_value(); });
    static_cast<void>(own.run_until(due));
  }

  void train_in(world& own, uint32_t rank) {
    auto& seen = course_.processes[rank];
    process_placement here{own, network_, names_, rank, meeting_plan::start_deadline};
    multi_worker_mirrored_strategy strategy{own,
                                            {.devices = cpu_devices(plan_.replicas_each),
                                             .placement = &here,
                                             .workers = names_,
                                             .deadline = meeting_plan::deadline}};
    std::vector<variable> trained{strategy.make_variable("w", first_values()[0]),
                                  strategy.make_variable("b", first_values()[1])};
    std::optional<variable> ballot;
    if (plan_.counts_on_read)
      ballot = strategy.make_variable("ballot", filled(dtype::f32, {}, 0),
                                      {.synchronization = variable_synchronization::on_read,
                                       .aggregation = variable_aggregation::sum});
    training_options options{
      .variables = trained,
      .hooks = {std::make_shared<keeper>(plan_.save_every, seen, course_.snapshots)},
      .resume = plan_.resume,
      .pace
      = [this](uint32_t replica, uint64_t iteration, job_time) { return pace(replica, iteration); },
      .stop = stops_[rank].get_token()};
    auto step = step_of(rank, trained, ballot);
    auto made = plan_.resume ? plan_.resume->step : 0;
    options.steps = (plan_.first_steps > 0 ? plan_.first_steps : plan_.steps) - made;
    auto report = train(strategy, step, options);
    if (plan_.first_steps > 0 && !report.failure && !report.stopped
        && trouble_of(rank, trouble_kind::leaves) == nullptr) {
      options.steps = plan_.steps - plan_.first_steps;
      report = train(strategy, step, options);
    }
    if (seen.was_killed) return;
    seen.report = report;
    seen.last = {strategy.read(trained[0]), strategy.read(trained[1])};
  }

  [[nodiscard]] job_time pace(uint32_t replica, uint64_t iteration) const {
    random_stream draw{random_key{plan_.seed, "pace", replica, iteration}};
    return job_time{
      static_cast<int64_t>(static_cast<double>(plan_.compute_max.count()) * draw.uniform())};
  }

  step_function step_of(uint32_t rank, const std::vector<variable>& trained,
                        const std::optional<variable>& ballot) {
    optimizer momentum{meeting_rule, {.aggregation = reduce_op::mean}};
    const auto* throws = trouble_of(rank, trouble_kind::throws);
    return [=, this](replica_context& context) -> task<void> {
      auto reading = context.read(trained);
      auto values = co_await reading;
      note(rank, context.iteration(), values);
      auto replica = context.replica_id_in_sync_group();
      auto computing = context.compute([=, this, iteration = context.iteration()](std::stop_token) {
        return meeting_gradients(plan_, values, replica, iteration);
      });
      auto computed = co_await computing;
      if (throws != nullptr && throws->step == context.iteration()
          && replica % plan_.replicas_each == plan_.replicas_each - 1)
        throw std::runtime_error{"broken data"};
      auto applying
        = momentum.apply_gradients(context, {{computed[0], trained[0]}, {computed[1], trained[1]}});
      co_await applying;
      if (!ballot) co_return;
      auto counting = context.assign_add(*ballot, 1.0 + replica);
      co_await counting;
    };
  }

  void note(uint32_t rank, uint64_t updates, const meeting_values& values) {
    auto& seen = course_.processes[rank];
    if (seen.was_killed) return;
    furthest_ = std::max(furthest_, updates);
    auto [known, is_new] = seen.read.emplace(updates, values);
    for (size_t i = 0; i < values.size(); ++i)
      if (!is_new && !is_equal(known->second[i], values[i]))
        seen.differs = fmt::format("after {} updates replicas of {} read different values of {}",
                                   updates, names_[rank], i == 0 ? "w" : "b");
  }

  // ---- what goes wrong ----

  void plan_trouble(size_t index, virtual_programs& programs) {
    const auto& one = plan_.troubles[index];
    network_.events().at(one.at, [this, &one, index, &programs] {
      course_.step_at[index] = furthest_;
      begin(one, programs);
    });
    network_.events().at(one.at + one.length, [this, &one] { end(one); });
  }

  void begin(const meeting_trouble& one, virtual_programs& programs) {
    auto node = network_.nodes().replica_node(one.who);
    auto is_it = [node](node_index other) { return other == node; };
    auto is_side = [this, one](node_index other) {
      auto rank = other - network_.nodes().replica_node(0);
      return rank == one.who || one.with.contains(rank);
    };
    auto is_other_side = [is_side](node_index other) { return !is_side(other); };
    auto& seen = course_.processes[one.who];
    switch (one.kind) {
    case trouble_kind::crash:
      if (seen.ended) return;
      seen.was_killed = true;
      programs.stop(names_[one.who]);
      return network_.crash(node, true);
    case trouble_kind::freeze:
      return network_.freeze(node);
    case trouble_kind::partition:
      cuts_.push_back(network_.sever({.from = is_other_side, .to = is_side}));
      cuts_.push_back(network_.sever({.from = is_side, .to = is_other_side}));
      return;
    case trouble_kind::unheard:
      cuts_.push_back(network_.sever({.from = is_it, .to = {}}));
      return;
    case trouble_kind::slow:
      return network_.transport().slow_down(node, one.factor);
    case trouble_kind::stops:
      stops_[one.who].request_stop();
      return;
    default: // it is up to the program
      return;
    }
  }

  void end(const meeting_trouble& one) {
    auto node = network_.nodes().replica_node(one.who);
    if (one.kind == trouble_kind::freeze) network_.thaw(node);
    if (one.kind == trouble_kind::slow) network_.transport().slow_down(node, 1);
    if (one.is_silence())
      for (auto cut : std::exchange(cuts_, {}))
        network_.heal(cut);
  }

  meeting_course& course_;
  const meeting_plan& plan_;
  world world_;
  simulated_network network_;
  std::vector<std::stop_source> stops_; ///< By rank.
  std::vector<std::string> names_;
  std::vector<uint64_t> cuts_;
  uint64_t furthest_ = 0; ///< Updates that a process has heard of.
};

} // namespace

error meeting_process::failure() const {
  if (thrown.code != errc::none) return thrown;
  return report && report->failure ? *report->failure : error{};
}

std::string meeting_course::describe() const {
  auto lines = plan.describe();
  for (uint32_t rank = 0; rank < processes.size(); ++rank) {
    const auto& one = processes[rank];
    auto seconds = std::chrono::duration<double>(one.ended.value_or(job_time{0})).count();
    lines += fmt::format("\n  worker:{} {} after {:.3f} s, step {}{}{}: {}", rank,
                         one.was_killed ? "was killed"
                         : one.ended    ? "ended"
                                        : "was not there",
                         seconds, one.report ? one.report->step : 0,
                         one.report && one.report->stopped ? ", " + *one.report->stopped : "",
                         one.thrown.code != errc::none ? ", threw" : "", one.failure().message);
  }
  return lines;
}

meeting_course run_meeting(const meeting_plan& plan) {
  meeting_course course{.plan = plan};
  stuck_alarm alarm{plan.seed, "the job", plan.describe(), replay_meeting_command};
  meeting{course}.play();
  return course;
}

std::optional<meeting_plan> resumed(const meeting_course& course) {
  const auto& of = course.plan;
  if (course.snapshots.empty() || course.snapshots.back().step >= of.steps) return std::nullopt;
  auto plan = of;
  plan.troubles.clear();
  plan.first_steps = 0;
  plan.resume = course.snapshots.back();
  auto replicas = of.replicas();
  for (uint32_t processes = 2; processes <= replicas; ++processes)
    if (replicas % processes == 0 && processes != of.processes) plan.processes = processes;
  plan.replicas_each = replicas / plan.processes;
  return plan;
}

} // namespace troupe::test
