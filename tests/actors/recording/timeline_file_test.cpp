// SPDX-License-Identifier: Apache-2.0
// Goal: the file is whole JSON at every moment, nests, stays under its limit, and survives a full
// disk. Method: parse the file after each write; a limit on the file size plays the full disk; a
// killed child process plays the crash.
#include "actors/recording/timeline_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace timeline_file_test {

namespace {

using namespace troupe;
using nlohmann::json;
using namespace std::chrono_literals;

timeline_event span(std::string actor, job_time start, job_time duration) {
  timeline_event event;
  event.actor = std::move(actor);
  event.name = "compute";
  event.start = start;
  event.duration = duration;
  return event;
}

json parsed(const std::filesystem::path& path) {
  return json::parse(test::content(path), nullptr, false);
}

size_t count_of(const json& trace, std::string_view phase) {
  size_t count = 0;
  for (const auto& event : trace["traceEvents"])
    count += event["ph"] == phase;
  return count;
}

// Lets files grow to so many bytes and no further, as a full disk does, while it lives.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  void (*handler_)(int) = nullptr;
  rlimit before_{};
};

} // namespace

TEST_SUITE("actors/recording/timeline_file") {
  TEST_CASE("is whole JSON from the first moment and after every append") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path, {.tracks = {"chief", "replica 0"}});
    REQUIRE(file);
    CHECK_FALSE(parsed(path).is_discarded());
    for (int i = 0; i < 300; ++i) {
      auto event = span("replica " + std::to_string(i % 5), i * 1ms, 900us);
      event.what = static_cast<timeline_event::kind>(i % 4);
      REQUIRE(file->append(event));
      REQUIRE_FALSE(parsed(path).is_discarded());
      REQUIRE(file->flush());
      const auto trace = parsed(path);
      REQUIRE_FALSE(trace.is_discarded());
      REQUIRE(trace["traceEvents"].size() - count_of(trace, "M") == static_cast<size_t>(i + 1));
    }
    CHECK_FALSE(std::filesystem::exists(folder / "timeline.json.new"));
  }

  TEST_CASE("writes in blocks, not event by event") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path);
    REQUIRE(file);
    const auto before = std::filesystem::file_size(path);
    CHECK(file->append(span("chief", 0ns, 1ns)));
    CHECK(std::filesystem::file_size(path) == before);
    for (int i = 0; i < 1000; ++i)
      CHECK(file->append(span("chief", i * 1us, 1ns)));
    CHECK(std::filesystem::file_size(path) > before);
    CHECK_FALSE(parsed(path).is_discarded());
  }

  TEST_CASE("writes the rest when it goes") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    {
      auto file = timeline_file::create(path);
      REQUIRE(file);
      CHECK(file->append(span("chief", 0ns, 1ns)));
    }
    CHECK(count_of(parsed(path), "X") == 1);
  }

  TEST_CASE("gives each actor one track, in the order asked for, then of appearance") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path, {.tracks = {"chief", "owner w", "chief", "replica 0"}});
    REQUIRE(file);
    CHECK(file->append(span("replica 9", 0ns, 1ns)));
    CHECK(file->append(span("replica 0", 0ns, 1ns)));
    CHECK(file->append(span("replica 9", 2ns, 1ns)));
    CHECK(file->flush());
    std::map<int, std::string> names;
    const auto trace = parsed(path);
    for (const auto& event : trace["traceEvents"]) {
      if (event["name"] != "thread_name") continue;
      const auto name = event["args"]["name"].get<std::string>();
      CHECK(names.emplace(event["tid"].get<int>(), name).second);
    }
    CHECK(names
          == std::map<int, std::string>{
            {1, "chief"}, {2, "owner w"}, {3, "replica 0"}, {4, "replica 9"}});
  }

  TEST_CASE("cuts a span that would not nest") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path);
    REQUIRE(file);
    CHECK(file->append(span("replica 0", 0us, 10us)));
    CHECK(file->append(span("replica 0", 8us, 10us)));
    CHECK(file->append(span("replica 1", 8us, 10us)));
    CHECK(file->flush());
    const auto text = test::content(path);
    CHECK(text.find(R"("ts":10.000,"dur":8.000)") != std::string::npos);
  }

  TEST_CASE("stays under its size, and shows steps from all over the job") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path, {.tracks = {"chief"}, .file_bytes_max = 20'000});
    REQUIRE(file);
    constexpr uint64_t steps = 5000;
    for (uint64_t step = 1; step <= steps; ++step) {
      std::vector<timeline_event> of_step{span("chief", step * 1ms, 1ms),
                                          span("replica 1", step * 1ms, 1us)};
      for (auto& event : of_step)
        event.step = step;
      CHECK(file->append(step, of_step));
    }
    CHECK(file->flush());
    CHECK(std::filesystem::file_size(path) <= 20'000);
    CHECK_FALSE(std::filesystem::exists(folder / "timeline.json.new"));
    const auto trace = parsed(path);
    REQUIRE_FALSE(trace.is_discarded());
    std::map<int, std::vector<double>> times; // by track
    for (const auto& event : trace["traceEvents"])
      if (event["ph"] == "X") times[event["tid"]].push_back(event["ts"]);
    REQUIRE(times.size() == 2);
    CHECK(times[1] == times[2]); // of a step there is all or nothing
    const auto apart = static_cast<uint64_t>(times[1].front() / 1000); // the first one is shown
    CHECK(times[1].size() == steps / apart);
    for (size_t i = 0; i < times[1].size(); ++i)
      CHECK(times[1][i] == doctest::Approx(static_cast<double>(1000 * apart * (i + 1))));
    CHECK(test::content(path).find("of every " + std::to_string(apart) + " steps")
          != std::string::npos);
  }

  TEST_CASE("leaves out a step that is too long by itself, with its tracks") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path, {.file_bytes_max = 4000});
    REQUIRE(file);
    std::vector<timeline_event> events;
    for (int i = 0; i < 100; ++i)
      events.push_back(span("replica " + std::to_string(i), i * 1us, 1us));
    CHECK(file->append(8, events));
    CHECK(file->append(9, {events.data(), 1}));
    CHECK(file->flush());
    CHECK(std::filesystem::file_size(path) <= 4000);
    CHECK(count_of(parsed(path), "X") == 1);
  }

  TEST_CASE("stays whole when the disk is full, and goes on refusing") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    auto file = timeline_file::create(path);
    REQUIRE(file);
    CHECK(file->append(span("chief", 0ns, 1ns)));
    CHECK(file->flush());
    const auto before = test::content(path);
    const file_size_limit limit{before.size() + 50};
    CHECK(file->append(span("chief", 1ns, 1ns)));
    const auto refused = file->flush();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
    CHECK(refused.error().message.find("timeline.json:") != std::string::npos);
    CHECK(test::content(path) == before);
    CHECK(file->append(span("chief", 2ns, 1ns)).error() == refused.error());
    CHECK(file->flush().error() == refused.error());
  }

  TEST_CASE("leaves no file where none can be") {
    test::scratch_folder folder;
    const auto file = timeline_file::create(folder / "missing/timeline.json");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }

  TEST_CASE("is whole JSON after the process was killed") {
    test::scratch_folder folder;
    const auto path = folder / "timeline.json";
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto file = timeline_file::create(path);
      for (int i = 0; i < 100; ++i)
        if (!file->append(span("replica 0", i * 1us, 1us)) || !file->flush()) ::_exit(1);
      // An event that waits in memory is lost; those that were written must not be.
      if (!file->append(span("replica 0", 1s, 1us))) ::_exit(1);
      if (::write(ready[1], "x", 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char signal = 0;
    REQUIRE(::read(ready[0], &signal, 1) == 1);
    ::close(ready[0]);
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(count_of(parsed(path), "X") == 100);
  }
}

} // namespace timeline_file_test
