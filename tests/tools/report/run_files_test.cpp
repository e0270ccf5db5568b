// SPDX-License-Identifier: Apache-2.0
// Goal: what the files of a run tell is what its steps were, and whatever else stands in them is
// refused by file and line. Method: simulated runs, written and read back; and files cut or wrong.
#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/ledger_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "actors/recording/notice_file.hpp"
#include "messages/mapped.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/report/report.hpp"
#include "tools/report/run_files.hpp"
#include "tools/report/run_json.hpp"
#include "tools/report/what_if.hpp"

#include <array>
#include <atomic>
#include <filesystem>
#include <fmt/format.h>

namespace run_files_test {

using namespace troupe;

namespace {

// A run of 4 replicas of which 3 are needed and one is slow.
run_view write_run(const test::scratch_folder& folder, uint64_t steps, sync_policy policy) {
  auto ledger = ledger_file::create(folder / "ledger.csv");
  auto metrics = metrics_file::create(folder / "metrics.csv");
  REQUIRE(ledger);
  REQUIRE(metrics);
  run_view told;
  auto report
    = simulate({.sync = {3, 4, policy},
                .steps = steps,
                .compute = distribution::parse("lognormal(1, 0.2) slow=1/4*2.5")->times(5),
                .on_step = [&](const step_record& step) {
                  told.add(step);
                  REQUIRE(ledger->append(step));
                  REQUIRE(metrics->append(step));
                }});
  REQUIRE_FALSE(report.job.failure);
  REQUIRE(ledger->flush());
  REQUIRE(metrics->flush());
  return told;
}

std::string refusal(const test::scratch_folder& folder) {
  auto files = read_run_files(folder.path());
  return files ? "accepted" : files.error().message;
}

} // namespace

TEST_SUITE("tools/report/run_files") {
  TEST_CASE("reads back what the steps were, under every policy") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      test::scratch_folder folder;
      auto told = write_run(folder, 700, policy);
      auto files = read_run_files(folder.path());
      REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
      CHECK(run_json(files->view, {}, nullptr) == run_json(told, {}, nullptr));
      CHECK_FALSE(files->is_over);
    }
  }

  TEST_CASE("counts steps that no gradient came to in time, with or without a late one") {
    test::scratch_folder folder;
    auto ledger = ledger_file::create(folder / "ledger.csv");
    auto metrics = metrics_file::create(folder / "metrics.csv");
    run_view told;
    for (uint64_t number = 1; number <= 5; ++number) {
      auto began = job_time{1'000'000'000} * static_cast<int64_t>(number);
      auto half = job_time{500'000'000};
      contribution one{
        .local_step = number - 1, .arrived = began + half, .compute = half, .loss = 1};
      step_record step{
        .step = number, .began = began, .ended = began + half, .needed = 1, .live = 2};
      if (number == 1 || number == 5) step.accepted = {one};
      if (number == 2) step.stale = {one};
      told.add(step);
      REQUIRE(ledger->append(step));
      REQUIRE(metrics->append(step));
    }
    REQUIRE(ledger->flush());
    REQUIRE(metrics->flush());
    auto files = read_run_files(folder.path());
    REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
    CHECK(files->view.step_count() == 5);
    CHECK(run_json(files->view, {}, nullptr) == run_json(told, {}, nullptr));
  }

  TEST_CASE("a clock of another machine that is ahead does not move the end of a step") {
    test::scratch_folder folder;
    auto line = "1,0,accepted,0,0,7,1,0,,,0,2,32\n"; // arrived at 7 s
    test::write(folder / "ledger.csv", std::string{ledger_file::header} + line);
    test::write(folder / "metrics.csv",
                std::string{metrics_file::header} + "1,3.5,2,16,1,0,0,1,1,2,0.25\n");
    auto files = read_run_files(folder.path());
    REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
    CHECK(files->view.began() == std::chrono::milliseconds{1500});
    CHECK(files->view.last().ended == std::chrono::milliseconds{3500});
    CHECK(files->view.last().apply == std::chrono::milliseconds{250});
  }

  TEST_CASE("reads evaluations and notices") {
    test::scratch_folder folder;
    write_run(folder, 10, sync_policy::latest_token);
    auto evaluations = evaluation_file::create(folder / "evaluations.csv", "bits_per_byte");
    REQUIRE(evaluations);
    REQUIRE(evaluations->append(5, std::chrono::seconds{6}, 2.5));
    REQUIRE(evaluations->flush());
    auto notices = notice_file::create(folder / "notices.csv");
    REQUIRE(notices);
    REQUIRE(notices->append(7, "replica 3 is lost, \"gone\"\nfor good"));
    test::write(folder / "replicas.csv", "");
    auto files = read_run_files(folder.path());
    REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
    CHECK(files->measure == "bits_per_byte");
    CHECK(files->view.last_evaluation() == 2.5);
    CHECK(files->view.notices().back().step == 7);
    CHECK(files->view.notices().back().text == "replica 3 is lost, \"gone\" for good");
    CHECK(files->is_over);
  }

  TEST_CASE("a run that was killed ends with its last whole step") {
    test::scratch_folder folder;
    write_run(folder, 50, sync_policy::latest_token);
    auto ledger = test::content(folder / "ledger.csv");
    for (size_t bytes : std::array<size_t, 5>{1, 30, 100, 300, 2000}) {
      auto kept = ledger.substr(0, ledger.size() - bytes);
      test::write(folder / "ledger.csv", kept);
      auto files = read_run_files(folder.path());
      REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
      CHECK(files->view.step_count() < 50);
      CHECK(files->view.step_count() > 20);
      auto lines = kept.substr(0, kept.rfind('\n') + 1);
      auto begun = std::stoull(lines.substr(lines.rfind('\n', lines.size() - 2) + 1));
      CHECK(files->view.last().step + 1 >= begun);
    }
  }

  TEST_CASE("does without metrics, as every process that was killed early left it") {
    test::scratch_folder folder;
    auto told = write_run(folder, 20, sync_policy::latest_token);
    std::filesystem::remove(folder / "metrics.csv");
    auto files = read_run_files(folder.path());
    REQUIRE_MESSAGE(files, (files ? "" : files.error().message));
    CHECK(files->view.last().ended == told.last().ended);
    CHECK(files->view.last().needed == 3);
  }

  TEST_CASE("names the file and the line that is wrong") {
    test::scratch_folder folder;
    auto place = [&](const char* name) { return (folder / name).string(); };
    CHECK(refusal(folder) == "not the folder of a run: there is no " + place("ledger.csv"));
    test::write(folder / "ledger.csv", "a,b\n1,2\n");
    CHECK(refusal(folder).find(place("ledger.csv") + ":1: another first line than 'step,replica")
          == 0);
    test::write(folder / "ledger.csv", ledger_file::header);
    CHECK(refusal(folder) == place("ledger.csv") + ": the run has made no step");
    test::write(folder / "metrics.csv",
                std::string{metrics_file::header} + "1,3.5,2,16,1,0,0,1,1,2,0.25\n");
    CHECK(refusal(folder)
          == place("ledger.csv")
               + " holds no step, though metrics.csv does: a report is made from a ledger; give "
                 "the run more --ledger-bytes");
    std::filesystem::remove(folder / "metrics.csv");
    auto line = "1,0,accepted,0,0,1,1,0,,,0,2,32\n";
    test::write(folder / "ledger.csv", std::string{ledger_file::header} + line + "x\n");
    CHECK(refusal(folder) == place("ledger.csv") + ":3: not a line of a ledger");
    test::write(folder / "ledger.csv", std::string{ledger_file::header} + line);
    test::write(folder / "metrics.csv", std::string{metrics_file::header} + "1,x\n");
    CHECK(refusal(folder) == place("metrics.csv") + ":2: not a line about a step");
    test::write(folder / "metrics.csv",
                std::string{metrics_file::header} + "1,1e300,,0,0,0,0,2,1,0,\n");
    CHECK(refusal(folder) == place("metrics.csv") + ":2: not a line about a step");
    std::filesystem::remove(folder / "metrics.csv");
    test::write(folder / "evaluations.csv", "step,seconds,error_rate\n5,1,much\n");
    CHECK(refusal(folder) == place("evaluations.csv") + ":2: not a line about an evaluation");
    std::filesystem::remove(folder / "evaluations.csv");
    test::write(folder / "notices.csv", "step,text\n5\n");
    CHECK(refusal(folder) == place("notices.csv") + ":2: not a line about a notice");
  }

  TEST_CASE("the end of a ledger has its header and whole steps") {
    test::scratch_folder folder;
    write_run(folder, 50, sync_policy::latest_token);
    auto whole = test::content(folder / "ledger.csv");
    CHECK(ledger_end(folder / "ledger.csv", whole.size()) == whole);
    for (uint64_t bytes : {900, 950, 1000, 1500}) {
      auto end = ledger_end(folder / "ledger.csv", bytes);
      REQUIRE(end);
      auto run = read_ledger(*end, "end");
      REQUIRE(run);
      CHECK(run->first_step > 30);
      CHECK(run->first_step + run->step_count() == 50);
      auto first = fmt::format("\n{},", run->first_step + 1);
      CHECK(whole.find(first) == whole.find(end->substr(ledger_file::header.size() - 1)));
    }
    CHECK(ledger_end(folder / "ledger.csv", 10)->size() == ledger_file::header.size());
    CHECK(ledger_end(folder / "none", 10).error().code == errc::not_found);
  }

  TEST_CASE("asks for the changes that a run allows") {
    auto asked = [](const job_options& options, const std::vector<uint32_t>& slow) {
      return mapped(changes_worth_asking(options, slow), option_text);
    };
    using texts = std::vector<std::string>;
    job_options options{.replicas = 4, .aggregate = 3, .policy = sync_policy::latest_token};
    CHECK(asked(options, {3, 1, 2})
          == texts{"--aggregate 2", "--aggregate 4", "--replicas 5", "--policy tensorflow",
                   "--policy cancel", "--repair 3", "--repair 1"});
    options.aggregate = 4; // all are needed: there is no late replica
    CHECK(asked(options, {}) == texts{"--aggregate 3", "--replicas 5"});
    options.strategy = strategy_kind::mirrored; // all meet
    CHECK(asked(options, {2}) == texts{"--repair 2"});
  }

  TEST_CASE("replays the run with each change, as sim replay does") {
    test::scratch_folder folder;
    write_run(folder, 200, sync_policy::latest_token);
    job_options options{.replicas = 4, .aggregate = 3, .policy = sync_policy::latest_token};
    auto table = what_if(folder.path(), options, {3});
    CHECK(table.why_none.empty());
    CHECK(table.first_step == 1);
    CHECK(table.last_step == 200);
    auto run = run_of(options, test::content(folder / "ledger.csv"), "ledger");
    REQUIRE(run);
    REQUIRE(table.answers.size() == 6);
    for (size_t i = 0; i < table.answers.size(); ++i) {
      auto report = replay(*run, changes_worth_asking(options, {3})[i]);
      CHECK(table.answers[i].mean_step_seconds == estimate_of(report.changed->seconds).mean);
    }
    CHECK(table.answers[1].change == "wait for all replicas");
    CHECK(table.answers[1].needed == 4);
    CHECK(table.answers[1].mean_step_seconds > table.mean_step_seconds);
    std::atomic<int> asked = 0; // once for each change, and for each of its resampled runs
    CHECK(what_if(folder.path(), options, {}, [&] { return ++asked <= 30; }).answers.size() == 1);
    auto none = what_if(folder.path(), options, {}, [] { return false; });
    CHECK(none.answers.empty());
    CHECK(none.why_none.find("asked to stop") != std::string::npos);
    options.replicas = 2;
    CHECK(what_if(folder.path(), options, {}).why_none.find("tells of replica 3")
          != std::string::npos);
  }

  TEST_CASE("a run that was stopped has not finished, though its options do not tell its steps") {
    test::scratch_folder folder;
    write_run(folder, 10, sync_policy::latest_token);
    test::write(folder / "config.toml", "replicas = 4\naggregate = 3\npolicy = \"latest_token\"\n");
    test::write(folder / "replicas.csv", "");
    const std::string header{notice_file::header};
    for (const auto* notices : {"6,replica 2 joins after step 6; 4 of 4 replicas\n",
                                "10,troupe train: asked to stop after step 10 of 40\n"}) {
      test::write(folder / "notices.csv", header + notices);
      auto written = write_report(folder.path(), folder / "page.html", [] { return false; });
      REQUIRE_MESSAGE(written, (written ? "" : written.error().message));
      auto is_short = std::string_view{notices}.starts_with("10");
      auto state
        = fmt::format("\"state\":\"{}\"", is_short ? "ended before its last step" : "finished");
      CHECK_MESSAGE(written->run_json.find(state) != std::string::npos, notices);
    }
  }

  TEST_CASE("a run that made all its steps has finished, though its ledger was full before") {
    test::scratch_folder folder;
    write_run(folder, 10, sync_policy::latest_token);
    auto ledger = test::content(folder / "ledger.csv");
    test::write(folder / "ledger.csv", ledger.substr(0, ledger.find("\n7,") + 1));
    test::write(folder / "config.toml", "replicas = 4\naggregate = 3\nsteps = 10\n");
    test::write(folder / "replicas.csv", "");
    auto written = write_report(folder.path(), folder / "page.html", [] { return false; });
    REQUIRE_MESSAGE(written, (written ? "" : written.error().message));
    CHECK(written->run_json.find("\"state\":\"finished; its ledger ends with step 6\"")
          != std::string::npos);
  }

  TEST_CASE("a replica of the options that the ledger does not tell of is on the page") {
    test::scratch_folder folder;
    write_run(folder, 50, sync_policy::latest_token);
    test::write(folder / "config.toml", "replicas = 5\naggregate = 3\nsteps = 50\n");
    auto written = write_report(folder.path(), folder / "page.html", [] { return false; });
    REQUIRE_MESSAGE(written, (written ? "" : written.error().message));
    CHECK(written->run_json.find("\"replica_count\":5") != std::string::npos);
    CHECK(written->run_json.find("\"words\":\"has given no gradient\"") != std::string::npos);
  }

  TEST_CASE("writes one page that needs nothing else") {
    test::scratch_folder folder;
    write_run(folder, 50, sync_policy::latest_token);
    auto written = write_report(folder.path(), folder / "page.html");
    REQUIRE_MESSAGE(written, (written ? "" : written.error().message));
    CHECK(written->step_count == 50);
    auto page = test::content(folder / "page.html");
    CHECK(page.size() == written->bytes);
    CHECK(page.find("\"RUN\"") == std::string::npos);
    CHECK(page.find("src=") == std::string::npos);
    CHECK(page.find("<link rel=\"stylesheet\"") == std::string::npos);
    test::write(folder / "config.toml", "replicas = \"many\"\n");
    CHECK_FALSE(write_report(folder.path(), folder / "page.html"));
    CHECK(test::content(folder / "page.html") == page);
    std::filesystem::remove(folder / "config.toml");
    CHECK(write_report(folder.path(), folder / "none/page.html").error().code == errc::resource);
  }
}

} // namespace run_files_test
