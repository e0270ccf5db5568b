// SPDX-License-Identifier: Apache-2.0
// Goal: what is served is what the formats ask for. Method: small figures, and the lines that they
// must give; the formats' own readers.
#include "actors/observing/exposition.hpp"
#include "tests/doctest.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace exposition_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

step_record step_with(uint64_t number, job_time took) {
  step_record record{.step = number, .began = 1s, .ended = 1s + took, .needed = 1, .live = 2};
  record.accepted = {{.replica = 0, .compute = 20ms, .waited = 5ms, .loss = 2.5, .examples = 8}};
  record.stale = {{.replica = 1, .staleness = 3, .compute = 40ms}};
  return record;
}

job_figures two_steps() {
  job_figures figures;
  figures.add(step_with(1, 3ms));
  figures.add(step_with(2, 2min));
  figures.live = 2;
  figures.needed = 1;
  return figures;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::vector<actor_sight> two_actors() {
  const auto* token = find_message_kind(0, message_kinds().back().type);
  return {{.name = "a \"b\"\\\n",
           .actor = 4,
           .doing = actor_doing::working,
           .mailbox_depth = 3,
           .received = 9,
           .handled = 5,
           .errors = 1,
           .timed = 1,
           .timed_total = 2ms,
           .last = sighting{1s, token, 5, 7}},
          {.name = "gone", .actor = 5, .doing = actor_doing::ended}};
}

// The only process of a job.
std::vector<task_sight> here(std::vector<actor_sight> actors) {
  return {{.seen = 3s, .actors = std::move(actors)}};
}

// Two processes: replica 1 computes in one that is silent, and is late; the third is lost.
std::vector<task_sight> three_tasks() {
  actor_sight replica{
    .name = "replica 1", .actor = 4, .doing = actor_doing::computing, .since = 1s};
  return {{.task = "chief", .seen = 10s, .actors = {{.name = "replica 0", .actor = 4}}},
          {.task = "worker:0", .seen = 3s, .actors = {replica}},
          {.task = "worker:1", .is_lost = true, .seen = 2s, .actors = {{.name = "member 2"}}},
          {.task = "worker:2"}};
}

} // namespace

TEST_SUITE("actors/observing/exposition") {
  TEST_CASE("figures of a job are samples of their families") {
    auto text = prometheus_text(
      two_steps(), std::vector{task_sight{.process = {.resident_bytes = 4096, .cpu_seconds = 1.5}}},
      0s);
    for (const auto* line :
         {"# TYPE troupe_global_step gauge", "troupe_global_step 2", "troupe_loss 2.5",
          "troupe_live_replicas 2", "troupe_needed_gradients 1", "troupe_examples_total 16",
          "troupe_gradients_total{verdict=\"accepted\"} 2",
          "troupe_gradients_total{verdict=\"stale\"} 2",
          "troupe_gradients_total{verdict=\"cancelled\"} 0",
          "troupe_replica_staleness{replica=\"1\"} 3",
          "troupe_replica_computing_seconds_total{replica=\"1\"} 0.08",
          "troupe_replica_waiting_seconds_total{replica=\"0\"} 0.01",
          "process_resident_memory_bytes 4096", "process_cpu_seconds_total 1.5"})
      CHECK_MESSAGE(has_line(text, line), line);
    CHECK(text.ends_with("\n"));
  }

  TEST_CASE("the staleness of a replica is that of the gradient that came last") {
    job_figures figures;
    figures.add({.step = 5,
                 .accepted = {{.replica = 0, .staleness = 0, .arrived = 9s}},
                 .stale = {{.replica = 0, .staleness = 4, .arrived = 7s},
                           {.replica = 1, .staleness = 2, .arrived = 8s}},
                 .cancelled = {{.replica = 1, .arrived = 10s}}});
    CHECK(figures.replicas.at(0).staleness == 0);
    CHECK(figures.replicas.at(1).staleness == 2);
    figures.add({.step = 6, .stale = {{.replica = 0, .staleness = 1, .arrived = 11s}}});
    CHECK(figures.replicas.at(0).staleness == 1);
  }

  TEST_CASE("a replica that has given no gradient has its series, too") {
    auto figures = two_steps();
    figures.expect(3);
    auto text = prometheus_text(figures, {}, 0s);
    for (const auto* line :
         {"troupe_replica_gradients_total{replica=\"2\",verdict=\"accepted\"} 0",
          "troupe_replica_computing_seconds_total{replica=\"2\"} 0",
          "troupe_replica_staleness{replica=\"2\"} 0", "troupe_replica_staleness{replica=\"1\"} 3"})
      CHECK_MESSAGE(has_line(text, line), line);
  }

  TEST_CASE("the classes of step times add up") {
    auto text = prometheus_text(two_steps(), {}, 0s);
    CHECK(has_line(text, "troupe_step_seconds_bucket{le=\"0.0025\"} 0"));
    CHECK(has_line(text, "troupe_step_seconds_bucket{le=\"0.005\"} 1"));
    CHECK(has_line(text, "troupe_step_seconds_bucket{le=\"60\"} 1"));
    CHECK(has_line(text, "troupe_step_seconds_bucket{le=\"+Inf\"} 2"));
    CHECK(has_line(text, "troupe_step_seconds_count 2"));
    CHECK(has_line(text, "troupe_step_seconds_sum 120.003"));
  }

  TEST_CASE("a job without steps has no loss, which Prometheus spells NaN") {
    CHECK(has_line(prometheus_text({}, {}, 0s), "troupe_loss NaN"));
  }

  TEST_CASE("labels are escaped, and actors that ended are left out") {
    auto text = prometheus_text({}, here(two_actors()), 3s);
    CHECK(has_line(text, R"(caf_actor_mailbox_size{name="a \"b\"\\\n"} 3)"));
    CHECK(has_line(text, R"(caf_actor_processing_time_seconds_sum{name="a \"b\"\\\n"} 0.002)"));
    CHECK(has_line(text, "caf_system_running_actors 1"));
    CHECK(text.find("gone") == std::string::npos);
  }

  TEST_CASE("no series comes twice, even if two actors have one name") {
    std::vector<actor_sight> twins{{.name = "twin", .actor = 1, .mailbox_depth = 2},
                                   {.name = "twin", .actor = 2, .mailbox_depth = 3}};
    auto text = prometheus_text(two_steps(), here(twins), 0s);
    CHECK(has_line(text, "caf_actor_mailbox_size{name=\"twin\"} 5"));
    std::set<std::string> series;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
      CHECK_MESSAGE(series.insert(line.substr(0, line.rfind(' '))).second, line);
  }

  TEST_CASE("actors are a JSON array, with their last messages") {
    auto json = nlohmann::json::parse(actors_json({}, here(two_actors()), 3s));
    REQUIRE(json.size() == 2);
    CHECK(json[0]["name"] == "a \"b\"\\\n");
    CHECK(json[0]["state"] == "working");
    CHECK(json[0]["mailbox_depth"] == 3);
    CHECK(json[0]["handled"] == 5);
    CHECK(json[0]["last_message"]["from"] == "gone");
    CHECK(json[0]["last_message"]["step"] == 7);
    CHECK(json[0]["last_message"]["age_seconds"] == 2.0);
    CHECK(json[1]["state"] == "ended");
    CHECK(json[1]["last_message"].is_null());
    CHECK(nlohmann::json::parse(actors_json({}, {}, 0s)).empty());
  }

  TEST_CASE("series of several processes have their task, and each process its own") {
    auto text = prometheus_text(two_steps(), three_tasks(), 10s);
    for (const auto* line :
         {"troupe_actor_computing{task=\"worker:0\",name=\"replica 1\"} 1",
          "troupe_actor_computing{task=\"chief\",name=\"replica 0\"} 0",
          "troupe_actor_state_seconds{task=\"worker:0\",name=\"replica 1\"} 9",
          "troupe_task_up{task=\"worker:0\"} 1", "troupe_task_up{task=\"worker:1\"} 0",
          "troupe_task_up{task=\"worker:2\"} 0",
          "troupe_task_report_age_seconds{task=\"worker:1\"} 8"})
      CHECK_MESSAGE(has_line(text, line), line);
    CHECK(text.find("troupe_task_report_age_seconds{task=\"worker:2\"}") == std::string::npos);
  }

  TEST_CASE("an actor has its process, the time in its state, and a replica its late gradients") {
    auto json = nlohmann::json::parse(actors_json(two_steps(), three_tasks(), 10s));
    REQUIRE(json.size() == 3);
    CHECK(json[0]["late"] == 0);
    CHECK(json[1]["task"] == "worker:0");
    CHECK(json[1]["state"] == "computing");
    CHECK(json[1]["state_seconds"] == 9.0);
    CHECK(json[1]["late"] == 2);
    CHECK(json[1]["task_age_seconds"] == 7.0);
    CHECK(json[2]["state"] == "lost");
    CHECK(json[2]["late"].is_null());
  }

  TEST_CASE("a name that is no UTF-8 does not make the JSON unreadable") {
    std::vector<actor_sight> odd{{.name = "\xff\xfe", .actor = 1}};
    CHECK(nlohmann::json::parse(actors_json({}, here(odd), 0s)).size() == 1);
  }

  TEST_CASE("the process has memory") {
    CHECK(look_at_process().resident_bytes > 100'000);
  }
}

} // namespace exposition_test
