// SPDX-License-Identifier: Apache-2.0
// Goal: pods become tasks, and a question to Kubernetes is asked as its API wants it. Method:
// answers of the test's own; and a server on this machine that notes what it is asked.
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/resolvers/kubernetes_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace kubernetes_resolver_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::refusal;
using list = std::vector<std::string>;

std::string pod(const std::string& name, const std::string& host,
                const std::string& phase = "Running") {
  return fmt::format(
    R"({{"metadata": {{"name": "{}"}}, "status": {{"phase": "{}", "hostIP": "{}", "podIP": "{}"}}}})",
    name, phase, host, host.empty() ? "" : host + "7");
}

std::string pods(const list& all) {
  std::string text;
  for (const auto& one : all)
    text += (text.empty() ? "" : ", ") + one;
  return fmt::format(R"({{"kind": "PodList", "items": [{}]}})", text);
}

// Answers each path with a body of its own, as Kubernetes would.
kubernetes_fetch answers(std::map<std::string, std::string> bodies) {
  return [bodies = std::move(bodies)](const std::string& path) -> expected<std::string> {
    auto found = bodies.find(path);
    if (found == bodies.end()) return fail(errc::not_found, fmt::format("nothing at {}", path));
    return found->second;
  };
}

constexpr auto standard_path = "/api/v1/pods?labelSelector=job-name%3Dtensorflow";

std::string refused(const std::string& body) {
  kubernetes_resolver resolver{{}, answers({{standard_path, body}})};
  return refusal([&] { return resolver.cluster_spec(); });
}

/// Answers requests on a port of its own, all alike, and remembers them.
class stub_server {
public:
  explicit stub_server(std::string answer) : answer_(std::move(answer)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&here), size) == 0);
    REQUIRE(listen(socket_, 1) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size) == 0);
    port_ = ntohs(here.sin_port);
    thread_ = std::thread{[this] { serve(); }};
  }

  stub_server(const stub_server&) = delete;
  stub_server& operator=(const stub_server&) = delete;

  ~stub_server() {
    static_cast<void>(asked());
    close(socket_);
  }

  [[nodiscard]] host_port where() const { return {"127.0.0.1", port_}; }

  /// The request, once it has been answered.
  [[nodiscard]] std::string asked() {
    if (thread_.joinable()) {
      shutdown(socket_, SHUT_RDWR); // no client asks any more
      thread_.join();
    }
    return asked_;
  }

private:
  void serve() {
    for (auto client = accept(socket_, nullptr, nullptr); client >= 0;
         client = accept(socket_, nullptr, nullptr)) {
      std::string request;
      char block[1024];
      ssize_t count = 0;
      while (request.find("\r\n\r\n") == std::string::npos
             && (count = recv(client, block, sizeof block, 0)) > 0)
        request.append(block, static_cast<size_t>(count));
      send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      close(client);
      asked_ += request;
    }
  }

  int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  uint16_t port_ = 0;
  std::string answer_;
  std::string asked_;
  std::thread thread_;
};

std::string ok(const std::string& body) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
}

} // namespace

TEST_SUITE("strategies/cluster/resolvers/kubernetes_resolver") {
  TEST_CASE("takes the machines of running pods, by the pods' names, on port 8470") {
    kubernetes_resolver resolver{
      {}, answers({{standard_path, pods({pod("b", "10.0.0.2"), pod("a", "10.0.0.1")})}})};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"worker", list{"10.0.0.1:8470", "10.0.0.2:8470"}}});
    CHECK(resolver.num_accelerators().empty());
  }

  TEST_CASE("asks for each selector of each job, in this order, within a namespace") {
    kubernetes_resolver resolver{
      {.job_to_label_mapping = {{"ps", {"app=ps"}}, {"worker", {"app in (w)", "app=v"}}},
       .tf_server_port = 2222,
       .name_space = "train"},
      answers(
        {{"/api/v1/namespaces/train/pods?labelSelector=app%3Dps", pods({pod("p", "1.1.1.1")})},
         {"/api/v1/namespaces/train/pods?labelSelector=app%20in%20%28w%29",
          pods({pod("z", "2.2.2.2")})},
         {"/api/v1/namespaces/train/pods?labelSelector=app%3Dv", pods({pod("a", "fd00::3")})}})};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"ps", list{"1.1.1.1:2222"}},
                          {"worker", list{"2.2.2.2:2222", "[fd00::3]:2222"}}});
  }

  TEST_CASE("has a master only if type and id are given") {
    kubernetes_resolver resolver{{}, answers({{standard_path, pods({pod("a", "10.0.0.1")})}})};
    CHECK(resolver.master().empty());
    CHECK(resolver.master({.task_type = "worker"}).empty());
    CHECK(resolver.master({"worker", 0}) == "grpc://10.0.0.1:8470");
    CHECK(resolver.master({"worker", 0, "tcp"}) == "tcp://10.0.0.1:8470");
    resolver.set_task_type("worker");
    resolver.set_task_id(0);
    CHECK(resolver.master() == "grpc://10.0.0.1:8470");
  }

  TEST_CASE("names a pod that does not run yet") {
    CHECK(refused(pods({pod("a", "10.0.0.1"), pod("b", "", "Pending")}))
          == "failed_precondition: Pod \"b\" is not running; phase: \"Pending\"");
    CHECK(refused(pods({pod("b", "")}))
          == "failed_precondition: Pod \"b\" does not say on which machine it runs");
  }

  TEST_CASE("refuses what is no list of pods") {
    for (const auto* body : {"", "[]", "{}", R"({"items": 3})", "<html>"})
      CHECK(
        refused(body)
        == fmt::format("malformed: Kubernetes' answer to {} is no list of pods", standard_path));
    CHECK(refused(R"({"items": [7]})")
          == "failed_precondition: Pod \"\" is not running; phase: \"\"");
    kubernetes_resolver silent{{}, answers({})};
    CHECK(refusal([&] { return silent.cluster_spec(); }).starts_with("not_found: nothing at "));
  }

  TEST_CASE("asks over HTTP, with the token of a file") {
    test::scratch_folder folder;
    auto token = (folder / "token").string();
    std::ofstream{token} << "secret\n";
    stub_server server{ok(pods({pod("a", "10.0.0.1")}))};
    kubernetes_resolver resolver{{}, kubernetes_over_http({server.where(), token})};
    CHECK(resolver.cluster_spec() == cluster_spec{{"worker", list{"10.0.0.1:8470"}}});
    auto asked = server.asked();
    CHECK(asked.starts_with(fmt::format("GET {} HTTP/1.1\r\n", standard_path)));
    CHECK(asked.find("Authorization: Bearer secret\r\n") != std::string::npos);
  }

  TEST_CASE("tells of a refused account, a missing answer and a missing token") {
    stub_server server{"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"};
    auto forbidden = kubernetes_over_http({server.where()})("/api/v1/pods");
    REQUIRE_FALSE(forbidden);
    CHECK(forbidden.error().message.find("answers /api/v1/pods with status 403; give the service")
          != std::string::npos);
    CHECK(server.asked().find("Authorization") == std::string::npos);
    auto late = kubernetes_over_http({stub_server{""}.where(), "none"})("/api/v1/pods");
    CHECK(late.error() == error{errc::not_found, "cannot read a token from none"});
  }

  TEST_CASE("pods may be dialed themselves, and know by their names which tasks they are") {
    auto bodies = answers({{standard_path, pods({pod("b", "10.0.0.2"), pod("a", "10.0.0.1")})}});
    kubernetes_resolver resolver{{.at_pods = true, .own_pod = "b"}, bodies};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"worker", list{"10.0.0.17:8470", "10.0.0.27:8470"}}});
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 1);
    CHECK_FALSE(kubernetes_resolver{{.own_pod = "z"}, bodies}.task_type());
    CHECK_FALSE(kubernetes_resolver{{}, bodies}.task_id());
    auto replaced
      = answers({{standard_path, pods({pod("a", "10.0.0.1", "Failed"), pod("b", "10.0.0.2")})}});
    CHECK(kubernetes_resolver{{.at_pods = true}, replaced}.cluster_spec()
          == cluster_spec{{"worker", list{"10.0.0.27:8470"}}});
    kubernetes_resolver early{{.at_pods = true}, answers({{standard_path, pods({pod("a", "")})}})};
    CHECK(refusal([&] { return early.cluster_spec(); })
          == "failed_precondition: Pod \"a\" does not say what its address is");
  }

  TEST_CASE("an option asks Kubernetes for the cluster, and the pod's name says which task it is") {
    stub_server server{ok(pods({pod("troupe-1", "10.0.0.2"), pod("troupe-0", "10.0.0.1")}))};
    const cluster_options options{.kubernetes = "worker=app in (a,b)",
                                  .kubernetes_api = to_string(server.where()),
                                  .port_base = 2222};
    auto environment = fixed_environment({{"HOSTNAME", "troupe-1"}, {"RANK", "0"}});
    auto cluster = resolve(options, environment);
    CHECK(cluster.source == "Kubernetes");
    CHECK_FALSE(cluster.has_problem());
    CHECK(cluster.tasks
          == std::vector<cluster_task>{{"worker", 0, "10.0.0.17:2222"},
                                       {"worker", 1, "10.0.0.27:2222"}});
    CHECK(cluster.own == 1);
    auto told = options;
    told.task = "worker:0";
    CHECK(resolve(told, environment).own == 0);
    CHECK(resolve(options, fixed_environment({})).problem_line()
          == "Kubernetes: it does not say which of the tasks this process is");
    CHECK(server.asked().starts_with(
      "GET /api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29 HTTP/1.1\r\n"));
  }

  TEST_CASE("pods may be counted, so that none begins without the others") {
    stub_server server{ok(pods({pod("a", "10.0.0.1")}))};
    cluster_options options{.cluster = "worker=2",
                            .task = "worker:0",
                            .kubernetes = "worker=app=w",
                            .kubernetes_api = to_string(server.where())};
    auto few = resolve(options, fixed_environment({}));
    CHECK(few.problem_line()
          == "Kubernetes: 1 pods are 'worker', not 2 as --cluster says; start this again when all "
             "are there");
    options.cluster = "worker=1";
    CHECK_FALSE(resolve(options, fixed_environment({})).has_problem());
  }

  TEST_CASE("an option that selects no pods is refused, and so is an API that does not answer") {
    auto line = [](const std::string& selectors) {
      return resolve({.kubernetes = selectors, .kubernetes_api = "127.0.0.1:1"},
                     fixed_environment({}))
        .problem_line();
    };
    CHECK(line("worker")
          == "Kubernetes: 'worker' is not JOB=SELECTOR, as in worker=app=troupe-worker");
    CHECK(line("ps=a=1;ps=a=2")
          == "Kubernetes: 'ps' stands twice; one selector can mean several: worker=app in (a,b)");
    CHECK(line(";") == "Kubernetes: it names no job");
    CHECK(line("worker=a=1").starts_with("Kubernetes: 127.0.0.1:1: "));
    CHECK(resolve({.kubernetes = "ps=a", .kubernetes_api = "nonsense"}, fixed_environment({}))
            .problem_line()
          == "Kubernetes: 'nonsense' has no port");
  }

  TEST_CASE("says where it can be asked from") {
    CHECK(kubernetes_at("off_cluster"));
    CHECK(refusal([] { return kubernetes_at("mars"); })
          == "invalid_argument: kubernetes_resolver: 'mars' is no place: there are off_cluster and "
             "within_cluster");
  }
}

} // namespace kubernetes_resolver_test
