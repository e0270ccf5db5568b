// SPDX-License-Identifier: Apache-2.0
// Goal: flags, scenario and sweep become the experiments that were meant, and each wrong command
// line is answered by a line that names the culprit. Method: whole command lines.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/options/config_file.hpp"
#include "tools/sim/command_line.hpp"
#include "tools/sim/step_files.hpp"

#include <fmt/format.h>
#include <fstream>
#include <vector>

namespace sim_command_line_test {

namespace {

using namespace troupe;

expected<sim_command> parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers{"sim"};
  for (const auto& argument : arguments)
    pointers.push_back(argument.c_str());
  return parse_sim_options(static_cast<int>(pointers.size()), pointers.data());
}

sim_command parsed(const std::vector<std::string>& arguments) {
  auto command = parse(arguments);
  REQUIRE_MESSAGE(command, (command ? "" : command.error().message));
  return *command;
}

std::string refusal(const std::vector<std::string>& arguments) {
  auto command = parse(arguments);
  if (!command) return command.error().message;
  if (auto used = check_uses(command->rows()); !used) return used.error().message;
  for (const auto& row : command->rows())
    if (auto what = experiment_of(row); !what) return what.error().message;
  return "accepted";
}

experiment meant(const std::vector<std::string>& arguments) {
  auto what = experiment_of(parsed(arguments).options);
  REQUIRE_MESSAGE(what, (what ? "" : what.error().message));
  return *what;
}

} // namespace

TEST_SUITE("tools/sim/command_line") {
  TEST_CASE("has defaults for everything, and needs all gradients by default") {
    auto what = meant({});
    CHECK(what.sync.total_num_replicas == 100);
    CHECK(what.sync.replicas_to_aggregate == 100);
    CHECK(what.sync.policy == sync_policy::tensorflow);
    CHECK(what.warm_up == 50);
    CHECK(parsed({}).rows().size() == 1);
  }

  TEST_CASE("stores the values of all options") {
    auto what = meant({"--replicas", "16", "--aggregate=14", "--policy", "cancel", "--dead", "2",
                       "--compute", "1+exponential(1)", "--steps", "30", "--seed", "7", "--runs",
                       "3", "--warm-up", "0"});
    CHECK(what.sync.total_num_replicas == 16);
    CHECK(what.sync.replicas_to_aggregate == 14);
    CHECK(what.sync.policy == sync_policy::cancel);
    CHECK(what.dead == 2);
    CHECK(what.compute.text() == "1 + exponential(1)");
    CHECK(what.steps == 30);
    CHECK(what.seed == 7);
    CHECK(what.runs == 3);
    CHECK(what.warm_up == 0);
    CHECK(meant({"--distinct", "on"}).sync.one_gradient_per_replica);
    CHECK(meant({"--initial-tokens", "0"}).sync.initial_tokens == 0);
  }

  TEST_CASE("sync waits for all replicas") {
    CHECK(meant({"--policy", "sync", "--replicas", "8"}).sync.replicas_to_aggregate == 8);
    CHECK(refusal({"--policy", "sync", "--replicas", "8", "--aggregate", "7"})
            .find("--aggregate is 7 with 8 replicas, but under sync a step waits for all")
          == 0);
  }

  TEST_CASE("policies under which stale gradients count have options of their own") {
    CHECK(meant({"--policy", "async"}).sync.policy == sync_policy::k_batch_async);
    CHECK(meant({"--policy", "async"}).sync.replicas_to_aggregate == 1);
    CHECK(meant({"--policy", "k_async", "--aggregate", "5"}).sync.replicas_to_aggregate == 5);
    CHECK(meant({"--policy", "ssp", "--slack", "3"}).sync.slack == 3);
    auto local = meant({"--policy", "local_sgd", "--local-steps", "8", "--averaging-time", "0.25"});
    CHECK(local.sync.replicas_to_aggregate == 100);
    CHECK(local.local_sgd.local_steps == 8);
    CHECK(local.local_sgd.averaging_time == std::chrono::milliseconds{250});
    CHECK(refusal({"--slack", "3"})
          == "--slack has no meaning under tensorflow; leave it out, or take --policy ssp");
    CHECK(refusal({"--policy", "async", "--aggregate", "2"})
          == "--aggregate is 2 with 100 replicas, but under async every gradient is an update; "
             "leave it out, or choose another policy");
    CHECK(refusal({"--policy", "ssp", "--aggregate", "2"}).find("--aggregate is 2 with 100") == 0);
    CHECK(
      refusal({"--policy", "k_async", "--aggregate", "101"}).find("replicas_to_aggregate is 101")
      == 0);
    CHECK(refusal({"--local-steps", "3"}).find("--local-steps has no meaning under") == 0);
    CHECK(refusal({"--averaging-time", "-1", "--policy", "local_sgd"})
          == "--averaging-time must be a number from 0 to 1,000,000,000, not '-1'");
    CHECK(refusal({"--policy", "ssp", "--distinct", "on"}).find("one_gradient_per_replica") == 0);
  }

  TEST_CASE("initial tokens are enough for the first step, and only of a policy that counts them") {
    CHECK(refusal({"--replicas", "4", "--aggregate", "9", "--initial-tokens", "4"})
          == "--initial-tokens is 4, but the first step needs 5 beside the 4 replicas for its 9 "
             "gradients; raise it, or leave it out");
    CHECK(refusal({"--replicas", "4", "--aggregate", "9", "--initial-tokens", "5"}) == "accepted");
    CHECK(refusal({"--policy", "cancel", "--initial-tokens", "7"})
          == "--initial-tokens has no meaning under cancel; leave it out, or take --policy "
             "tensorflow");
    CHECK(refusal({"--sweep", "policy=cancel,tensorflow", "--initial-tokens", "7"}) == "accepted");
  }

  TEST_CASE("an engine is chosen by name, and refused where it cannot simulate the job") {
    CHECK_FALSE(meant({}).engine);
    CHECK(meant({"--engine", "actors"}).engine == simulation_engine::actors);
    CHECK(meant({"--engine", "direct"}).engine == simulation_engine::direct);
    CHECK(refusal({"--engine", "fast"}) == "--engine must be actors or direct, not 'fast'");
    CHECK(refusal({"--engine", "direct", "--network", "1ms"})
          == "--engine direct cannot simulate a network; leave that out, or take --engine actors");
    CHECK(refusal({"--engine", "direct", "--faults", "crash=100"})
          == "--engine direct cannot simulate faults; leave that out, or take --engine actors");
    CHECK(refusal({"--engine", "direct", "--train", "logistic"})
          == "--engine direct cannot simulate something to learn; leave that out, or take --engine "
             "actors");
  }

  TEST_CASE("two levels are a ring of hosts, which have as many replicas as told") {
    auto what = meant({"--policy", "all_reduce", "--collective", "two_level", "--replicas", "24",
                       "--replicas-per-host", "8"});
    CHECK(what.collective == collective_algorithm::ring);
    CHECK(what.replicas_per_host == 8);
    CHECK(meant({"--policy", "all_reduce"}).replicas_per_host == 1);
    CHECK(
      refusal({"--policy", "all_reduce", "--collective", "two_level"})
      == "--collective two_level needs to know the hosts; say how many replicas each has, as in "
         "--replicas-per-host 8");
    CHECK(refusal({"--policy", "all_reduce", "--replicas-per-host", "4"})
          == "--replicas-per-host has no meaning without hosts; leave it out, or take --collective "
             "two_level");
    CHECK(refusal({"--replicas-per-host", "4"})
          == "--replicas-per-host has no meaning under tensorflow; leave it out, or take --policy "
             "all_reduce");
    CHECK(refusal({"--policy", "all_reduce", "--collective", "two_level", "--replicas", "24",
                   "--replicas-per-host", "7"})
          == "--replicas-per-host 7 is no divisor of 24 replicas; give one that is, or other "
             "--replicas");
  }

  TEST_CASE("a slow link is between two nodes, and by so much slower") {
    auto link_of = [](const char* text) {
      return meant({"--policy", "all_reduce", "--replicas", "8", "--network", "1ms", "--slow-link",
                    text})
        .network(1)
        .slowed;
    };
    for (const char* text : {"{3, 4}*10", "{3,4} * 10"}) {
      auto link = link_of(text);
      REQUIRE(link);
      CHECK(link->one == 3);
      CHECK(link->other == 4);
      CHECK(link->factor == 10);
    }
    for (const char* text : {"3-4*10", "{3,3}*10", "{3,4}", "{3,4}*0.5", "{3,4}*nan", "{3,4}*10s"})
      CHECK(refusal({"--policy", "all_reduce", "--network", "1ms", "--slow-link", text})
            == fmt::format("--slow-link must be two nodes and by how much their link is slower, "
                           "such as '{{3, 4}}*10', not '{}'",
                           text));
    CHECK(refusal({"--policy", "all_reduce", "--replicas", "8", "--network", "1ms", "--slow-link",
                   "{3,8}*2"})
          == "--slow-link is between 3 and 8, but there are 8: 0 to 7");
    CHECK(refusal({"--policy", "all_reduce", "--slow-link", "{3,4}*2"})
          == "--slow-link changes nothing where messages take no time; say how long they take, as "
             "in --bandwidth 1GB or --network 1ms");
    CHECK(refusal({"--network", "1ms", "--slow-link", "{3,4}*2"})
          == "--slow-link has no meaning under tensorflow; leave it out, or take --policy "
             "all_reduce");
  }

  TEST_CASE("a job of collectives has replicas that wait for each other, and no more") {
    auto what = meant({"--policy", "all_reduce", "--replicas", "8", "--network", "1ms"});
    CHECK(what.collective == collective_algorithm::ring);
    CHECK(what.sync.replicas_to_aggregate == 8);
    CHECK(meant({"--policy", "all_reduce", "--collective", "tree"}).collective
          == collective_algorithm::tree);
    auto moved = meant({"--policy", "all_reduce", "--bandwidth", "1GB", "--model-bytes", "4MB"});
    CHECK(moved.network(1).gradient_bytes == 4'000'000);
    CHECK(moved.network(1).model_bytes == 0);
    CHECK(refusal({"--policy", "all_reduce", "--bandwidth", "1GB", "--model-bytes", "4MB",
                   "--gradient-bytes", "2MB"})
          == "--model-bytes has no meaning under all_reduce, where no replica reads the model; "
             "leave it out: --gradient-bytes says what is summed");
    CHECK_FALSE(meant({}).collective);
    CHECK(refusal({"--collective", "ring"})
          == "--collective has no meaning under tensorflow; leave it out, or take --policy "
             "all_reduce");
    CHECK(refusal({"--policy", "all_reduce", "--collective", "star"})
          == "--collective: no collective 'star'; there are ring, halving_doubling, all_to_all, "
             "direct, chain, tree, two_level");
    CHECK(refusal({"--policy", "all_reduce", "--dead", "1"})
          == "--policy all_reduce is simulated without dead replicas; leave that out, or take "
             "another policy");
    CHECK(refusal({"--policy", "all_reduce", "--engine", "actors"})
          == "--policy all_reduce is simulated without a choice of the engine; leave that out, or "
             "take another policy");
    CHECK(refusal({"--policy", "all_reduce", "--replicas", "8", "--aggregate", "7"})
            .find("--aggregate is 7 with 8 replicas, but under all_reduce a step waits for all")
          == 0);
    // Beside rows that use it, a row under all_reduce needs all.
    auto rows
      = parsed({"--replicas", "8", "--aggregate", "7", "--sweep", "policy=all_reduce,cancel"})
          .rows();
    CHECK(check_uses(rows));
    CHECK(experiment_of(rows[0]).value().sync.replicas_to_aggregate == 8);
    CHECK(experiment_of(rows[1]).value().sync.replicas_to_aggregate == 7);
    CHECK(refusal({"--policy", "all_reduce", "--replicas", "9000"})
          == "--policy all_reduce is simulated without so many messages; leave that out, or take "
             "another policy");
  }

  TEST_CASE("a sweep may have options that only some of its rows know") {
    CHECK(refusal({"--sweep", "policy=cancel,ssp", "--slack", "3"}) == "accepted");
    CHECK(refusal({"--sweep", "policy=sync,local_sgd", "--local-steps", "3"}) == "accepted");
    CHECK(refusal({"--sweep", "aggregate=50,dynamic", "--policy", "cancel", "--gain-power", "2"})
          == "accepted");
    auto rows = parsed({"--sweep", "policy=cancel,ssp", "--slack", "3"}).rows();
    CHECK(experiment_of(rows[0])->sync.slack == 0);
    CHECK(experiment_of(rows[1])->sync.slack == 3);
  }

  TEST_CASE("a learning job has options of its own") {
    auto what
      = meant({"--train", "logistic", "--target-loss", "0.5", "--steps", "200", "--replicas", "4",
               "--data", "own", "--learning-rate", "0.25", "--seed", "3"});
    REQUIRE(what.learning);
    CHECK(what.target_loss == 0.5);
    auto learning = what.learning(3);
    CHECK(learning.evaluate_every == 4);
    CHECK(std::get<rules::sgd>(learning.plan.rule).learning_rate == 0.25);
    REQUIRE(learning.task->variables.size() == 1);
    CHECK(learning.task->variables[0].second.extents() == shape{24});
    CHECK_FALSE(meant({}).learning);
    CHECK(
      refusal({"--learning-rate", "1"})
      == "--learning-rate has no meaning where nothing is learnt; leave it out, or take --train "
         "logistic or language");
    CHECK(refusal({"--train", "chess"})
          == "--train: nothing called 'chess' can be learnt; there are logistic and language");
    CHECK(refusal({"--train", "logistic", "--data", "mine"})
          == "--data must be same or own, not 'mine'");
    CHECK(refusal({"--train", "logistic", "--optimizer", "adma"}).find("--optimizer: no optimizer")
          == 0);
    CHECK(refusal({"--train", "logistic", "--text", "a.txt"}).find("--text has no meaning under")
          == 0);
    CHECK(refusal({"--train", "language", "--text", "no/such"}).find("--text: ") == 0);
    CHECK(refusal({"--train", "logistic", "--policy", "local_sgd", "--local-steps", "2",
                   "--optimizer", "adam"})
            .find("--optimizer adam makes no local steps")
          == 0);
    CHECK(refusal({"--train", "logistic", "--curvature", "0.5"}).find("--curvature has no meaning")
          == 0);
  }

  TEST_CASE("where something is learnt, gains are measured") {
    auto what = meant({"--train", "logistic", "--aggregate", "dynamic", "--policy", "cancel",
                       "--curvature", "0.25"});
    CHECK(what.sync.dynamic->gain == gain_model::measured);
    CHECK(what.sync.dynamic->curvature == 0.25);
  }

  TEST_CASE("the number of gradients may be left to the chief") {
    auto what = meant({"--aggregate", "dynamic", "--policy", "cancel", "--gain-power", "0.7"});
    REQUIRE(what.sync.dynamic);
    CHECK(what.sync.dynamic->gain == gain_model::power);
    CHECK(what.sync.dynamic->power == 0.7);
    CHECK(what.sync.replicas_to_aggregate == 100);
    auto rows = parsed({"--sweep", "aggregate=dynamic,95"}).rows();
    REQUIRE(rows.size() == 2);
    CHECK(value_text("aggregate", rows[0]) == "dynamic");
    CHECK(value_text("aggregate", rows[1]) == "95");
    CHECK(refusal({"--aggregate", "0"}).find("--aggregate must be a whole number from 1") == 0);
    CHECK(refusal({"--gain-power", "2"}).find("--gain-power has no meaning where a step needs")
          == 0);
    CHECK(refusal({"--aggregate", "dynamic"})
          == "the number of backups cannot be chosen for each step under tensorflow; choose the "
             "policy latest_token or cancel");
    CHECK(refusal({"--aggregate", "dynamic", "--policy", "ssp"})
          == "--aggregate dynamic has no meaning under ssp; take --policy latest_token or cancel");
    CHECK(refusal({"--aggregate", "dynamic", "--policy", "cancel", "--gain-power", "0"})
          == "the power of a gain is 0; give a number above 0");
  }

  TEST_CASE("a sweep is a row for each value") {
    auto rows = parsed({"--sweep", "aggregate=90:100:5"}).rows();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].aggregate == 90);
    CHECK(rows[2].aggregate == 100);
    auto policies = parsed({"--sweep", "policy=cancel,latest_token"}).rows();
    REQUIRE(policies.size() == 2);
    CHECK(policies[1].policy == "latest_token");
    auto times = parsed({"--sweep", "compute=uniform(1,2),slow({1,2}, 3)"}).rows();
    REQUIRE(times.size() == 2);
    CHECK(times[0].compute == "uniform(1,2)");
    CHECK(parsed({"--sweep", "seed=5:5"}).rows().size() == 1);
  }

  TEST_CASE("a sweep may have blanks behind its commas, and around its sign") {
    CHECK(parsed({"--sweep", "policy = cancel, latest_token"}).sweep.values
          == std::vector<std::string>{"cancel", "latest_token"});
    CHECK(parsed({"--sweep", "aggregate=90 : 92"}).rows().size() == 3);
    CHECK(parsed({"--sweep", "compute=uniform(1, 2), slow({1, 2}, 3)"}).rows()[1].compute
          == "slow({1, 2}, 3)");
  }

  TEST_CASE("a scenario file says the same, and the command line overrides it") {
    test::scratch_folder folder;
    auto path = (folder / "scenario.toml").string();
    std::ofstream{path} << "replicas = 50\npolicy = \"cancel\"\ndistinct = true\n"
                           "compute = \"exponential(1)\"\nsweep = \"aggregate=45:50\"\n"
                           "json = \"report.json\"\n";
    auto command = parsed({"--scenario", path, "--policy", "latest_token"});
    CHECK(command.options.replicas == 50);
    CHECK(command.options.policy == "latest_token");
    CHECK(command.options.distinct == "on");
    CHECK(command.json == "report.json");
    CHECK(command.rows().size() == 6);
  }

  TEST_CASE("an empty text in a scenario or a sweep stands for none") {
    test::scratch_folder folder;
    auto path = (folder / "scenario.toml").string();
    std::ofstream{path} << "network = \"\"\njson = \"\"\n";
    auto command = parsed({"--scenario", path});
    CHECK(command.options.network.empty());
    CHECK(command.json.empty());
    auto rows = parsed({"--network", "0.1", "--sweep", "network=,0.01"}).rows();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].network.empty());
    CHECK(rows[1].network == "0.01");
    CHECK(refusal({"--network", ""}) == "--network needs a value");
  }

  TEST_CASE("two sweeps are a row for each pair of values") {
    auto rows
      = parsed({"--sweep", "policy=cancel,latest_token", "--sweep", "aggregate=95:97"}).rows();
    REQUIRE(rows.size() == 6);
    CHECK(rows[0].policy == "cancel");
    CHECK(rows[2].policy == "cancel");
    CHECK(rows[2].aggregate == 97);
    CHECK(rows[3].policy == "latest_token");
    CHECK(rows[3].aggregate == 95);
  }

  TEST_CASE("two sweeps stand in a scenario file as a list") {
    test::scratch_folder folder;
    auto path = (folder / "scenario.toml").string();
    std::ofstream{path} << "replicas = 4\nsweep = [\"aggregate=1:2\", \"seed=1:3\"]\n";
    auto rows = parsed({"--scenario", path}).rows();
    REQUIRE(rows.size() == 6);
    CHECK(rows[1].aggregate == 1);
    CHECK(rows[1].seed == 2);
    CHECK(parsed({"--scenario", path, "--sweep", "seed=1:4"}).rows().size() == 4);
  }

  TEST_CASE("a file of one run is not written of several") {
    auto refused = [](const std::vector<std::string>& arguments) {
      auto files = step_files::create(parsed(arguments));
      return files ? std::string{"accepted"} : files.error().message;
    };
    CHECK(refused({}) == "accepted");
    CHECK(refused({"--ledger", "l.csv", "--sweep", "seed=1:2"})
          == "--ledger is of one run; leave out --sweep");
    CHECK(refused({"--steps-csv", "l.csv", "--runs", "2"})
          == "--steps-csv is of one run; leave out --runs");
    CHECK(refused({"--ledger", "/dev/null/l.csv"}).find("--ledger: ") == 0);
  }

  TEST_CASE("two options that name one file are refused, however its path is spelt") {
    auto refused = [](const std::vector<std::string>& arguments) {
      auto files = step_files::create(parsed(arguments));
      return files ? std::string{"accepted"} : files.error().message;
    };
    CHECK(refused({"--steps-csv", "a", "--ledger", "a"})
          == "--ledger a and --steps-csv a are one file; name two");
    CHECK(refused({"--ledger", "x/a", "--steps-csv", "./x/../x/a"})
          == "--ledger x/a and --steps-csv ./x/../x/a are one file; name two");
    CHECK(refused({"--steps-csv", "./a", "--json", "a"})
          == "--json a and --steps-csv ./a are one file; name two");
    CHECK(refused({"--ledger", "./a", "--json", "a"})
          == "--json a and --ledger ./a are one file; name two");
  }

  TEST_CASE("takes every value away where no text is given") {
    auto command = parsed({"--sweep", "seed=1:2", "--iterations", "N^-0.8", "--network", "0.1"});
    command_options all;
    add_options(all, command);
    for (const auto* key : {"sweep", "iterations", "network"})
      CHECK(all.find(key)->value.store({}));
    CHECK(command.sweep.key.empty());
    CHECK(command.iterations.text() == iteration_curve{}.text());
    CHECK(command.options.network.empty());
  }

  TEST_CASE("a slip in a scenario is named by file and line") {
    sim_command command;
    command_options all;
    add_options(all, command);
    auto refused = [&](std::string_view toml) {
      auto done = read_config(toml, "a.toml", all, faults_key("a.toml", command));
      return done ? "accepted" : done.error().message;
    };
    CHECK(refused("replicas = 5\nreplics = 6\n")
          == "a.toml:2: unknown key 'replics'; the nearest known one is 'replicas'");
    CHECK(refused("replicas = 0\n").find("a.toml:1: replicas must be a whole number from 1") == 0);
    CHECK(refused("replicas = [5]\n")
          == "a.toml:1: replicas must be a number or a text in quotes, not a list");
    CHECK(refused("replicas = \n").find("a.toml:1: ") == 0);
    CHECK(refused("sweep = \"x=1\"\n").find("a.toml:1: sweep: no option 'x'") == 0);
    CHECK(refused("sweep = [\"seed=1:2\", 3]\n")
          == "a.toml:1: sweep must be a text in quotes, or a list of texts, not a list");
  }

  TEST_CASE("answers every wrong option by a line that names it") {
    CHECK(refusal({"--replicas", "x"})
          == "--replicas must be a whole number from 1 to 1,000,000, not 'x'");
    CHECK(refusal({"--replicas", "0"}).find("--replicas must be") == 0);
    CHECK(refusal({"--replicas", "-3"}).find("--replicas must be") == 0);
    CHECK(refusal({"--steps"}).find("--steps") == 0);
    CHECK(refusal({"--seed", "9000000000000000000"}) == "accepted");
    CHECK(refusal({"--seed", "9223372036854775807"}) == "accepted"); // 2^63 - 1
    CHECK(refusal({"--seed", "9223372036854775808"}).find("--seed must be") == 0);
    CHECK(refusal({"--seed", "9223372036854775809"}).find("--seed must be") == 0); // 2^63 + 1
    CHECK(refusal({"--stesp", "4"})
          == "unknown option '--stesp'; the nearest known one is '--steps'");
    CHECK(refusal({"now"}).find("unexpected argument 'now'") == 0);
    CHECK(refusal({"--policy", "best"})
          == fmt::format(
            "--policy: no policy 'best'; there are {}, sync, async, {}, local_sgd and all_reduce",
            names_of(policies_that(&policy_traits::is_synchronous), ", "),
            names_of(policies_that(&policy_traits::is_asynchronous), ", ")));
    CHECK(refusal({"--distinct", "yes"}) == "--distinct must be on or off, not 'yes'");
    CHECK(refusal({"--distinct", "on", "--policy", "cancel"})
          == "--distinct on has no meaning under cancel, where no replica gives a step two "
             "gradients; leave it out, or take --policy tensorflow");
    CHECK(refusal({"--steps", "1"}) == "accepted");
    CHECK(refusal({"--compute", "resnet-50", "--bandwidth", "1GB"}) == "accepted");
    CHECK(refusal({"--train", "logistic", "--bandwidth", "1kB"}) == "accepted");
    CHECK(refusal({"--dead", "101"}) == "--dead is 101, but there are 100 replicas; lower it");
    CHECK(refusal({"--steps", "10", "--warm-up", "10"}).find("--warm-up leaves out 10 steps of 10")
          == 0);
    CHECK(refusal({"--compute", "1 slow={7,100}*2"})
          == "--compute: 1 * slow({7, 100}, 2) speaks of replica 100, but there are 100: 0 to 99");
    CHECK(refusal({"--compute", "1 slow={7,99}*2"}) == "accepted");
    CHECK(refusal({"--aggregate", "101", "--policy", "cancel"}).find("replicas_to_aggregate") == 0);
    CHECK(refusal({"--scenario", "no/such.toml"}).find("--scenario: ") == 0);
    CHECK(
      refusal({"--sweep", "aggregate=1,2", "--sweep", "aggregate=3"})
      == "--sweep is given twice with aggregate; give all its values at once, or another option");
    CHECK(refusal({"--sweep", "seed=1,2", "--sweep", "steps=5,6", "--sweep", "dead=0,1"})
          == "--sweep is given 3 times, but two options are the most that are swept at a time");
    CHECK(refusal({"--sweep", "seed=1:200", "--sweep", "steps=1:200"})
          == "--sweep: 40000 pairs of values; 10000 are the most");
    CHECK(refusal({"--scenario", ""}) == "--scenario needs a value");
    CHECK(refusal({"--sweep", "aggregate"})
          == "--sweep: 'aggregate' is no NAME=VALUES, such as aggregate=90:100");
    CHECK(refusal({"--sweep", "aggregate=100:90"})
          == "--sweep: '100:90' begins above its end; write 90:100");
    for (const auto* no_range : {"a:b", "1:9:0", "1:2:3:4", ":5", "5:"})
      CHECK(refusal({"--sweep", std::string{"seed="} + no_range})
            == fmt::format("--sweep: '{}' is no range, such as 90:100 or 10:100:10", no_range));
    CHECK(refusal({"--sweep", "seed=0:10000"})
          == "--sweep: '0:10000' has 10001 values; 10000 are the most: take a larger step");
    CHECK(refusal({"--sweep", "seed=0:18446744073709551615"}).find("values; 10000 are the most")
          != std::string::npos);
    CHECK(parsed({"--sweep", "aggregate=1:3:18446744073709551615"}).sweep.values
          == std::vector<std::string>{"1"});
    CHECK(refusal({"--sweep", "seed=18446744073709551615:18446744073709551615"})
            .find("seed must be a whole number")
          != std::string::npos);
    CHECK(refusal({"--sweep", "policy=cancel,worst"}).find("--policy: no policy 'worst'") == 0);
    CHECK(refusal({"--compute", "exponential(0)"})
          == "--compute: mean must be above 0\n"
             "  exponential(0)\n"
             "              ^");
  }

  TEST_CASE("the help names every option, and every distribution") {
    auto text = parsed({"--help"}).answer;
    sim_command command;
    command_options all;
    add_options(all, command);
    for (const auto& option : all.options())
      CHECK(text.find("\n  --" + option.key + " ") != std::string::npos);
    for (const auto* name : {"--sweep", "--json", "--scenario", "lognormal(median, sigma)",
                             "chen2016-like", "Exit codes:"})
      CHECK(text.find(name) != std::string::npos);
  }

  TEST_CASE("the help names the exit codes that a simulation has, and no others") {
    auto text = parsed({"--help"}).answer;
    for (const auto* number : {"0", "1", "2", "5"})
      CHECK(text.find(std::string{"\n  "} + number + "      ") != std::string::npos);
    for (const auto* number : {"3", "4", "6", "128"})
      CHECK(text.find(std::string{"\n  "} + number) == std::string::npos);
    CHECK(sim_exit_codes_text(false).find("stalled") == std::string::npos);
  }
}

} // namespace sim_command_line_test
