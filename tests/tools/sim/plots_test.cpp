// SPDX-License-Identifier: Apache-2.0
// Goal: every picture of a simulation has its numbers beside it, and one that cannot be says why;
// tables and fits say where they are not to be trusted.
// Method: small simulations; the files that they leave.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tools/sim/parsed_command.hpp"
#include "tools/sim/fit.hpp"
#include "tools/sim/plots/goodput_plot.hpp"
#include "tools/sim/plots/plot_list.hpp"
#include "tools/sim/plots/sim_plots.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sim_plots_test {

namespace {

using namespace troupe;
using troupe::test::parsed;

std::vector<sim_row> simulated(const sim_command& command) {
  std::vector<sim_row> rows;
  for (auto& options : command.rows()) {
    auto what = experiment_of(options);
    REQUIRE(what);
    rows.push_back({.options = std::move(options), .experiment = std::move(*what)});
  }
  for (auto& row : rows) {
    run_profile profile{row.experiment, rows.size() == 1};
    auto what = row.experiment;
    what.on_step = [&](const step_record& step) { profile.add(step); };
    row.report = run(what);
    row.profile = profile.figures();
  }
  return rows;
}

const sim_plot& plot_named(const std::vector<sim_plot>& plots, std::string_view name) {
  auto found = std::ranges::find(plots, name, &sim_plot::name);
  REQUIRE(found != plots.end());
  return *found;
}

size_t line_count(const std::string& text) {
  return static_cast<size_t>(std::ranges::count(text, '\n'));
}

} // namespace

TEST_SUITE("tools/sim/plots") {
  TEST_CASE("a sweep over backups shows what they cost, and no single replica") {
    auto command = parsed({"--replicas", "8", "--steps", "40", "--compute", "exponential(1)",
                           "--policy", "latest_token", "--sweep", "aggregate=5:8"});
    auto plots = sim_plots(command, simulated(command));
    for (const char* name : {"step-time", "arrivals", "backups", "convergence", "work"})
      CHECK_MESSAGE(plot_named(plots, name).why_not == "", name);
    for (const char* name : {"timeline", "slow-down", "contributions"})
      CHECK(plot_named(plots, name).why_not == "shows one run: leave out --sweep");
    const auto& backups = plot_named(plots, "backups");
    CHECK(line_count(backups.csv) == 5);
    CHECK(backups.csv.find("\n0,8,8,") != std::string::npos);
    CHECK(backups.csv.find("\n3,5,8,") != std::string::npos);
    CHECK(backups.script.find("n = 8,  policy latest_token,  computing exponential(1),  seed 0")
          != std::string::npos);
  }

  TEST_CASE("two sweeps are a heat map, on which the best pair is marked") {
    auto command = parsed({"--replicas", "8", "--steps", "40", "--compute", "exponential(1)",
                           "--sweep", "policy=cancel,latest_token", "--sweep", "aggregate=5:8"});
    auto rows = simulated(command);
    auto plots = sim_plots(command, rows);
    const auto& grid = plot_named(plots, "grid");
    CHECK(grid.why_not == "");
    CHECK(line_count(grid.csv) == 9);
    CHECK(grid.csv.find("column,row,aggregate,policy,time_of_best,") == 0);
    CHECK(grid.csv.find("\n3,1,8,latest_token,") != std::string::npos);
    CHECK(grid.csv.find(",1,") != std::string::npos); // the best is 1
    CHECK(plot_named(plots, "backups").why_not == "shows one sweep: leave out the second --sweep");
    CHECK(row_name(command, rows[5]) == "latest_token, 6");
    CHECK(sim_table(command, rows).find("step s - that of cancel, 5") != std::string::npos);
    auto dead = parsed({"--replicas", "4", "--steps", "10", "--policy", "cancel", "--sweep",
                        "dead=0,1", "--sweep", "aggregate=3,4"});
    CHECK(plot_named(sim_plots(dead, simulated(dead)), "grid").csv.find("\n1,1,4,1,,")
          != std::string::npos); // one dead, all needed: it stalls
    auto one = parsed({"--replicas", "4", "--steps", "10"});
    CHECK(plot_named(sim_plots(one, simulated(one)), "grid").why_not.find("needs two options")
          == 0);
  }

  TEST_CASE("an optimum at the edge of a sweep says so") {
    auto text_of = [](const char* values) {
      auto command = parsed({"--replicas", "16", "--steps", "60", "--policy", "cancel", "--compute",
                             "lognormal(1, 0.1) slow={3}*4", "--sweep", values});
      return sim_table(command, simulated(command));
    };
    CHECK(
      text_of("aggregate=10:13").find("aggregate 13, at the edge of the sweep: a larger one may")
      != std::string::npos);
    CHECK(text_of("aggregate=12:16").find("at the edge") == std::string::npos);
  }

  TEST_CASE("a run that is too short for its slow periods says so") {
    auto text_of = [](const char* compute, const char* runs) {
      auto command = parsed({"--replicas", "8", "--steps", "400", "--policy", "cancel", "--compute",
                             compute, "--runs", runs});
      return sim_table(command, simulated(command));
    };
    CHECK(text_of("lognormal(1, 0.1) * on_off(0.001, 0.01, 3)", "1")
            .find("slow periods outlast a twentieth of the run: its interval is that of 2 "
                  "independent stretches; raise --steps\n")
          != std::string::npos);
    CHECK(text_of("lognormal(1, 0.1) * on_off(0.001, 0.01, 3)", "2").find("outlast")
          == std::string::npos);
    CHECK(text_of("exponential(1)", "1").find("outlast") == std::string::npos);
  }

  TEST_CASE("one run shows its replicas, and no backups") {
    auto command = parsed({"--replicas", "8", "--aggregate", "7", "--steps", "40", "--policy",
                           "latest_token", "--compute", "1 slow={0}*2.5"});
    auto plots = sim_plots(command, simulated(command));
    CHECK(plot_named(plots, "backups").why_not == "needs --sweep aggregate=... or replicas=...");
    CHECK(plot_named(plots, "convergence").why_not != "");
    CHECK(plot_named(plots, "staleness").csv.find("\n0,,2,") != std::string::npos);
    CHECK(plot_named(plots, "timeline").csv.find("dropped work") != std::string::npos);
    for (const auto& plot : plots)
      CHECK_FALSE(plot.csv.starts_with("row,row,"));
    CHECK(plot_named(plots, "step-time").csv.starts_with("row,name,share_of_steps,"));
    auto slow_down = plot_named(plots, "slow-down").csv;
    CHECK(slow_down.find("\n0,3,40,2.5\n") != std::string::npos);
    CHECK(slow_down.find("\n1,3,40,1\n") != std::string::npos);
    CHECK(line_count(plot_named(plots, "contributions").csv) == 9);
  }

  TEST_CASE("losses have a line for each row, or for each kind of data") {
    auto command = parsed({"--replicas", "4", "--steps", "40", "--train", "logistic", "--policy",
                           "latest_token", "--sweep", "aggregate=3,4,dynamic"});
    auto plots = sim_plots(command, simulated(command));
    const auto& loss = plot_named(plots, "loss");
    CHECK(loss.why_not == "");
    for (const char* title : {"'aggregate 3'", "'aggregate 4'", "'aggregate dynamic'"})
      CHECK(loss.script.find(title) != std::string::npos);
    CHECK(line_count(plot_named(plots, "backups").csv) == 3); // dynamic is no number
    command = parsed({"--replicas", "4", "--steps", "40", "--train", "logistic", "--aggregate", "3",
                      "--policy", "latest_token", "--data", "own", "--compute", "1 slow={1}*2"});
    auto single = plot_named(sim_plots(command, simulated(command)), "loss");
    CHECK(single.script.find("data of slow replicas") != std::string::npos);
    command = parsed({"--replicas", "4", "--steps", "20"});
    CHECK(plot_named(sim_plots(command, simulated(command)), "loss").why_not
          == "nothing was learnt: --train");
  }

  TEST_CASE("time to converge needs a curve that knows every N") {
    auto command = parsed({"--replicas", "8", "--steps", "20", "--sweep", "aggregate=5:8",
                           "--iterations", "5: 1000, 7: 800"});
    auto plots = sim_plots(command, simulated(command));
    CHECK(plot_named(plots, "convergence").why_not
          == "the curve of iterations does not say how many steps it takes with 8 gradients a "
             "step");
  }

  TEST_CASE("a row that stalled, or was restarted, is no point of what backups gain") {
    auto command
      = parsed({"--replicas", "6", "--steps", "40", "--compute", "exponential(1)", "--policy",
                "latest_token", "--sweep", "aggregate=3:6", "--iterations", "200/N"});
    using namespace std::chrono_literals;
    command.options.fault_list = {{.at = 10s, .who = {"replica 1", "replica 2"}}};
    auto plots = sim_plots(command, simulated(command));
    for (const auto* name : {"backups", "convergence"}) {
      const auto& plot = plot_named(plots, name);
      CHECK(plot.why_not == "");
      CHECK(line_count(plot.csv) == 3);
      CHECK(plot.script.find("best: N = 5") == std::string::npos);
      CHECK(plot.script.find("best: b = 1") == std::string::npos);
    }
    command.options.fault_list = {{.at = 10s, .lasts = 5s, .who = {"chief"}}};
    plots = sim_plots(command, simulated(command));
    for (const auto* name : {"backups", "convergence"})
      CHECK(plot_named(plots, name).why_not
            == "needs two rows that made all their steps, without a restart and with a fixed N");
  }

  TEST_CASE("steps that take no time have no picture, or none of their longest tenth") {
    auto command = parsed({"--replicas", "8", "--aggregate", "2", "--policy", "k_batch_async",
                           "--compute", "1", "--steps", "100"});
    auto plots = sim_plots(command, simulated(command));
    CHECK(plot_named(plots, "step-time").why_not.empty());
    CHECK(plot_named(plots, "step-time").script.find("longest tenth") == std::string::npos);
    command = parsed({"--replicas", "2", "--compute", "0", "--steps", "20"});
    plots = sim_plots(command, simulated(command));
    for (const char* name : {"step-time", "arrivals", "work", "timeline"})
      CHECK_MESSAGE(plot_named(plots, name).why_not == "no step takes any time", name);
    CHECK(plot_named(plots, "slow-down").why_not == "no gradient takes any time");
    command = parsed({"--replicas", "4", "--compute", "0", "--steps", "20", "--sweep",
                      "aggregate=2,3", "--sweep", "policy=cancel,latest_token"});
    CHECK(plot_named(sim_plots(command, simulated(command)), "grid").why_not
          == "no step takes any time");
    command
      = parsed({"--replicas", "4", "--compute", "0", "--steps", "20", "--sweep", "aggregate=2,3"});
    plots = sim_plots(command, simulated(command));
    for (const char* name : {"backups", "convergence"})
      CHECK_MESSAGE(plot_named(plots, name).why_not == "no step takes any time", name);
  }

  TEST_CASE("the step times of many steps have a mark for the longest thousandth") {
    auto script_of = [](const char* steps) {
      auto command = parsed(
        {"--replicas", "2", "--compute", "exponential(1)", "--warm-up", "0", "--steps", steps});
      return plot_named(sim_plots(command, simulated(command)), "step-time").script;
    };
    CHECK(script_of("10000").find("dots: p50, p90, p99 and p99.9") != std::string::npos);
    CHECK(script_of("10000").find(",99.9,0\n") != std::string::npos);
    CHECK(script_of("9999").find("dots: p50, p90 and p99\"") != std::string::npos);
    CHECK(script_of("9999").find(",99.9,0\n") == std::string::npos);
  }

  TEST_CASE("a caption says only what is the same in all rows") {
    auto command = parsed({"--replicas", "4", "--steps", "20", "--sweep", "policy=cancel,async"});
    CHECK(caption_of(command, simulated(command)) == "n = 4,  computing chen2016-like,  seed 0");
    command = parsed({"--replicas", "4", "--aggregate", "3", "--steps", "20", "--sweep", "seed=1,2",
                      "--compute", "exponential(1)"});
    CHECK(caption_of(command, simulated(command))
          == "n = 4,  N = 3,  policy tensorflow,  computing exponential(1)");
  }

  TEST_CASE("a run that made no step is not drawn, and refused by name") {
    auto command = parsed({"--replicas", "4", "--aggregate", "4", "--dead", "1", "--policy",
                           "cancel", "--steps", "20"});
    for (const auto& plot : sim_plots(command, simulated(command)))
      CHECK_MESSAGE(plot.why_not != "", plot.name);
  }

  TEST_CASE("thousands of replicas and rows stay few lines in a picture") {
    auto command = parsed(
      {"--replicas", "400", "--aggregate", "390", "--steps", "10", "--policy", "latest_token"});
    auto timeline = plot_named(sim_plots(command, simulated(command)), "timeline");
    CHECK(timeline.script.find("of 400 replicas did") != std::string::npos);
    CHECK(timeline.csv.find("\n40,") == std::string::npos); // the 41st line
    CHECK(shown_rows(1000).size() == lines_max);
    CHECK(shown_rows(1000).front() == 0);
    CHECK(shown_rows(1000).back() == 999);
    CHECK(shown_rows(1) == std::vector<size_t>{0});
    CHECK(shown_rows(0).empty());
  }

  TEST_CASE("leaves numbers and scripts, and pictures where gnuplot is") {
    test::scratch_folder folder;
    auto path = (folder / "new" / "plots").string();
    auto command = parsed({"--replicas", "4", "--aggregate", "3", "--steps", "30", "--plots",
                           path.c_str(), "--compute", "exponential(0.1)"});
    auto rows = simulated(command);
    REQUIRE(check_outputs("", path));
    auto told = write_sim_plots(command, rows);
    REQUIRE_MESSAGE(told, (told ? "" : told.error().message));
    CHECK(told->find("not drawn: backups: needs --sweep") != std::string::npos);
    CHECK(std::filesystem::exists(folder / "new" / "plots" / "timeline.json"));
    auto drawn = told->find("plots in " + path) == 0;
    for (const char* name :
         {"step-time", "arrivals", "work", "contributions", "timeline", "slow-down"}) {
      CHECK(std::filesystem::exists(folder / "new" / "plots" / (std::string{name} + ".csv")));
      if (drawn)
        CHECK(test::content(folder / "new" / "plots" / (std::string{name} + ".svg")).find("</svg>")
              != std::string::npos);
    }
  }

  TEST_CASE("a picture that gnuplot has cut off is not there, and does not stop the others") {
    test::scratch_folder folder;
    auto plot = [](const std::string& name, const std::string& content) {
      return sim_plot{.name = name,
                      .script = fmt::format("set print '{}.svg'\nprint '{}'\n", name, content)};
    };
    auto told = write_plots(folder.path().string(), {plot("a", "<svg>"), plot("b", "<svg></svg>")});
    REQUIRE(told);
    if (told->starts_with("no plots: ")) return;
    CHECK(*told
          == fmt::format("plots in {0}: b.svg\nnot drawn: a: gnuplot has not written all of "
                         "{0}/a.svg: the disk may be full; to draw it, run gnuplot a.gp there\n",
                         folder.path().string()));
    CHECK_FALSE(std::filesystem::exists(folder / "a.svg"));
  }

  TEST_CASE("a folder that cannot be made is an error") {
    test::scratch_folder folder;
    auto file = (folder / "file").string();
    std::ofstream{file} << "x";
    auto path = file + "/plots";
    auto refused = check_outputs("", path);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("--plots " + path + ": cannot be made") == 0);
  }

  TEST_CASE("texts reach gnuplot whole, axes get round numbers") {
    CHECK(gnuplot_text("it's") == "'it''s'");
    CHECK(gnuplot_text("1 +\n2") == "'1 + 2'");
    CHECK(gnuplot_text("\xff.csv") == "'\xef\xbf\xbd.csv'");
    CHECK(logarithmic_tics(0.8, 12) == "1, 2, 5, 10");
    CHECK(logarithmic_tics(2.1, 2.4) == "2.1, 2.2, 2.4");
    CHECK(logarithmic_tics(0.8, 900) == "1, 10, 100"); // 1, 2, 5, ... would overlap
    CHECK(logarithmic_tics(1, 1e12) == "1, 100, 10000, 1e+06, 1e+08, 1e+10, 1e+12");
    CHECK(line_colour(0, 3) != line_colour(1, 3));
    CHECK(unit_for(0.01).name == "ms");
    CHECK(unit_for(5).name == "s");
  }

  TEST_CASE("names are cut between letters, and have no quotes that gnuplot would end them at") {
    CHECK(shortened("gr\xc3\xb6\xc3\x9f"
                    "er",
                    6)
          == "gr\xc3\xb6\xc3\x9f"
             "er");
    CHECK(shortened("gr\xc3\xb6\xc3\x9f"
                    "eren",
                    5)
          == "gr\xc3\xb6..");
    CHECK(without_middle("latest_token, 8") == "latest..ken, 8");
    CHECK(without_middle("\xc3\xa4"
                         "bcdefghijklmno\xc3\xb6")
          == "\xc3\xa4"
             "bcdef..klmno\xc3\xb6");
    CHECK(name_field("mixture(0.5: trace(\"a\"), 0.5: 2)")
          == "\"mixture(0.5: trace('a'), 0.5: 2)\"");
    CHECK(name_field("1 +\n2") == "1 + 2");
  }

  TEST_CASE("names below bars are aslant where they would run into each other") {
    auto script_of = [](const std::vector<const char*>& sweeps) {
      auto arguments = sweeps;
      arguments.insert(arguments.end(), {"--replicas", "4", "--steps", "10"});
      auto command = parsed(arguments);
      return plot_named(sim_plots(command, simulated(command)), "work").script;
    };
    CHECK(script_of({"--sweep", "aggregate=1:4"}).find("rotate") == std::string::npos);
    auto grid = script_of({"--sweep", "policy=cancel,latest_token", "--sweep", "aggregate=2:4"});
    CHECK(grid.find("set xtics rotate by 25") != std::string::npos);
    CHECK(grid.find("'latest..ken, 3' 4") != std::string::npos);
  }

  TEST_CASE("a report names a file whose name is no UTF-8") {
    CHECK(json_text({{"trace", "\xff.csv"}}) == "{\n  \"trace\": \"\xef\xbf\xbd.csv\"\n}\n");
  }

  TEST_CASE("useful work is drawn by backups, a line for each number of nodes") {
    goodput_command command{
      .nodes = {100, 1000}, .backups = {0, 1, 2}, .mtbf_hours = 20'000, .days = 1, .runs = 20};
    auto rows = goodput_rows(command);
    auto plot = goodput_plot(command, rows);
    CHECK(plot.why_not.empty());
    CHECK(line_count(plot.csv) == 1 + rows.size());
    CHECK(plot.csv.starts_with("nodes,backups,useful,useful_of_all\n100,0,"));
    CHECK(plot.script.find("title \"100 nodes\"") != std::string::npos);
    CHECK(plot.script.find("title \"1000 nodes\"") != std::string::npos);
    command.backups = {1};
    CHECK(goodput_plot(command, goodput_rows(command)).why_not
          == "needs two numbers of --backups to compare");
  }
}

TEST_SUITE("tools/sim/fit") {
  TEST_CASE("a fit that loses which draws are slow together points to the trace") {
    auto told = [](const char* expression) {
      auto times = distribution::parse(expression)->times(11);
      trace_table table{std::vector(8, std::vector<double>(1000))};
      for (uint32_t replica = 0; replica < 8; ++replica)
        for (uint64_t draw = 0; draw < 1000; ++draw)
          table.seconds[replica][draw]
            = std::chrono::duration<double>(times(replica, draw)).count();
      fit_command command{.trace = "t.csv"};
      auto fit = fit_trace(table);
      return fit_text(command, table, fit) + fit_json(command, table, fit);
    };
    auto together = told("lognormal(1, 0.02) * common(two_point(0.02, 8))");
    CHECK(together.find("\nnote       a step of all 8 replicas takes 1.") != std::string::npos);
    CHECK(together.find("s by this fit: --compute 'trace(\"t.csv\")' keeps which draws are slow "
                        "together\n")
          != std::string::npos);
    CHECK(together.find("\"is_different\": true") != std::string::npos);
    auto alone = told("lognormal(1, 0.02)");
    CHECK(alone.find("\nnote ") == std::string::npos);
    CHECK(alone.find("\"is_different\": false") != std::string::npos);
  }
}

} // namespace sim_plots_test
