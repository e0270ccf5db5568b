// SPDX-License-Identifier: Apache-2.0
// Goal: `troupe cluster` shows what a job would be part of, and how to mend it. Method: command
// lines, and environments and network cards of the test's own.
#include "tests/doctest.hpp"
#include "tools/cluster.hpp"

#include <nlohmann/json.hpp>

namespace cluster_test {

namespace {

using namespace troupe;

const machine_networks machine{
  .cards = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.7"}, {"ib0", "10.1.0.7"}},
  .addresses_of = [](const std::string& host) -> expected<std::vector<std::string>> {
    if (host == "h") return std::vector<std::string>{"127.0.1.1"}; // Debian's /etc/hosts
    return std::vector<std::string>{host == "localhost" ? "127.0.0.1" : host};
  }};
using variables = std::map<std::string, std::string>;

expected<cluster_command> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cluster");
  return parse_cluster_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal(const std::vector<const char*>& arguments) {
  auto command = parse(arguments);
  return command ? "accepted" : command.error().message;
}

cluster_report report(const cluster_options& options, const variables& environment = {}) {
  return report_cluster(options, fixed_environment(environment), machine);
}

} // namespace

TEST_SUITE("tools/cluster") {
  TEST_CASE("takes the options that all commands take") {
    auto command = parse({"--cluster", "chief=a:1", "--task=chief", "--cluster-file", "f.toml",
                          "--port-base", "9000", "--interface", "ib", "--json"});
    REQUIRE(command);
    CHECK(command->options.cluster == "chief=a:1");
    CHECK(command->options.task == "chief");
    CHECK(command->options.file == "f.toml");
    CHECK(command->options.port_base == 9000);
    CHECK(command->options.interface == "ib");
    auto pods = parse({"--kubernetes", "worker=app=w", "--kubernetes-api", "127.0.0.1:8002"});
    REQUIRE(pods);
    CHECK(pods->options.kubernetes == "worker=app=w");
    CHECK(pods->options.kubernetes_api == "127.0.0.1:8002");
    CHECK(command->json);
    CHECK(parse({"--help"})->answer.find("--cluster-file") != std::string::npos);
  }

  TEST_CASE("names what is wrong with a command line") {
    CHECK(refusal({"--clutser", "x"})
          == "unknown option '--clutser'; the nearest known one is '--cluster'");
    CHECK(refusal({"worker:1"}).starts_with("unexpected argument 'worker:1'"));
    CHECK(refusal({"--port-base", "0"}) == "--port-base must be a port from 1 to 65535, not '0'");
    CHECK(refusal({"--port-base", "66000"})
          == "--port-base must be a port from 1 to 65535, not '66000'");
    CHECK(refusal({"--task"}) == "--task needs a value");
    CHECK(refusal({"--kubernetes-api", "x"}) == "--kubernetes-api: 'x' has no port");
  }

  TEST_CASE("shows tasks, which of them we are, and the card that we listen on") {
    auto shown = report({.cluster = "chief=h:1;worker=h:22", .task = "worker:0", .interface = "ib"},
                        {{"TF_CONFIG", "{}"}});
    CHECK_FALSE(shown.has_problem());
    CHECK(cluster_text(shown)
          == "cluster    2 tasks, says --cluster\n"
             "ignored    TF_CONFIG\n"
             "  chief 0   h:1\n"
             "  worker 0  h:22  <- this one\n"
             "listens    on 10.1.0.7:22, card ib0\n");
  }

  TEST_CASE("a process alone listens nowhere") {
    auto shown = report({});
    CHECK(cluster_text(shown)
          == "cluster    one process: no option or environment variable names others\n");
    CHECK_FALSE(shown.card);
  }

  TEST_CASE("shows everything that is wrong, and a mended cluster to copy") {
    auto shown = report({.cluster = "chief=a;workers=b:1", .task = "worker:1"});
    CHECK(shown.has_problem());
    CHECK(cluster_text(shown)
          == "cluster    2 tasks, says --cluster\n"
             "  chief 0    a\n"
             "  workers 0  b:1\n"
             "wrong      'workers' is no task type; it is called 'worker'\n"
             "wrong      The `task_id` 1 exceeds the maximum id of worker: it has 1, counted "
             "from 0\n"
             "wrong      chief 0: 'a' has no port\n"
             "mended     --cluster \"chief=a:2222;worker=b:1\" --task worker:0\n");
  }

  TEST_CASE("the card is the one that was asked for, by an option or by NCCL's variable") {
    const cluster_options options{.cluster = "chief=h:1;worker=other:2", .task = "chief"};
    CHECK(report(options).card->value().name == "eth0");
    CHECK(report(options, {{"NCCL_SOCKET_IFNAME", "ib"}}).card->value().name == "ib0");
    auto wrong = report(options, {{"NCCL_SOCKET_IFNAME", "wlan"}});
    CHECK(wrong.has_problem());
    CHECK(cluster_text(wrong).find("listens    no network card that 'wlan' means; there are:")
          != std::string::npos);
  }

  TEST_CASE("a task that is dialled at 127.0.0.1 listens there") {
    auto shown = report({.cluster = "chief=127.0.0.1:1;worker=localhost:2", .task = "worker"});
    CHECK(shown.card->value().name == "lo");
    auto for_nccl = report({.cluster = "chief=localhost:1;worker=localhost:2", .task = "worker"},
                           {{"NCCL_SOCKET_IFNAME", "eth"}});
    CHECK(for_nccl.card->value().name == "lo");
    CHECK(for_nccl.card_note.empty());
  }

  TEST_CASE("a card where no other task reaches the process is shown with a note") {
    auto shown = report({.cluster = "chief=192.0.2.2:1;worker=other:2", .task = "chief"},
                        {{"NCCL_SOCKET_IFNAME", "lo"}});
    CHECK_FALSE(shown.has_problem());
    CHECK(cluster_text(shown).find("note       'lo' means card lo (127.0.0.1), but the others "
                                   "connect to 192.0.2.2:1: they will not\n")
          != std::string::npos);
    CHECK(nlohmann::json::parse(cluster_json(shown))["notes"].size() == 1);
  }

  TEST_CASE("tells programs the same") {
    auto shown = report({.cluster = "chief=h:1;worker=h:2", .task = "chief"},
                        {{"NCCL_SOCKET_IFNAME", "wlan"}});
    auto all = nlohmann::json::parse(cluster_json(shown));
    CHECK(all["own"] == 0);
    CHECK(all["tasks"].size() == 2);
    CHECK(all["card"].is_null());
    CHECK(all["problems"].size() == 1);
  }

  TEST_CASE("tells programs of what is no UTF-8, too") {
    auto shown = report({.cluster = "chief=\xff:1;worker=h:2", .task = "chief"},
                        {{"NCCL_SOCKET_IFNAME", "w\xff"}});
    auto all = nlohmann::json::parse(cluster_json(shown));
    CHECK(all["tasks"][0]["address"] == "\xef\xbf\xbd:1");
    CHECK(all["problems"].size() == 1);
  }
}

} // namespace cluster_test
