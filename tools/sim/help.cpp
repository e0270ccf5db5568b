// SPDX-License-Identifier: Apache-2.0
// The help texts of simulations.
#include "tools/sim/help.hpp"

#include "simulation/distribution_family.hpp"
#include "simulation/distribution_preset.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/advise.hpp"
#include "tools/sim/options.hpp"

#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

constexpr std::string_view sim_introduction
  = "Simulates training with the actors of a real job in virtual time: what do\n"
    "stragglers cost, and what do backups save?\n"
    "\n"
    "Usage: troupe sim [OPTIONS]\n"
    "       troupe sim advise [OPTIONS]          how many backups, in words\n"
    "       troupe sim replay RUN_DIR [OPTIONS]  a run of troupe train, with a change\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--scenario).\n"
    "\n";

// The distributions and presets by name.
std::string distributions_text() {
  std::string text = "\nDistributions (seconds), and presets:\n";
  for (const auto& family : distribution_families())
    text += fmt::format("  {}\n", signature(family));
  text += "  a + b   a * b   mixture(0.9: a, 0.1: b)   trace(FILE)\n"
          "  persistent(a)   common(a)   correlated(rho, a)   on_off(enter, leave, factor)\n"
          "  pause(every, length)   slow(3/50, 2.4)   slow({7, 12}, 2.4)\n";
  for (const auto& preset : distribution_presets())
    text += help_entry(preset.name, preset.expression);
  return text;
}

} // namespace

std::string sim_help() {
  std::string text{sim_introduction};
  for (const auto& option : sim_option_table()) {
    auto value = value_text(option, sim_options{});
    text
      += help_entry(fmt::format("--{} {}", option.key, option.argument),
                    fmt::format("{} [{}]", option.help, value.empty() ? option.when_empty : value));
  }
  text
    += help_entry("--sweep NAME=VALUES", "a row for each value of an option: aggregate=90:100, "
                                         "replicas=10:100:10, policy=cancel,latest_token; all rows "
                                         "are of the same draws and compared in pairs");
  text += help_entry("--json FILE", "write the report to a file; to standard output for -");
  text += help_entry("--plots DIR",
                     "draw what was found as SVG files, and leave the numbers beside them "
                     "as CSV files; made by gnuplot, if it is there");
  text += help_entry("--iterations CURVE",
                     "steps that the model needs if each averages N gradients, for "
                     "the time to converge: N^-0.8, 9000 + 5e5/N, or measured: "
                     "'50: 13000, 90: 9500' [1/N]");
  text += help_entry("--scenario FILE", "TOML file with options");
  text += help_entry("--help", "this text");
  return text + distributions_text() + "\n" + exit_codes_text();
}

std::string advise_help() {
  std::string text
    = "Looks for the number of backups and the policy that bring a model to its goal at\n"
      "the lowest cost, and says in words what they save and cost; also if it is best\n"
      "to have none.\n"
      "\n"
      "Usage: troupe sim advise --replicas N [OPTIONS]   how many of them as backups\n"
      "       troupe sim advise --aggregate N [OPTIONS]  how many to buy beside them\n"
      "\n";
  text += help_entry("--policy NAME", fmt::format("ask about this one only [{}]",
                                                  names_of(policies_with_backups(), " and ")));
  text
    += help_entry("--iterations CURVE", "steps to the goal by the gradients of each step, N [1/N]");
  text += help_entry("--plots DIR", "draw what was tried under the best policy");
  text += help_entry("--json FILE", "everything that was tried; to standard output for -");
  return text
         + "\nAll other options are those of troupe sim, but for --sweep. The cost is the time\n"
           "of all replicas: step time * steps to the goal * replicas.\n\n"
         + exit_codes_text();
}

std::string replay_help() {
  std::string text
    = "Replays a run of troupe train in virtual time, from its ledger: once as it was,\n"
      "to see how well that works, and once with a change, to see what it would make.\n"
      "\n"
      "Usage: troupe sim replay RUN_DIR [OPTIONS]\n"
      "\n";
  text += help_entry("--replicas N",
                     "how many replicas; those that are added take as long as a typical "
                     "one [as it was]");
  text += help_entry("--aggregate N", "gradients that a step needs [as it was]");
  text += help_entry(
    "--policy NAME",
    fmt::format("{} [as it was]", names_of(policies_that(&policy_traits::is_synchronous))));
  text += help_entry("--repair N,N,...", "replicas that take as long as a typical one [none]");
  text += help_entry("--json FILE", "write the report to a file; to standard output for -");
  text += help_entry("--help", "this text");
  return text + "\n" + exit_codes_text();
}

} // namespace troupe
