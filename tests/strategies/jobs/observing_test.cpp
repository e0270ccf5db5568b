// SPDX-License-Identifier: Apache-2.0
// Goal: an observer sees a job as it is, and changes nothing of it. Method: jobs in virtual time
// with the hooks that look on, and without.
#include "actors/observing/flight_lines.hpp"
#include "actors/observing/http_client.hpp"
#include "strategies/jobs/flight_recorder_hook.hpp"
#include "strategies/jobs/metrics_server_hook.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"

#include <stdexcept>

namespace observing_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

const sync_options two_of_three{2, 3, sync_policy::latest_token};

std::string get(const metrics_server_hook& hook, const std::string& path) {
  auto page
    = http_ask({.server = parse_host_port(hook.endpoint()).value(), .path = path, .deadline = 10s});
  REQUIRE_MESSAGE(page.has_value(), (page ? "" : page.error().message));
  REQUIRE(page->status == 200);
  return page->body;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Replica 1 throws in its third iteration, the others go on.
course play_with_a_loss(std::shared_ptr<session_hook> hook) {
  small_job job{two_of_three};
  auto step = [&job](replica_context& context) -> task<void> {
    if (context.replica_id_in_sync_group() == 1 && context.iteration() == 2)
      throw std::runtime_error{"the data is gone"};
    auto giving = give(context, job.optimizer, job.weights, zeros({1}, dtype::f64));
    co_await giving;
  };
  return job.run(step, {.steps = 5, .hooks = {std::move(hook)}, .pace = one_second});
}

} // namespace

TEST_SUITE("strategies/jobs/observing") {
  TEST_CASE("a job is served while it runs") {
    auto hook = std::make_shared<metrics_server_hook>();
    std::string metrics;
    std::string actors;
    training_options options{.steps = 4, .hooks = {hook}, .pace = one_second};
    options.on_step = [&](const step_record& step) {
      if (step.step < 3) return;
      if (metrics.empty()) metrics = get(*hook, "/metrics");
      if (actors.empty()) actors = get(*hook, "/actors");
    };
    small_job job{two_of_three};
    auto seen = job.run_idle(options);
    CHECK(!seen.report.failure);
    CHECK(has(metrics, "\ntroupe_global_step 2\n"));
    CHECK(has(metrics, "\ntroupe_live_replicas 3\n"));
    CHECK(has(metrics, "\ntroupe_needed_gradients 2\n"));
    CHECK(has(metrics, "\ntroupe_step_seconds_bucket{le=\"1\"} 2\n"));
    CHECK(has(metrics, "caf_actor_mailbox_size{name=\"replica 2\"}"));
    for (const auto* name : {"owner w", "accumulator w", "token queue", "chief", "recorder",
                             "replica 0", "replica 1", "replica 2"})
      CHECK_MESSAGE(has(actors, "\"name\":\"" + std::string{name} + "\""), name);
    CHECK(has(get(*hook, "/metrics"), "\ntroupe_global_step 4\n"));
    CHECK(get(*hook, "/actors") == "[\n]\n");
    CHECK(has(get(*hook, "/"), "/metrics"));
  }

  TEST_CASE("a job says which replicas are there before its first step is over") {
    auto hook = std::make_shared<metrics_server_hook>();
    std::string metrics;
    small_job job{two_of_three};
    auto step = [&](replica_context& context) -> task<void> {
      auto reading = context.read(job.weights); // its answer comes after all have joined
      co_await reading;
      metrics = get(*hook, "/metrics");
      auto giving = give(context, job.optimizer, job.weights, zeros({1}, dtype::f64));
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 1, .hooks = {hook}, .pace = one_second});
    CHECK(!seen.report.failure);
    CHECK(has(metrics, "\ntroupe_global_step 0\n"));
    CHECK(has(metrics, "\ntroupe_replica_gradients_total{replica=\"2\",verdict=\"accepted\"} 0\n"));
    CHECK(has(metrics, "\ntroupe_live_replicas 3\n"));
    CHECK(has(metrics, "\ntroupe_needed_gradients 2\n"));
  }

  TEST_CASE("a port that is taken is refused before there is a job") {
    metrics_server_hook first;
    auto endpoint = first.endpoint();
    auto port = static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
    CHECK_THROWS_AS(metrics_server_hook{http_server_options{.port = port}}, failure);
  }

  TEST_CASE("observation changes nothing") {
    scratch_folder scratch;
    auto flight = std::make_shared<flight_recorder_hook>(scratch / "flight.txt");
    training_options options{.steps = 6, .pace = one_second};
    auto alone = small_job{two_of_three, 5}.run_idle(options);
    options.hooks = {flight, std::make_shared<metrics_server_hook>()};
    options.on_step = [&](const step_record&) { flight->record("a look"); };
    auto watched = small_job{two_of_three, 5}.run_idle(options);
    CHECK(print(alone.steps) == print(watched.steps));
  }

  TEST_CASE("a lost replica leaves a flight record, the same for the same seed") {
    scratch_folder scratch;
    std::vector<std::string> said;
    auto say = [&](const std::string& line) { said.push_back(line); };
    auto seen
      = play_with_a_loss(std::make_shared<flight_recorder_hook>(scratch / "flight.txt", say));
    CHECK(!seen.report.failure);
    REQUIRE(said.size() == 1);
    CHECK(said[0] == "what every actor did last stands in " + (scratch / "flight.txt").string());
    auto text = content(scratch / "flight.txt");
    CHECK(text.starts_with("troupe flight record: lost replica 1: the data is gone\n"));
    CHECK(has(text, "\nreplica 1: ended"));
    CHECK(has(text, "\nchief: working"));
    CHECK(has(text, "TakenGradient              0  accumulator w\n"));
    static_cast<void>(
      play_with_a_loss(std::make_shared<flight_recorder_hook>(scratch / "again.txt")));
    CHECK(text == content(scratch / "again.txt"));
  }

  TEST_CASE("a step that does not end leaves a record of all actors as they wait") {
    scratch_folder scratch;
    auto hook = std::make_shared<flight_recorder_hook>(scratch / "flight.txt");
    auto pace = [](uint32_t replica, uint64_t iteration, job_time) -> job_time {
      return replica == 1 && iteration == 3 ? job_time{1000s} : job_time{1s};
    };
    small_job job{{3, 3, sync_policy::latest_token}};
    auto seen = job.run_idle({.steps = 9, .hooks = {hook}, .deadline = 50s, .pace = pace});
    REQUIRE(seen.report.failure);
    auto text = content(scratch / "flight.txt");
    CHECK(text.starts_with("troupe flight record: step 4 is not over after"));
    CHECK(has(text, "still missing: replica 1"));
    CHECK(has(text, "\nreplica 0: waiting"));
    CHECK(has(text, "Token                      3  token queue\n"));
  }

  TEST_CASE("records of other tasks have a file each, and a task that did not answer is named") {
    scratch_folder scratch;
    std::vector<std::string> lines;
    flight_recorder_hook hook{scratch / "flight.txt",
                              [&](const std::string& line) { lines.push_back(line); }};
    std::filesystem::create_directory(scratch / "flight");
    hook.on_flight_records(
      {.reason = "a test", .tasks = {{.task = "worker:0", .seen = 1s}}, .silent = {"worker:1"}});
    CHECK(content(scratch / "flight" / "worker-0.jsonl")
          == "{\"task\":\"worker:0\",\"reason\":\"a test\",\"seconds\":1.0,\"lost\":false}\n");
    CHECK(content(scratch / "flight" / "worker-1.jsonl")
          == "{\"task\":\"worker:1\",\"reason\":\"a test\",\"seconds\":null,\"lost\":true}\n");
    REQUIRE(lines.size() == 1);
    CHECK(has(lines[0], "; worker:1 did not answer"));
  }

  TEST_CASE("a job that ends well leaves none, and none is written after it") {
    scratch_folder scratch;
    auto hook = std::make_shared<flight_recorder_hook>(scratch / "flight.txt");
    small_job job{two_of_three};
    static_cast<void>(job.run_idle({.steps = 2, .hooks = {hook}, .pace = one_second}));
    hook->record("too late");
    CHECK(!std::filesystem::exists(scratch / "flight.txt"));
  }

  TEST_CASE("a record that cannot be written is said, and training goes on") {
    std::vector<std::string> said;
    auto say = [&](const std::string& line) { said.push_back(line); };
    auto seen
      = play_with_a_loss(std::make_shared<flight_recorder_hook>("/dev/null/flight.txt", say));
    CHECK(!seen.report.failure);
    REQUIRE(said.size() == 1);
    CHECK(has(said[0], "/dev/null/flight.txt"));
  }
}

} // namespace observing_test
