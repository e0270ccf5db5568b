// SPDX-License-Identifier: Apache-2.0
// Goal: the scripts name what they should and, where gnuplot is, draw a run of any length.
// Method: texts searched; a run written by the recorders and drawn.
#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "actors/recording/replica_table.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/run/plots.hpp"

#include <fmt/format.h>

namespace plots_test {

namespace {

using namespace troupe;

const std::vector<plot_baseline> baselines{
  {"gzip -9", 3.87, false}, {"xz", 4.05, false}, {"xz", 2.63, true}};

// Files of a run as the plots expect them.
void write_run(const std::filesystem::path& folder, uint64_t steps, bool evaluated,
               bool takes_time = true) {
  auto metrics = metrics_file::create(folder / "metrics.csv");
  REQUIRE(metrics);
  summary run;
  for (uint64_t step = 1; step <= steps; ++step) {
    auto record = test::step_with_a_straggler();
    record.step = step;
    if (!takes_time) record.ended = record.began;
    run.add(record);
    REQUIRE(metrics->append(record));
  }
  auto evaluations = evaluation_file::create(folder / "evaluations.csv", "bits_per_byte");
  REQUIRE(evaluations);
  if (evaluated) REQUIRE(evaluations->append(steps, job_time{0}, 2.5));
  REQUIRE(evaluations->flush());
  REQUIRE(metrics->flush());
  REQUIRE(write_replica_table(folder / "replicas.csv", run));
}

} // namespace

TEST_SUITE("tools/run/plots") {
  TEST_CASE("names the baselines from the top down, and explains the star") {
    const auto script = loss_script(quality_measures::bits_per_byte, baselines);
    const auto xz = script.find("\"xz: 4.05\"");
    const auto gzip = script.find("\"gzip -9: 3.87\"");
    const auto xz_after = script.find("\"xz*: 2.63\"");
    REQUIRE(xz != std::string::npos);
    REQUIRE(gzip != std::string::npos);
    REQUIRE(xz_after != std::string::npos);
    CHECK(xz < gzip);
    CHECK(gzip < xz_after);
    CHECK(script.find("* after reading the training text") != std::string::npos);
    CHECK(loss_script(quality_measures::bits_per_byte, {}).find("after reading")
          == std::string::npos);
  }

  TEST_CASE("draws a run of any length") {
    for (const uint64_t steps : {1, 2, 350}) {
      test::scratch_folder folder;
      write_run(folder.path(), steps, steps != 2);
      REQUIRE(write_plot_scripts(folder.path(), quality_measures::bits_per_byte, baselines));
      const auto drawn = draw_plots(folder.path());
      if (!drawn && drawn.error().code == errc::not_found) return;
      REQUIRE_MESSAGE(drawn, (drawn ? "" : drawn.error().message));
      for (const char* name : {"loss.svg", "steps.svg"}) {
        const auto picture = test::content(folder / name);
        CHECK(picture.find("<svg") != std::string::npos);
        CHECK(picture.find("</svg>") != std::string::npos);
      }
    }
  }

  TEST_CASE("draws a run with steps that take no time") {
    test::scratch_folder folder;
    write_run(folder.path(), 20, true, false);
    REQUIRE(write_plot_scripts(folder.path(), quality_measures::bits_per_byte, baselines));
    const auto drawn = draw_plots(folder.path());
    if (!drawn && drawn.error().code == errc::not_found) return;
    REQUIRE_MESSAGE(drawn, (drawn ? "" : drawn.error().message));
    CHECK(test::content(folder / "steps.svg").find("</svg>") != std::string::npos);
  }

  TEST_CASE("reports a run that cannot be drawn") {
    test::scratch_folder folder;
    REQUIRE(write_plot_scripts(folder.path(), quality_measures::bits_per_byte, baselines));
    CHECK_FALSE(draw_plots(folder.path()));
  }

  TEST_CASE("reports a picture that gnuplot has cut off") {
    test::scratch_folder folder;
    test::write(folder / "loss.gp", "set print 'loss.svg'\nprint '<svg></svg>'\n");
    test::write(folder / "steps.gp", "set print 'steps.svg'\nprint '<svg>'\n");
    const auto drawn = draw_plots(folder.path());
    REQUIRE_FALSE(drawn);
    if (drawn.error().code == errc::not_found) return;
    CHECK(drawn.error().message
          == "gnuplot has not written all of " + (folder / "steps.svg").string()
               + ": the disk may be full");
    CHECK(test::content(folder / "loss.svg") == "<svg></svg>\n");
    CHECK_FALSE(std::filesystem::exists(folder / "steps.svg"));
  }

  TEST_CASE("leaves no picture that is cut off, however gnuplot ends") {
    for (const auto* end : {"", "set nonsense\n", "system 'kill -KILL $PPID'\n"}) {
      test::scratch_folder folder;
      test::write(folder / "steps.gp",
                  fmt::format("set print 'steps.svg'\nprint '<svg>'\n{}", end));
      CHECK_FALSE(draw_plots(folder.path(), plots_of::steps));
      CHECK_FALSE(std::filesystem::exists(folder / "steps.svg"));
    }
  }

  TEST_CASE("reports a folder that is not there") {
    test::scratch_folder folder;
    const auto refused
      = write_plot_scripts(folder / "none", quality_measures::bits_per_byte, baselines);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
  }

  TEST_CASE("prints a command that a shell takes") {
    CHECK(plot_command("runs/2026-01-01") == "cd runs/2026-01-01 && gnuplot loss.gp steps.gp");
    CHECK(plot_command("my run's") == "cd 'my run'\\''s' && gnuplot loss.gp steps.gp");
  }
}

} // namespace plots_test
