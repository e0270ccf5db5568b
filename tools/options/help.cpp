// SPDX-License-Identifier: Apache-2.0
// The help texts.
#include "tools/options/help.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/options/option_table.hpp"
#include "tools/options/option_value.hpp"

#include <array>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr size_t line_width = 80;
constexpr size_t description_column = 26;

constexpr std::string_view train_introduction
  = "Trains a language model on the bytes of a text, by several replicas together.\n"
    "\n"
    "Usage: troupe train [OPTIONS]\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--config). The\n"
    "command line overrides the file, the file overrides the default.\n";

std::string option_entry(const train_option& option) {
  const auto value = plain_text(option, train_options{});
  const auto standard = value.empty() ? std::string{option.when_empty} : value;
  return help_entry(fmt::format("--{} {}", option.key, option.argument),
                    fmt::format("{} [{}]", option.help, standard));
}

} // namespace

std::string troupe_help() {
  return "Distributed training by actors.\n"
         "\n"
         "Usage: troupe COMMAND [OPTIONS]\n"
         "\n"
         "Commands:\n"
         "  train      train a language model on a text, by several replicas together\n"
         "  launch     start the tasks of a job on this machine, and end them together\n"
         "  top        show a running job in the terminal\n"
         "  sim        simulate what stragglers and backups cost\n"
         "  cluster    show the cluster that a job started here would be part of\n"
         "\n"
         "Options:\n"
         "  --help     this text; troupe COMMAND --help tells more about a command\n"
         "  --version  the version\n"
         "\n"
         + exit_codes_text();
}

std::string unknown_command(std::string_view command) {
  constexpr std::array<std::string_view, 7> known{"train",   "launch", "top",      "sim",
                                                  "cluster", "--help", "--version"};
  return fmt::format(
    "unknown command '{}'; the nearest known one is '{}' (troupe --help lists all)", command,
    nearest_name(command, known));
}

std::string train_help() {
  std::string text{train_introduction};
  std::string_view group;
  for (const auto& option : train_option_table()) {
    if (option.group != group) text += fmt::format("\n{}:\n", option.group);
    group = option.group;
    text += option_entry(option);
  }
  text += "\nA job of several processes (on the command line only):\n";
  text += cluster_options_help();
  text += server_options_help();
  text += "\nAnd:\n";
  text += help_entry("--config FILE", "TOML file with options");
  text
    += help_entry("--dump-config", "print all options as such a file, with where each came from");
  text += help_entry("--help", "this text");
  text += "\nSignals:\n";
  text
    += help_entry("SIGINT, SIGTERM", "end the run with the step under way; the second one at once");
  text += help_entry("SIGUSR1", "write the last messages of every actor to flight.txt in the run's "
                                "folder, as a stall or a crash does; the run goes on");
  return text + "\n" + exit_codes_text();
}

std::string launch_help() {
  std::string text
    = "Starts a program once for each task of a job, on this machine, and waits for\n"
      "all. Each line of output says which task wrote it. When one fails, the others\n"
      "are ended, and the first is named.\n"
      "\n"
      "Usage: troupe launch -n N [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
      "\n";
  text += help_entry("-n, --workers N", "how many workers");
  text += help_entry("--ps N", "parameter servers beside them [0]");
  text += help_entry("--chief", "a chief beside them [worker 0 is the chief]");
  text += help_entry(
    "--evaluator", "a process that evaluates checkpoints; the others go on without it if it fails");
  text
    += help_entry("--log-dir DIR", "what each task writes also goes to a file there: worker-2.log; "
                                   "what lay there is replaced [none]");
  text
    += help_entry("--grace SECONDS", "what tasks that are to end get until they are killed [10]");
  text += help_entry("--restart N",
                     "start a worker that fails again, or all tasks if the job cannot go "
                     "on without the one that failed: N times in all [0]");
  text += help_entry("--spare-workers",
                     "let the job go on if a worker fails that is not its chief; a "
                     "job of Troupe that may go on, as with backups, says so itself");
  text += help_entry("--spare-ps",
                     "let the job go on if a parameter server fails, as with troupe train "
                     "--replicate-owners 2; --restart starts it again like a worker");
  text += help_entry("--job-id ID", "tells jobs apart [drawn]");
  text += help_entry("--help", "this text");
  text += "\nIn a task's environment:\n";
  text += help_entry("TF_CONFIG",
                     "all tasks with their addresses on 127.0.0.1, and which one this is");
  text += help_entry("TROUPE_JOB_ID", "the same in all tasks");
  text += help_entry("TROUPE_RESTART_COUNT", "with --restart: how often all were started before");
  text += help_entry("TROUPE_LAUNCHER", "where the job may say that it goes on without some tasks");
  text += help_entry("OMP_NUM_THREADS", "the processors over the tasks, unless it is set");
  text += "\nSignals:\n";
  text += help_entry("SIGINT, SIGTERM, SIGHUP, SIGQUIT",
                     "passed on to all tasks and what they have started; a second one kills them");
  text += help_entry("SIGUSR1, SIGUSR2", "passed on to all tasks");
  return text
         + "\nExit codes:\n"
           "  0      all tasks finished\n"
           "  2      an argument is not as it must be, or a task could not be started\n"
           "  else   that of the task that failed first; 128+n if signal n ended it\n";
}

std::string top_help() {
  std::string text = "Shows a running job in the terminal; 'q' or Ctrl-C ends it.\n"
                     "\n"
                     "Usage: troupe top [OPTIONS] HOST:PORT\n"
                     "\n"
                     "HOST:PORT is what the job's --metrics-port serves.\n"
                     "\n";
  text += help_entry("--period SECONDS", "how often to look [1]");
  text += help_entry("--once", "print one look as plain text, as without a terminal");
  text += help_entry("--help", "this text");
  return text
         + "\n"
           "Exit codes:\n"
           "  0      ended by 'q' or Ctrl-C, or printed one look\n"
           "  1      what answers there is no job of troupe\n"
           "  2      an argument is not as it must be\n"
           "  4      nobody answers there, or nobody does any more: the job is over\n";
}

std::string cluster_help() {
  std::string text
    = "Shows the cluster that a job started here would be part of: its tasks, which of\n"
      "them this process is, who says so, and what is wrong with it.\n"
      "\n"
      "Usage: troupe cluster [OPTIONS]\n"
      "\n"
      "Asks, in this order: the options, --cluster-file, --kubernetes, TF_CONFIG,\n"
      "torchrun, Slurm, Open MPI.\n"
      "\n";
  text += cluster_options_help();
  text += help_entry("--json", "print the same for programs");
  text += help_entry("--help", "this text");
  return text
         + "\n"
           "Exit codes:\n"
           "  0      nothing is wrong with it; whether hosts answer, a job finds out\n"
           "  2      something is wrong; it is said what, and how to mend it\n";
}

std::string cluster_options_help() {
  auto text = help_entry("--cluster JOBS", "tasks and where they listen: \"chief=a:2222;ps=b:2222;"
                                           "worker=c:2222,d:2222\"; or how many a launcher "
                                           "has started: \"ps=1;worker=3\" [as it says]");
  text += help_entry("--task TYPE:INDEX", "which of them this process is: worker:1");
  text
    += help_entry("--cluster-file FILE", "TOML file with the tables [cluster] and [task] instead");
  text += help_entry("--kubernetes JOBS",
                     "ask Kubernetes which pods the tasks are, by label selectors: "
                     "\"chief=app=chief;worker=app=worker\"");
  text += help_entry("--kubernetes-api HOST:PORT", "a kubectl proxy to ask [that of the pod's own "
                                                   "cluster, else 127.0.0.1:8001]");
  text += help_entry("--port-base PORT",
                     "the first port where a launcher names hosts alone [8888]; the "
                     "port of all pods [8470]");
  text += help_entry("--interface CARDS",
                     "network card to listen on: eth,ib (beginnings of names), =eth0 "
                     "(exactly), ^docker (none of these) [NCCL_SOCKET_IFNAME]");
  return text;
}

std::string server_options_help() {
  auto text = help_entry("--job-id ID", "a name that other jobs do not have [the launcher's]");
  text += help_entry("--tls-ca FILE",
                     "speak TLS: certificate of the authority that has signed those of "
                     "all tasks");
  text += help_entry("--tls-certificate FILE", "this task's certificate");
  text += help_entry("--tls-key FILE", "its key");
  text += help_entry("--insecure-network", "listen beyond this machine even without TLS");
  text += help_entry("--start-deadline SECONDS", "how long tasks wait for each other [60]");
  text += help_entry("--window MIB",
                     "so much of what one other task has sent may wait here to be used; "
                     "more than what it sends in a step [a quarter of the memory, at "
                     "most 4096]");
  return text;
}

std::string help_entry(std::string_view name, std::string_view description) {
  auto left = fmt::format("  {:<{}}", name, description_column - 2);
  if (left.back() != ' ') left += fmt::format("\n{:{}}", "", description_column);
  return fmt::format("{}{}\n", left, wrapped(description, description_column, line_width));
}

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

} // namespace troupe
