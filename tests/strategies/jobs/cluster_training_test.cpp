// SPDX-License-Identifier: Apache-2.0
// Goal: several processes train one job, to the same bits as one process, and end it together.
// Method: threads for processes, joined without sockets; nodes are lost at a step of the test's
// choice, in the middle of a training.
#include "actors/recording/seconds.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/hooks.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_cluster.hpp"

namespace cluster_training_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// The trained values of the job in one process, without any placement.
const std::map<std::string, numbers>& in_one_process() {
  static const auto values = [] {
    cluster_job job{.layout = {.replicas_per_worker = 4}, .has_placement = false};
    return small_cluster{job}.run().at(0).values;
  }();
  return values;
}

// Keeps the snapshot of one step, or of the last.
class keeper final : public session_hook {
public:
  explicit keeper(std::optional<uint64_t> step = {}) : step_(step) {}

  void begin(session_plan& plan) override { plan.takes_snapshots = true; }

  bool wants_snapshot(uint64_t step, job_time, bool last) override {
    return step_ ? step == *step_ : last;
  }

  void after_snapshot(const job_snapshot& taken) override { kept = taken; }

  std::optional<job_snapshot> kept;

private:
  std::optional<uint64_t> step_;
};

/// Does something when all processes are there and none has begun.
class on_begin final : public session_hook {
public:
  explicit on_begin(std::function<void()> action) : action_(std::move(action)) {}

  void begin(session_plan&) override { action_(); }

private:
  std::function<void()> action_;
};

// Has a node lost as soon as a step is over.
cluster_job losing(cluster_job job, small_cluster*& cluster, node_index lost, uint64_t step) {
  auto chief = job.layout.chief_node();
  job.prepare = [=, &cluster](node_index node, training_options& options) {
    if (node != chief) return;
    options.on_step = [=, &cluster](const step_record& record) {
      if (record.step == step) cluster->network.lose(lost);
    };
  };
  return job;
}

std::map<node_index, process_outcome> run_losing(const cluster_job& job, node_index lost,
                                                 uint64_t step) {
  small_cluster* self = nullptr;
  small_cluster cluster{losing(job, self, lost, step)};
  self = &cluster;
  return cluster.run();
}

// Runs a job that cannot begin, with a longer timeout if one of these processes has not named a
// missing one, but another that came late or had given up before: so the machine may be as slow as
// it likes.
std::map<node_index, process_outcome> run_in_vain(cluster_job& job,
                                                  const std::set<node_index>& asked) {
  for (;; job.start_deadline *= 4) {
    auto outcomes = small_cluster{job}.run();
    auto names_missing = [&](node_index node) {
      const auto& outcome = outcomes.at(node);
      auto line = outcome.thrown.value_or(outcome.report.failure.value_or(error{})).message;
      return std::ranges::any_of(job.missing, [&](node_index missing) {
        return line.find(job.layout.name_of(missing)) != std::string::npos;
      });
    };
    if (std::ranges::all_of(asked, names_missing) || job.start_deadline > 10s) return outcomes;
  }
}

bool has(const std::optional<error>& reason, std::string_view text) {
  return reason && reason->message.find(text) != std::string::npos;
}

void check_alike(const std::map<node_index, process_outcome>& outcomes, uint64_t step) {
  for (const auto& [node, outcome] : outcomes) {
    CAPTURE(node);
    CHECK_FALSE(outcome.thrown);
    CHECK_MESSAGE(!outcome.report.failure, outcome.report.failure.value_or(error{}).message);
    CHECK(outcome.report.step == step);
    CHECK(outcome.report.has_begun);
  }
}

} // namespace

TEST_SUITE("strategies/jobs/cluster_training") {
  TEST_CASE("the job in one process, which others are compared with, trains its variables") {
    REQUIRE(in_one_process().size() == 10);
    CHECK(in_one_process().at("w4").size() == 49);
    CHECK(in_one_process().at("w4")[0] != in_one_process().at("w4")[1]);
  }

  TEST_CASE("however many processes a job runs as, it comes to the same bits") {
    for (const auto& layout : {cluster_layout{.ps = 0, .workers = 1, .replicas_per_worker = 4},
                               cluster_layout{.ps = 0, .workers = 2, .replicas_per_worker = 2},
                               cluster_layout{.ps = 0, .workers = 4, .replicas_per_worker = 1},
                               cluster_layout{.ps = 2, .workers = 1, .replicas_per_worker = 4},
                               cluster_layout{.ps = 2, .workers = 2, .replicas_per_worker = 2},
                               cluster_layout{.ps = 2, .workers = 4, .replicas_per_worker = 1},
                               cluster_layout{.has_chief = true, .ps = 2, .workers = 3},
                               cluster_layout{.has_chief = true, .ps = 0, .workers = 3}}) {
      CAPTURE(layout.node_count());
      CAPTURE(layout.ps);
      auto outcomes = small_cluster{{.layout = layout}}.run();
      check_alike(outcomes, 12);
      CHECK(outcomes.at(layout.chief_node()).values == in_one_process());
      CHECK(outcomes.at(layout.chief_node()).steps.size() == 12);
    }
  }

  TEST_CASE("joined by sockets, processes come to the same bits, too") {
    for (const auto& layout : {cluster_layout{.ps = 2, .workers = 2, .replicas_per_worker = 2},
                               cluster_layout{.ps = 0, .workers = 4},
                               cluster_layout{.has_chief = true, .ps = 1, .workers = 3}}) {
      CAPTURE(layout.node_count());
      auto outcomes = small_cluster{{.layout = layout, .has_sockets = true}}.run();
      check_alike(outcomes, 12);
      CHECK(outcomes.at(layout.chief_node()).values == in_one_process());
    }
  }

  TEST_CASE("only the chief's process initialises, checkpoints and writes summaries") {
    for (const auto& layout : {cluster_layout{.ps = 1, .workers = 2},
                               cluster_layout{.has_chief = true, .ps = 2, .workers = 1}}) {
      scratch_folder folder;
      cluster_job job{.layout = layout, .steps = 1};
      job.begin = [&](node_index node, strategy& strategy) {
        auto leads = node == layout.chief_node();
        const auto& extended = strategy.extended();
        CHECK(extended.experimental_should_init() == leads);
        CHECK(extended.should_checkpoint() == leads);
        CHECK(extended.should_save_summary() == leads);
        CHECK(extended.experimental_between_graph());
        CHECK_FALSE(extended.experimental_require_static_shapes());
        CHECK(extended.worker_devices().size() == layout.replica_count());
        auto own = folder.path() / layout.name_of(node);
        save_checkpoint(strategy, own, 7);
        CHECK(find_checkpoint(own).has_value() == leads);
      };
      check_alike(small_cluster{job}.run(), 1);
    }
  }

  TEST_CASE("hooks, steps and evaluation are those of the chief's process") {
    std::mutex mutex;
    std::map<node_index, uint64_t> evaluations;
    cluster_job job{.layout = {.ps = 2, .workers = 2}};
    job.prepare = [&](node_index node, training_options& options) {
      options.evaluation.every_steps = 4;
      options.evaluation.evaluate
        = [](std::span<const tensor> values) { return numbers_of(values[0])[0]; };
      options.evaluation.on_result = [&, node](uint64_t, double) {
        std::lock_guard guard{mutex};
        ++evaluations[node];
      };
    };
    auto outcomes = small_cluster{job}.run();
    check_alike(outcomes, 12);
    for (const auto& [node, outcome] : outcomes)
      CHECK(outcome.steps.size() == (node == job.layout.chief_node() ? 12 : 0));
    CHECK(evaluations.size() == 1);
    CHECK(evaluations[job.layout.chief_node()] >= 1);
  }

  TEST_CASE("a second training goes on where the first one ended") {
    cluster_job alone{.layout = {.replicas_per_worker = 2}, .has_placement = false, .trainings = 2};
    auto once = small_cluster{alone}.run();
    auto several = small_cluster{{.layout = {.ps = 2, .workers = 2}, .trainings = 2}}.run();
    check_alike(several, 24);
    CHECK(several.at(2).values == once.at(0).values);
  }

  TEST_CASE("variables are held beside another by its parameter server, and take no turn") {
    for (uint32_t owners : {1U, 2U}) {
      CAPTURE(owners);
      cluster_job job{.layout = {.ps = 2, .workers = 1, .owners_meet = owners == 2},
                      .steps = 2,
                      .replicate_owners = owners};
      job.begin = [&job](node_index node, strategy& strategy) {
        auto scope = strategy.scope();
        auto holder = [&](const std::string& name) { // 0: the first server, 1: the other
          return strategy.make_variable(name, scalar(1)).is_here() == (node == 0) ? 0 : 1;
        };
        if (node > 1) {
          auto beside = strategy.extended().colocate_vars_with(strategy.variables()[1]);
          for (const auto* name : {"a", "b", "c"})
            strategy.make_variable(name, scalar(1));
        } else {
          CHECK(strategy.variables()[1].is_here() == (node == 1)); // w0 to w4 have taken turns
          auto beside = strategy.extended().colocate_vars_with(strategy.variables()[1]);
          CHECK(holder("a") == 1);
          auto again = strategy.scope();
          CHECK(holder("b") == 1);
          CHECK(holder("c") == 1);
        }
        for (const auto* name : {"next", "last"})
          if (node > 1) strategy.make_variable(name, scalar(1));
        if (node < 2) CHECK(holder("next") == 1); // w4's was the first one's
        if (node < 2) CHECK(holder("last") == 0);
      };
      auto outcomes = small_cluster{job}.run();
      for (const auto& [node, outcome] : outcomes)
        CHECK_FALSE(outcome.thrown);
      CHECK(outcomes.at(job.layout.chief_node()).values.at("b") == numbers{1});
    }
  }

  TEST_CASE(
    "a state that is restored before its variable is made reaches the owner, mirrored or not") {
    for (uint32_t owners : {1U, 2U}) {
      CAPTURE(owners);
      cluster_job job{
        .layout = {.ps = 2, .workers = 2, .replicas_per_worker = 2, .owners_meet = owners == 2},
        .steps = 2,
        .replicate_owners = owners};
      job.begin = [&job](node_index node, strategy& strategy) {
        variable_payload saved{.value = array({2}, {3, 4})};
        if (node == job.layout.chief_node())
          strategy.extended().deferred().keep(1, {{"late", saved}});
        strategy.make_variable("late", zeros({2}));
      };
      job.step = [](replica_context& context) -> task<void> {
        auto reading = context.read(context.strategy().variables().back());
        auto seen = co_await reading;
        CHECK(numbers_of(seen) == numbers{3, 4});
      };
      auto outcomes = small_cluster{job}.run();
      CHECK(outcomes.at(job.layout.chief_node()).values.at("late") == numbers{3, 4});
    }
  }

  TEST_CASE("a job of several processes goes on from a snapshot to the same bits") {
    auto halt = std::make_shared<keeper>(5);
    cluster_job first{.layout = {.ps = 2, .workers = 2, .replicas_per_worker = 2}, .steps = 5};
    first.prepare = [&](node_index, training_options& options) { options.hooks = {halt}; };
    check_alike(small_cluster{first}.run(), 5);
    REQUIRE(halt->kept);
    auto second = first;
    second.steps = 7;
    second.prepare = [&](node_index node, training_options& options) {
      if (node == second.layout.chief_node()) options.resume = halt->kept;
    };
    auto outcomes = small_cluster{second}.run();
    check_alike(outcomes, 12);
    CHECK(outcomes.at(2).values == in_one_process());
  }

  TEST_CASE(
    "a job that begins at the step to stop at ends in all processes, whatever their hooks") {
    for (const auto& layout :
         {cluster_layout{.ps = 0, .workers = 2}, cluster_layout{.ps = 1, .workers = 2},
          cluster_layout{.ps = 2, .workers = 2, .owners_meet = true}}) {
      CAPTURE(layout.ps);
      auto last = std::make_shared<keeper>();
      auto untold = std::make_shared<keeper>();
      cluster_job job{.layout = layout,
                      .has_sockets = layout.ps == 1,
                      .replicate_owners = layout.owners_meet ? 2U : 1U};
      job.prepare = [&](node_index node, training_options& options) {
        if (node == layout.chief_node())
          options.hooks = {stop_at_step_hook::at(4), last};
        else
          options.hooks = {stop_at_step_hook::at(50), untold};
      };
      auto before = small_cluster{job}.run();
      check_alike(before, 4);
      REQUIRE(last->kept);
      job.prepare = [&, prepare = job.prepare](node_index node, training_options& options) {
        prepare(node, options);
        options.resume = last->kept;
      };
      auto outcomes = small_cluster{job}.run();
      check_alike(outcomes, 4);
      CHECK_FALSE(untold->kept);
      CHECK(outcomes.at(layout.chief_node()).steps.empty());
      CHECK(outcomes.at(layout.chief_node()).values == before.at(layout.chief_node()).values);
    }
  }

  TEST_CASE("whichever process is asked to stop, all of them end") {
    for (node_index asked : {0U, 1U, 2U}) {
      CAPTURE(asked);
      std::stop_source source;
      cluster_job job{.layout = {.ps = 1, .workers = 2}, .steps = 1'000'000};
      job.prepare = [&](node_index node, training_options& options) {
        if (node == asked) options.stop = source.get_token();
        options.on_step = [&](const step_record& record) {
          if (record.step == 5) source.request_stop();
        };
      };
      auto outcomes = small_cluster{job}.run();
      check_alike(outcomes, outcomes.at(0).report.step);
      for (const auto& [node, outcome] : outcomes)
        CHECK(outcome.report.stopped == "asked to stop");
    }
  }

  TEST_CASE("a job with backups goes on without a worker that is lost") {
    cluster_job job{.layout = {.ps = 1, .workers = 4}, .aggregate = 3, .steps = 60};
    auto outcomes = run_losing(job, 4, 5);
    CHECK(has(outcomes.at(4).report.failure, "is gone"));
    outcomes.erase(4);
    check_alike(outcomes, 60);
    REQUIRE(outcomes.at(1).report.lost.size() == 1);
    CHECK(outcomes.at(1).report.lost[0].replica == 3);
    CHECK(outcomes.at(1).report.lost[0].reason.message == "node 'worker:3' is gone");
  }

  TEST_CASE("a worker that is started again takes part again, at the step that the job is at") {
    small_cluster* self = nullptr;
    std::stop_source source;
    uint64_t returned_at = 0;
    cluster_job job{.layout = {.ps = 1, .workers = 4}, .aggregate = 3, .steps = 1'000'000};
    job.prepare = [&](node_index node, training_options& options) {
      if (node != 1) return;
      options.stop = source.get_token();
      options.on_step = [&](const step_record& record) {
        if (record.step == 5) {
          self->network.lose(4);
          self->start_again(4);
        }
        // Gradients that it sent before it was lost are not accepted any more by then.
        auto is_theirs = [](const contribution& one) { return one.replica == 3; };
        if (record.step < 9 || returned_at > 0 || std::ranges::none_of(record.accepted, is_theirs))
          return;
        returned_at = record.step;
        source.request_stop();
      };
    };
    small_cluster cluster{job};
    self = &cluster;
    auto outcomes = cluster.run();
    CHECK(returned_at > 5);
    CHECK(has(outcomes.at(4).report.failure, "is gone"));
    outcomes[4] = cluster.returned;
    check_alike(outcomes, outcomes.at(1).report.step);
    CHECK(outcomes.at(1).report.lost.size() == 1);
  }

  TEST_CASE("a job that needs all waits for one that is lost, and goes on with it") {
    small_cluster* self = nullptr;
    cluster_job job{.layout = {.ps = 1, .workers = 3}};
    job.prepare = [&](node_index node, training_options& options) {
      options.rejoin_timeout = 60s;
      if (node != 1) return;
      options.on_step = [&](const step_record& record) {
        if (record.step != 5) return;
        self->network.lose(3);
        self->start_again(3);
      };
    };
    small_cluster cluster{job};
    self = &cluster;
    auto outcomes = cluster.run();
    outcomes[3] = cluster.returned;
    check_alike(outcomes, 12);
  }

  TEST_CASE(
    "a worker that is started again finds its way without a parameter server that is lost") {
    for (node_index ps : {0U, 1U}) {
      CAPTURE(ps);
      small_cluster* self = nullptr;
      cluster_job job{.layout = {.ps = 2, .workers = 3, .owners_meet = true},
                      .replicate_owners = 2};
      job.prepare = [&](node_index node, training_options& options) {
        options.rejoin_timeout = 60s;
        if (node != 2) return;
        options.on_step = [&, ps](const step_record& record) {
          if (record.step == 4) self->network.lose(ps);
          if (record.step != 7) return;
          self->network.lose(4);
          self->start_again(4);
        };
      };
      small_cluster cluster{job};
      self = &cluster;
      auto outcomes = cluster.run();
      CHECK(outcomes.at(ps).report.failure);
      outcomes.erase(ps);
      outcomes[4] = cluster.returned;
      check_alike(outcomes, 12);
      for (const auto& step : outcomes.at(2).steps)
        CHECK(step.accepted.size() == 3);
    }
  }

  TEST_CASE("a parameter server that is lost and comes back may take over from the other") {
    small_cluster* self = nullptr;
    std::atomic<bool> is_back = false;
    std::optional<uint64_t> lost_at;
    cluster_job job{.layout = {.ps = 2, .workers = 2, .owners_meet = true},
                    .steps = 1'000'000,
                    .replicate_owners = 2};
    std::stop_source source;
    job.prepare = [&](node_index node, training_options& options) {
      if (node != 2) return;
      options.stop = source.get_token();
      options.on_warning = [&](const std::string& line) {
        if (line.starts_with("held twice again: ")) is_back = true;
      };
      options.on_step = [&](const step_record& record) {
        if (record.step == 4) self->network.lose(0);
        if (record.step == 8) self->start_again(0);
        if (is_back && !lost_at) {
          lost_at = record.step;
          self->network.lose(1);
        }
        if (lost_at && record.step == *lost_at + 5) source.request_stop();
      };
    };
    small_cluster cluster{job};
    self = &cluster;
    auto outcomes = cluster.run();
    CHECK(outcomes.at(1).report.failure);
    outcomes[0] = cluster.returned;
    outcomes.erase(1);
    check_alike(outcomes, outcomes.at(2).report.step);
    for (const auto& step : outcomes.at(2).steps)
      CHECK(step.accepted.size() == 2);
  }

  TEST_CASE("one that was started differently is not let in again, and the job goes on") {
    small_cluster* self = nullptr;
    std::stop_source source;
    cluster_job job{.layout = {.ps = 1, .workers = 3}, .aggregate = 2, .steps = 1'000'000};
    bool is_again = false;
    job.seed = [&](node_index) { return is_again ? 6 : 5; };
    job.prepare = [&](node_index node, training_options& options) {
      if (node != 1) return;
      options.stop = source.get_token();
      options.on_step = [&](const step_record& record) {
        if (record.step != 5) return;
        self->network.lose(3);
        is_again = true;
        self->start_again(3);
      };
    };
    small_cluster cluster{job};
    self = &cluster;
    std::thread stopper{[&] {
      while (!cluster.has_returned)
        std::this_thread::sleep_for(1ms);
      source.request_stop();
    }};
    auto outcomes = cluster.run();
    stopper.join();
    CHECK(
      has(cluster.returned.report.failure, "worker:2 has seed = 6, the chief's process seed = 5"));
    CHECK_FALSE(cluster.returned.report.has_begun);
    outcomes.erase(3);
    check_alike(outcomes, outcomes.at(1).report.step);
  }

  TEST_CASE("a job that stops on a loss saves the step that it has come to, and goes on from it") {
    auto last = std::make_shared<keeper>();
    cluster_job job{.layout = {.ps = 1, .workers = 3}, .steps = 1'000'000};
    small_cluster* self = nullptr;
    job.prepare = [&](node_index node, training_options& options) {
      options.stops_on_loss = true;
      if (node != 1) return;
      options.hooks = {last};
      options.on_step = [&](const step_record& record) {
        if (record.step == 5) self->network.lose(3);
      };
    };
    small_cluster cluster{job};
    self = &cluster;
    auto outcomes = cluster.run();
    const auto& report = outcomes.at(1).report;
    CHECK(has(report.failure, "lost replica 2: node 'worker:2' is gone; the job stops for that"));
    REQUIRE(last->kept);
    CHECK(last->kept->step == report.step);
    CHECK(outcomes.at(2).report.failure == report.failure);
    cluster_job second{.layout = job.layout, .steps = 3};
    second.prepare = [&](node_index node, training_options& options) {
      if (node == 1) options.resume = last->kept;
    };
    check_alike(small_cluster{second}.run(), report.step + 3);
  }

  TEST_CASE("a job that needs a worker that is lost ends for all, and names it") {
    cluster_job job{.layout = {.ps = 1, .workers = 3}, .steps = 1'000'000};
    auto outcomes = run_losing(job, 3, 5);
    for (node_index node : {0U, 1U, 2U}) {
      CAPTURE(node);
      CHECK(outcomes.at(node).report.failure == outcomes.at(1).report.failure);
      CHECK(outcomes.at(node).report.step == outcomes.at(1).report.step);
    }
    CHECK(outcomes.at(1).report.failure->code == errc::unavailable);
    CHECK(has(outcomes.at(1).report.failure, "lost replica 2: node 'worker:2' is gone"));
  }

  TEST_CASE("a job whose parameter server is lost ends for all, and says which") {
    cluster_job job{.layout = {.ps = 2, .workers = 2}, .steps = 1'000'000};
    auto outcomes = run_losing(job, 1, 5);
    for (node_index node : {0U, 2U, 3U}) {
      CAPTURE(node);
      REQUIRE(outcomes.at(node).report.failure);
      CHECK(outcomes.at(node).report.failure->code == errc::unavailable);
      CHECK(has(outcomes.at(node).report.failure, "node 'ps:1' is gone"));
      CHECK(outcomes.at(node).report.step == outcomes.at(2).report.step);
    }
  }

  TEST_CASE("a process that loses the chief says so, and which step it heard of last") {
    cluster_job job{.layout = {.has_chief = true, .ps = 1, .workers = 2}, .steps = 1'000'000};
    auto outcomes = run_losing(job, 0, 5);
    for (node_index node : {1U, 2U, 3U}) {
      CAPTURE(node);
      const auto& report = outcomes.at(node).report;
      REQUIRE(report.failure);
      CHECK(report.failure->code == errc::unavailable);
      CHECK(report.step >= 4);
      CHECK(report.failure->message
            == fmt::format("node 'chief:0' is gone; the job had come to step {}", report.step));
    }
    CHECK(outcomes.at(0).report.failure);
  }

  TEST_CASE("a job does not begin without a worker, and says which is missing") {
    cluster_job job{.layout = {.ps = 1, .workers = 3}, .start_deadline = 1s, .missing = {2, 3}};
    for (const auto& [node, outcome] : run_in_vain(job, {0, 1})) {
      CAPTURE(node);
      CHECK_FALSE(outcome.thrown);
      REQUIRE(outcome.report.failure);
      CHECK(outcome.report.failure->code == errc::deadline_exceeded);
      CHECK(has(outcome.report.failure, "worker:1, worker:2 to enter the job"));
      CHECK_FALSE(outcome.report.has_begun);
      CHECK(outcome.steps.empty());
    }
  }

  TEST_CASE("a job does not begin without a process that others look for") {
    cluster_job no_ps{.layout = {.ps = 2, .workers = 2}, .start_deadline = 1s, .missing = {1}};
    for (const auto& [node, outcome] : run_in_vain(no_ps, {2, 3})) {
      CAPTURE(node);
      if (node == 0) continue; // ends with the chief
      REQUIRE(outcome.thrown);
      CHECK(outcome.thrown->code == errc::deadline_exceeded);
      CHECK(outcome.thrown->message.starts_with(
        fmt::format("waited {:.1f} s for 'owner w1' at ps:1", seconds(no_ps.start_deadline))));
    }
    cluster_job no_chief{.layout = {.ps = 1, .workers = 2}, .start_deadline = 1s, .missing = {1}};
    for (const auto& [node, outcome] : small_cluster{no_chief}.run()) {
      CAPTURE(node);
      REQUIRE(outcome.thrown);
      CHECK(outcome.thrown->message.starts_with("waited 1.0 s for 'strategy' at worker:0"));
    }
  }

  TEST_CASE("processes that were started differently do not begin") {
    cluster_job job{.layout = {.workers = 2}};
    job.seed = [](node_index node) { return 5 + node; };
    for (const auto& [node, outcome] : small_cluster{job}.run()) {
      CAPTURE(node);
      REQUIRE(outcome.report.failure);
      CHECK(outcome.report.failure->message
            == "worker:1 has seed = 6, the chief's process seed = 5; start all processes of a job "
               "with the same options and variables");
    }
  }

  TEST_CASE(
    "processes that make a variable in other shapes do not begin, and say which has which") {
    for (uint32_t owners : {1U, 2U}) {
      CAPTURE(owners);
      cluster_job job{.layout = {.ps = 2, .workers = 3, .owners_meet = owners == 2},
                      .aggregate = 2,
                      .replicate_owners = owners};
      job.begin = [](node_index node, strategy& strategy) {
        strategy.make_variable("odd", zeros({node == 3 ? 3 : 2}));
      };
      auto outcomes = small_cluster{job}.run();
      for (const auto& [node, outcome] : outcomes) { // a late one may hear of the end only
        CAPTURE(node);
        CHECK((outcome.thrown || outcome.report.failure));
        CHECK_FALSE(outcome.report.has_begun);
      }
      for (auto node : {job.layout.chief_node(), node_index{3}}) {
        CAPTURE(node);
        REQUIRE(outcomes.at(node).report.failure);
        CHECK(*outcomes.at(node).report.failure
              == error{errc::failed_precondition,
                       "worker:1 has variable 'odd' = f32 [3], the chief's process variable 'odd' "
                       "= f32 [2]; start all processes of a job with the same options and "
                       "variables"});
      }
    }
  }

  TEST_CASE("a process that is refused before it enters ends a job that waits for it") {
    const error why{errc::failed_precondition, "worker:1 has hidden = [16, 8]"};
    cluster_job job{.layout = {.workers = 2}, .missing = {1}};
    job.begin = [&why](node_index, strategy& strategy) {
      dynamic_cast<cluster_placement&>(*strategy.layout().placement).refuse(why);
    };
    auto chief = small_cluster{job}.run().at(0);
    CHECK_FALSE(chief.thrown);
    CHECK_FALSE(chief.report.has_begun);
    CHECK(chief.report.failure == why);
  }

  TEST_CASE("a process that is refused when the job has begun changes nothing") {
    cluster_job job{.layout = {.ps = 1, .workers = 2}};
    placement* chief = nullptr;
    job.begin = [&chief](node_index node, strategy& strategy) {
      if (node == 1) chief = strategy.layout().placement;
    };
    job.prepare = [&chief](node_index node, training_options& options) {
      if (node != 1) return;
      options.hooks.push_back(std::make_shared<on_begin>([&chief] {
        dynamic_cast<cluster_placement&>(*chief).refuse({errc::failed_precondition, "other"});
      }));
    };
    for (const auto& [node, outcome] : small_cluster{job}.run()) {
      CAPTURE(node);
      CHECK_FALSE(outcome.report.failure);
      CHECK(outcome.report.step == job.steps);
    }
  }

  TEST_CASE("a refusal by the chief's process ends the job for all") {
    cluster_job job{.layout = {.workers = 2}};
    job.prepare = [](node_index node, training_options& options) {
      if (node == 0) options.resume = job_snapshot{.step = 3, .seed = 99};
    };
    auto outcomes = small_cluster{job}.run();
    REQUIRE(outcomes.at(0).thrown);
    CHECK(outcomes.at(1).report.failure == outcomes.at(0).thrown);
  }

  TEST_CASE("a hook that refuses a job that all have begun ends it for all at once") {
    cluster_job job{.layout = {.ps = 1, .workers = 2}};
    job.prepare = [](node_index node, training_options& options) {
      auto refuse = [] { throw failure{{errc::resource, "the disk is full"}}; };
      if (node == 1) options.hooks.push_back(std::make_shared<on_begin>(refuse));
    };
    auto outcomes = small_cluster{job}.run();
    REQUIRE(outcomes.at(1).thrown);
    CHECK(outcomes.at(1).thrown->message == "the disk is full");
    for (node_index node : {0U, 2U}) {
      CHECK_FALSE(outcomes.at(node).thrown);
      CHECK(outcomes.at(node).report.failure == outcomes.at(1).thrown);
    }
  }

  TEST_CASE("a worker that is lost before its replicas have joined is not waited for") {
    for (uint32_t aggregate : {2U, 3U}) {
      CAPTURE(aggregate);
      small_cluster* self = nullptr;
      cluster_job job{.layout = {.workers = 3}, .aggregate = aggregate};
      job.prepare = [&](node_index node, training_options& options) {
        if (node != 0) return;
        options.hooks.push_back(
          std::make_shared<on_begin>([&self] { self->network.lose(2, "is gone"); }));
      };
      small_cluster cluster{job};
      self = &cluster;
      auto outcomes = cluster.run();
      REQUIRE(outcomes.at(0).report.lost.size() == 1);
      CHECK(outcomes.at(0).report.lost[0].replica == 2);
      CHECK(outcomes.at(0).report.lost[0].reason.message == "node 'worker:2' is gone");
      CHECK(outcomes.at(0).report.failure.has_value() == (aggregate == 3));
      CHECK(outcomes.at(1).report.failure == outcomes.at(0).report.failure);
    }
  }

  TEST_CASE("a job that is asked to stop before all are there ends without them") {
    std::stop_source source;
    cluster_job job{.layout = {.ps = 1, .workers = 2}, .missing = {2}};
    job.prepare = [&](node_index node, training_options& options) {
      if (node == 1) options.stop = source.get_token();
    };
    source.request_stop();
    auto outcomes = small_cluster{job}.run();
    CHECK_FALSE(outcomes.at(1).report.failure);
    CHECK(outcomes.at(1).report.stopped == "asked to stop");
    CHECK(outcomes.at(1).report.step == 0);
    // The other one was told so, or has found no other.
    const auto& other = outcomes.at(0).report;
    CHECK((other.stopped == "asked to stop" || other.failure || outcomes.at(0).thrown));
  }
}

} // namespace cluster_training_test
