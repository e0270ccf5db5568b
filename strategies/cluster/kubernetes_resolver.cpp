// SPDX-License-Identifier: Apache-2.0
// Lists of pods, as Kubernetes' API gives them.
#include "strategies/cluster/kubernetes_resolver.hpp"

#include "actors/observing/http.hpp"
#include "strategies/refuse.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::json;

/// What a task needs to know of its pod.
struct pod {
  std::string name;
  std::string phase;
  std::string host_ip;
};

// Everything that means something in a query has to be spelled in numbers: "job-name%3Dworker".
std::string query_text(const std::string& text) {
  std::string spelled;
  for (unsigned char letter : text) {
    spelled += std::isalnum(letter) != 0 || letter == '-' || letter == '.' || letter == '_'
                 ? std::string(1, static_cast<char>(letter))
                 : fmt::format("%{:02X}", letter);
  }
  return spelled;
}

std::string text_at(const json& object, const json::json_pointer& path) {
  if (!object.contains(path) || !object.at(path).is_string()) return {};
  return object.at(path).get<std::string>();
}

std::vector<pod> pods_of(const std::string& body, const std::string& path) {
  auto answer = json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array())
    refuse(errc::malformed, "Kubernetes' answer to {} is no list of pods", path);
  std::vector<pod> pods;
  for (const auto& item : answer["items"]) {
    pods.push_back({text_at(item, json::json_pointer{"/metadata/name"}),
                    text_at(item, json::json_pointer{"/status/phase"}),
                    text_at(item, json::json_pointer{"/status/hostIP"})});
  }
  std::ranges::sort(pods, {}, &pod::name);
  return pods;
}

std::string task_address(const pod& pod, uint16_t port) {
  if (pod.phase != "Running")
    refuse(errc::failed_precondition, "Pod \"{}\" is not running; phase: \"{}\"", pod.name,
           pod.phase);
  if (pod.host_ip.empty())
    refuse(errc::failed_precondition, "Pod \"{}\" does not say on which machine it runs", pod.name);
  return to_string(host_port{pod.host_ip, port});
}

} // namespace

kubernetes_fetch kubernetes_over_http(const host_port& where, const std::string& token_file,
                                      std::chrono::milliseconds deadline) {
  return [=](const std::string& path) -> expected<std::string> {
    std::string authorization;
    if (!token_file.empty()) {
      std::ifstream file{token_file};
      std::string token;
      if (!(file >> token))
        return fail(errc::not_found, fmt::format("cannot read a token from {}", token_file));
      authorization = fmt::format("Bearer {}", token);
    }
    return http_get(where.host, std::to_string(where.port), path, deadline, authorization);
  };
}

kubernetes_fetch kubernetes_at(const std::string& executable_location) {
  if (executable_location == "off_cluster") return kubernetes_over_http();
  if (executable_location == "within_cluster") {
    refuse(errc::unimplemented,
           "kubernetes_resolver: the API within a cluster speaks https only: run kubectl proxy "
           "beside this container and give kubernetes_over_http()");
  }
  refuse(errc::invalid_argument,
         "kubernetes_resolver: '{}' is no place: there are off_cluster and within_cluster",
         executable_location);
}

kubernetes_resolver::kubernetes_resolver(kubernetes_options options, kubernetes_fetch fetch)
  : cluster_resolver({.rpc_layer = options.rpc_layer}), options_(std::move(options)),
    fetch_(std::move(fetch)) {}

troupe::cluster_spec kubernetes_resolver::cluster_spec() const {
  auto where = options_.name_space.empty()
                 ? std::string{"/api/v1/pods"}
                 : fmt::format("/api/v1/namespaces/{}/pods", query_text(options_.name_space));
  troupe::cluster_spec cluster;
  for (const auto& [job, selectors] : options_.job_to_label_mapping) {
    std::vector<std::string> addresses;
    for (const auto& selector : selectors) {
      auto path = fmt::format("{}?labelSelector={}", where, query_text(selector));
      for (const auto& pod : pods_of(value_or_throw(fetch_(path)), path))
        addresses.push_back(task_address(pod, options_.tf_server_port));
    }
    cluster.set_job(job, addresses);
  }
  return cluster;
}

std::string kubernetes_resolver::master(const task_query& query) const {
  return address_of(query);
}

} // namespace troupe
