// SPDX-License-Identifier: Apache-2.0
// Goal: TF_CONFIG is read as TensorFlow reads it, and what is no TF_CONFIG gets one line that shows
// a right one. Method: texts, in an environment of the test's own.
#include "strategies/cluster/resolvers/tf_config_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <memory>

namespace tf_config_test {

namespace {

using namespace troupe;
using test::refusal;
using list = std::vector<std::string>;

constexpr auto plain = R"({"cluster": {"ps": ["ps0:1", "ps1:1"], "worker": ["w0:1", "w1:1"]},
  "task": {"type": "ps", "index": 1}, "rpc_layer": "grpc", "environment": "google"})";

tf_config_resolver of(const std::string& text, task_query own = {}) {
  return tf_config_resolver{fixed_environment({{"TF_CONFIG", text}}), std::move(own)};
}

std::string refused(const std::string& text) {
  return refusal([&] { return of(text).cluster_spec(); });
}

} // namespace

TEST_SUITE("strategies/cluster/tf_config_resolver") {
  TEST_CASE("reads cluster, task and the rest") {
    auto resolver = of(plain);
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"ps", list{"ps0:1", "ps1:1"}}, {"worker", list{"w0:1", "w1:1"}}});
    CHECK(resolver.task_type() == "ps");
    CHECK(resolver.task_id() == 1);
    CHECK(resolver.rpc_layer() == "grpc");
    CHECK(resolver.environment() == "google");
    CHECK(resolver.num_accelerators().empty());
  }

  TEST_CASE("the master is the address of the task asked for, else of the own one") {
    CHECK(of(plain).master() == "grpc://ps1:1");
    CHECK(of(plain).master({"worker", 1}) == "grpc://w1:1");
    CHECK(of(plain).master({"worker", 0, "tcp"}) == "tcp://w0:1");
    CHECK(of(plain, {"worker", 0, "udp"}).master() == "udp://w0:1");
    CHECK(of(plain, {"worker", 0}).master({.task_id = 1}) == "grpc://w1:1");
  }

  TEST_CASE("there is no master to dial without jobs, or for one job with one task") {
    CHECK(of("{}").master().empty());
    CHECK(of(R"({"cluster": {"worker": ["w0:1"]}, "task": {"type": "worker", "index": 0}})")
            .master()
            .empty());
    CHECK_FALSE(of(R"({"cluster": {"worker": ["w0:1", "w1:1"]},
                       "task": {"type": "worker", "index": 0}})")
                  .master()
                  .empty());
  }

  TEST_CASE("a session's master is given as it stands") {
    auto resolver = of(R"({"session_master": "sm:1", "rpc_layer": "grpc"})");
    CHECK(resolver.master() == "sm:1");
    CHECK(resolver.master({"worker", 3, "tcp"}) == "sm:1");
  }

  TEST_CASE("values that were set beat those of the variable") {
    auto resolver = of(plain, {"worker", 0, "tcp"});
    CHECK(resolver.task_type() == "worker");
    CHECK(resolver.task_id() == 0);
    CHECK(resolver.rpc_layer() == "tcp");
    resolver.set_task_type("ps");
    resolver.set_rpc_layer("grpc");
    CHECK(resolver.master() == "grpc://ps0:1");
    auto text = fixed_environment({{"TF_CONFIG", plain}});
    CHECK(tf_config_resolver{text, {}, "cloud"}.environment() == "cloud");
    CHECK(tf_config_resolver{text, {}, ""}.environment().empty());
  }

  TEST_CASE("nothing is remembered between two calls") {
    auto text = std::make_shared<std::string>(plain);
    tf_config_resolver resolver{
      [=](const std::string&) -> std::optional<std::string> { return *text; }};
    CHECK(resolver.task_id() == 1);
    *text = R"({"task": {"type": "worker", "index": 3}})";
    CHECK(resolver.task_id() == 3);
    CHECK_FALSE(resolver.cluster_spec());
  }

  TEST_CASE("a variable that is not set, or blank, is an empty object") {
    tf_config_resolver unset{fixed_environment({})};
    CHECK_FALSE(unset.cluster_spec());
    CHECK(unset.master().empty());
    CHECK_FALSE(unset.task_type());
    CHECK_FALSE(of(" \n").task_id());
  }

  TEST_CASE("types become texts and indices numbers") {
    auto resolver = of(R"({"task": {"type": 123456, "index": "1"}})");
    CHECK(resolver.task_type() == "123456");
    CHECK(resolver.task_id() == 1);
  }

  TEST_CASE("tasks may be given by index") {
    CHECK(of(R"({"cluster": {"worker": {"1": "w1:1", "3": "w3:1"}}})").cluster_spec()
          == cluster_spec{{"worker", task_addresses{{1, "w1:1"}, {3, "w3:1"}}}});
  }

  TEST_CASE("single quotes are read, refused, and shown as double ones") {
    CHECK(refused("{'cluster': {'worker': ['a:1']}, 'task': {'type': 'worker', 'index': 0}}")
          == "malformed: TF_CONFIG: it is not JSON: texts stand in double quotes, not in single "
             "ones; mended: TF_CONFIG='{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": "
             "\"worker\", \"index\": 0}}'");
  }

  TEST_CASE("a text that is no JSON at all is answered with an example of a cluster") {
    CHECK(refused("{cluster:{worker:[a:1]}}")
          == "malformed: TF_CONFIG: it is not JSON from letter 2 on, 'cluster:{worker:'; did the "
             "shell take the double quotes away?; mended: TF_CONFIG='{\"cluster\": {\"chief\": "
             "[\"host0:2222\"], \"worker\": [\"host1:2222\", \"host2:2222\"]}, \"task\": "
             "{\"type\": \"worker\", \"index\": 0}}'");
    CHECK(refused(R"({"cluster": )").find("it is not JSON from letter 13 on, ''")
          != std::string::npos);
    CHECK(refused("[1]").find("it must be an object, not a list") != std::string::npos);
    CHECK(refused(R"({"task": 1e777})").find("it holds a number that is too large")
          != std::string::npos);
  }

  TEST_CASE("a key that stands twice is no key") {
    CHECK(refused(R"({"cluster": {"worker": {"0": "a:1", "0": "b:1"}}})")
            .find("the key '0' stands twice in the same place")
          != std::string::npos);
    CHECK(refused(R"({"cluster": {"worker": {"0": "a:1", "00": "b:1"}}})")
            .find("'worker' has task 0 twice")
          != std::string::npos);
    CHECK(refused(R"({"cluster": {"ps": ["a:1"], "worker": ["a:2"], "ps": ["b:1"]}})")
            .find("the key 'ps' stands twice")
          != std::string::npos);
  }

  TEST_CASE("names everything that has the wrong kind") {
    auto finds = [](const std::string& text, const std::string& reason) {
      CAPTURE(refused(text));
      CHECK(refused(text).find(reason) != std::string::npos);
    };
    finds(R"({"cluster": ["a:1"]})", "'cluster' must be an object with a list of addresses for "
                                     "each job, not a list");
    finds(R"({"cluster": {"worker": "a:1,b:1"}})", "'worker' must be a list of addresses, not a "
                                                   "text");
    finds(R"({"cluster": {"worker": "a:1,b:1"}})", R"("worker": ["a:1", "b:1"])");
    finds(R"({"cluster": {"worker": [7]}})", "an address of 'worker' must be a text such as "
                                             "\"host:2222\", not a number");
    finds(R"({"cluster": {"worker": {"x": "a:1"}}})",
          "'worker' has a task 'x', but tasks are whole "
          "numbers from 0 on");
    finds(R"({"task": 3})", "'task' must be an object such as {\"type\": \"worker\", \"index\": "
                            "0}, not a number");
    finds(R"({"task": {"index": 1.5}})", "the task's 'index' must be a whole number, not 1.5");
    finds(R"({"task": {"index": 18446744073709551615}})",
          "the task's 'index' must be a whole number, not 18446744073709551615");
    finds(R"({"task": {"index": "one"}})", "the task's 'index' must be a whole number, not "
                                           "\"one\"");
    finds(R"({"task": {"type": null}})", "the task's 'type' must be a text, not null");
    finds(R"({"rpc_layer": 1})", "'rpc_layer' must be a text, not a number");
    finds(R"({"clusters": {}})", "the key 'clusters' must be 'cluster'");
  }
}

} // namespace tf_config_test
