// SPDX-License-Identifier: Apache-2.0
// Reads the lists of pods that Kubernetes' API gives.
#include "strategies/cluster/resolvers/kubernetes_resolver.hpp"

#include "actors/observing/http_client.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/cluster/launch_slots.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::json;

/// The fields of a pod that a task needs.
struct pod {
  std::string name;
  std::string phase;
  std::string host_ip;
  std::string pod_ip;
  bool is_leaving = false; ///< It was told to end.

  /// One that has ended lies beside the one that has taken its place.
  [[nodiscard]] bool is_over() const {
    return is_leaving || phase == "Failed" || phase == "Succeeded";
  }
};

// Spells signs that mean something in a query by their numbers: "job-name%3Dworker".
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
  if (!object.is_object() || !object.contains(path) || !object.at(path).is_string()) return {};
  return object.at(path).get<std::string>();
}

std::vector<pod> pods_of(const std::string& body, const std::string& path) {
  auto answer = json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array())
    throw_failure(errc::malformed, "Kubernetes' answer to {} is no list of pods", path);
  std::vector<pod> pods;
  for (const auto& item : answer["items"]) {
    pods.push_back({text_at(item, json::json_pointer{"/metadata/name"}),
                    text_at(item, json::json_pointer{"/status/phase"}),
                    text_at(item, json::json_pointer{"/status/hostIP"}),
                    text_at(item, json::json_pointer{"/status/podIP"}),
                    !text_at(item, json::json_pointer{"/metadata/deletionTimestamp"}).empty()});
  }
  std::ranges::sort(pods, {}, &pod::name);
  return pods;
}

// The error with which Kubernetes refused a request, and how its administrator can mend it.
error refusal_of(const http_reply& reply, const kubernetes_api& api, const std::string& path) {
  constexpr unsigned unauthorized = 401;
  constexpr unsigned forbidden = 403;
  auto answer = json::parse(reply.body, nullptr, false);
  auto message = text_at(answer, json::json_pointer{"/message"});
  auto line = fmt::format("Kubernetes at {} answers {} with status {}{}{}", to_string(api.where),
                          path, reply.status, message.empty() ? "" : ": ", message);
  if (reply.status == unauthorized)
    return {errc::failed_precondition,
            api.token_file.empty()
              ? line + "; give a token_file"
              : fmt::format("{}; it does not take the token of {}", line, api.token_file)};
  if (reply.status == forbidden)
    return {errc::failed_precondition,
            line
              + "; give the service account a Role with the verb \"list\" for \"pods\" (of all "
                "namespaces: a ClusterRole; of one: set name_space)"};
  return {errc::not_found, line};
}

std::string task_address(const pod& pod, const kubernetes_options& options) {
  if (pod.phase != "Running")
    throw_failure(errc::failed_precondition, "Pod \"{}\" is not running; phase: \"{}\"", pod.name,
                  pod.phase);
  const auto& address = options.at_pods ? pod.pod_ip : pod.host_ip;
  if (address.empty())
    throw_failure(errc::failed_precondition, "Pod \"{}\" does not say {}", pod.name,
                  options.at_pods ? "what its address is" : "on which machine it runs");
  return to_string(host_port{address, options.tf_server_port});
}

// The namespace of this pod's service account.
std::string own_namespace() {
  std::ifstream file{fmt::format("{}/namespace", service_account_folder)};
  std::string name;
  file >> name;
  return name;
}

kubernetes_fetch fetch_of(const cluster_options& options, const environment_reader& environment) {
  if (!options.kubernetes_api.empty())
    return kubernetes_over_http({.where = value_or_throw(parse_host_port(options.kubernetes_api))});
  if (environment("KUBERNETES_SERVICE_HOST"))
    return kubernetes_over_http(kubernetes_within_cluster(environment));
  return kubernetes_over_http();
}

void check_counts(const cluster_options& options, const declared_cluster& declared,
                  std::vector<cluster_finding>& findings) {
  for (const auto& [job, count] : counted_by_flags(options).value_or(job_counts{})) {
    auto pods = declared.spec.task_count(job);
    if (pods != count)
      findings.push_back({cluster_finding::severity::problem,
                          {errc::failed_precondition,
                           fmt::format("{} pods are '{}', not {} as --cluster says; start this "
                                       "again when all are there",
                                       pods, job, count)}});
  }
}

} // namespace

kubernetes_fetch kubernetes_over_http(kubernetes_api api) {
  return [api = std::move(api)](const std::string& path) -> expected<std::string> {
    http_question question{.server = api.where,
                           .path = path,
                           .authority = api.authority_file,
                           .deadline = api.deadline,
                           .answer_bytes_max = api.answer_bytes_max};
    if (!api.token_file.empty()) {
      std::ifstream file{api.token_file};
      std::string token;
      if (!(file >> token))
        return fail(errc::not_found, fmt::format("cannot read a token from {}", api.token_file));
      question.authorization = fmt::format("Bearer {}", token);
    }
    auto reply = http_ask(question);
    if (!reply) return tl::unexpected<error>(reply.error());
    if (reply->status == 200) return std::move(reply->body);
    return tl::unexpected<error>(refusal_of(*reply, api, path));
  };
}

kubernetes_api kubernetes_within_cluster(const environment_reader& environment,
                                         const std::string& account_folder) {
  auto host = environment("KUBERNETES_SERVICE_HOST");
  if (!host || host->empty())
    throw_failure(
      errc::failed_precondition,
      "kubernetes_resolver: KUBERNETES_SERVICE_HOST is not set, so this is no container of "
      "Kubernetes; ask off_cluster");
  auto port_text = environment("KUBERNETES_SERVICE_PORT").value_or("443");
  auto port = parse_count(port_text, UINT16_MAX);
  if (!port || *port == 0)
    throw_failure(errc::invalid_argument, "KUBERNETES_SERVICE_PORT is '{}', which is no port",
                  port_text);
  return {.where = {*host, static_cast<uint16_t>(*port)},
          .token_file = account_folder + "/token",
          .authority_file = account_folder + "/ca.crt"};
}

kubernetes_fetch kubernetes_at(const std::string& executable_location) {
  if (executable_location == "off_cluster") return kubernetes_over_http();
  if (executable_location == "within_cluster")
    return kubernetes_over_http(kubernetes_within_cluster(process_environment()));
  throw_failure(errc::invalid_argument,
                "kubernetes_resolver: '{}' is no place: there are off_cluster and within_cluster",
                executable_location);
}

kubernetes_resolver::kubernetes_resolver(kubernetes_options options, kubernetes_fetch fetch)
  : cluster_resolver({.rpc_layer = options.rpc_layer}), options_(std::move(options)),
    fetch_(std::move(fetch)) {}

/// A job, and the pods of its tasks.
struct kubernetes_resolver::job_pods {
  std::string job;
  std::vector<pod> pods;
};

std::vector<kubernetes_resolver::job_pods> kubernetes_resolver::pods_by_job() const {
  auto pods_path = options_.name_space.empty()
                     ? std::string{"/api/v1/pods"}
                     : fmt::format("/api/v1/namespaces/{}/pods", query_text(options_.name_space));
  std::vector<job_pods> jobs;
  for (const auto& [job, selectors] : options_.job_to_label_mapping) {
    auto& own = jobs.emplace_back(job_pods{job, {}});
    for (const auto& selector : selectors) {
      auto path = fmt::format("{}?labelSelector={}", pods_path, query_text(selector));
      std::ranges::move(pods_of(value_or_throw(fetch_(path)), path), std::back_inserter(own.pods));
    }
    if (options_.at_pods) std::erase_if(own.pods, [](const pod& pod) { return pod.is_over(); });
  }
  return jobs;
}

troupe::cluster_spec kubernetes_resolver::cluster_spec() const {
  troupe::cluster_spec cluster;
  for (const auto& [job, pods] : pods_by_job()) {
    auto addresses = mapped(pods, [this](const auto& pod) { return task_address(pod, options_); });
    cluster.set_job(job, addresses);
  }
  return cluster;
}

task_query kubernetes_resolver::found_task() const {
  if (options_.own_pod.empty()) return {};
  for (const auto& [job, pods] : pods_by_job()) {
    auto own = std::ranges::find(pods, options_.own_pod, &pod::name);
    if (own != pods.end())
      return {.task_type = job, .task_id = static_cast<uint64_t>(own - pods.begin())};
  }
  return {};
}

declared_cluster declared_by_kubernetes(const cluster_options& options,
                                        const environment_reader& environment,
                                        std::vector<cluster_finding>& findings) {
  kubernetes_options pods{.job_to_label_mapping = selectors_by_flags(options, findings),
                          .at_pods = true,
                          .own_pod = environment("HOSTNAME").value_or("")};
  declared_cluster declared{.source = "Kubernetes"};
  if (!findings.empty()) return declared;
  pods.tf_server_port = options.port_base.value_or(pods.tf_server_port);
  if (options.kubernetes_api.empty() && environment("KUBERNETES_SERVICE_HOST"))
    pods.name_space = own_namespace();
  try {
    kubernetes_resolver resolver{pods, fetch_of(options, environment)};
    declared = declared_by_launcher("Kubernetes", resolver, findings);
  } catch (const failure& failed) {
    findings.push_back({cluster_finding::severity::problem, failed.reason()});
  }
  if (findings.empty()) check_counts(options, declared, findings);
  return declared;
}

} // namespace troupe
