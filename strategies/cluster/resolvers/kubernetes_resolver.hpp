// SPDX-License-Identifier: Apache-2.0
// The cluster that Kubernetes' pods make up.
#pragma once

#include "actors/net/host_port.hpp"
#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/environment.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Asks Kubernetes' API for a path, such as "/api/v1/pods". @returns The body of its answer.
using kubernetes_fetch = std::function<expected<std::string>(const std::string& path)>;

/// Where the API is, and the proof of the asker's identity. Files are read anew for each question,
/// because tokens are replaced every hour.
struct kubernetes_api {
  host_port where{"127.0.0.1", 8001};
  std::string token_file{}; ///< With a bearer token; empty: none.
  /// Certificate of the authority that the server's is from; empty: plain HTTP.
  std::string authority_file{};
  std::chrono::milliseconds deadline = std::chrono::seconds{10}; ///< For each answer.
  uint64_t answer_bytes_max = uint64_t{64} << 20;
};

/// Asks an API server over https, or over plain HTTP if it has no authority: by default what
/// `kubectl proxy` serves on this machine.
/// Errors of what it returns: failed_precondition if the server does not know the token, or the
/// token's account may not list pods, and how to permit that; not_found for another status, or if
/// there is no token; those of `http_ask`.
[[nodiscard]] kubernetes_fetch kubernetes_over_http(kubernetes_api api = {});

/// Where Kubernetes puts what a container needs to ask the API: `token`, `ca.crt`.
inline constexpr const char* service_account_folder
  = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server of the cluster that this container runs in, asked as its service account: over
/// https, at KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
/// Errors: throws `failure` with failed_precondition if these are not set, as outside of a pod;
/// invalid_argument for a port that is none.
[[nodiscard]] kubernetes_api kubernetes_within_cluster(const environment_reader& environment,
                                                       const std::string& account_folder
                                                       = service_account_folder);

/// How to ask from where this process is: "off_cluster" is what `kubectl proxy` serves on port 8001
/// of this machine, "within_cluster" the API server of the pod's own cluster.
/// Errors: throws `failure`: as `kubernetes_within_cluster`; invalid_argument for any other place.
[[nodiscard]] kubernetes_fetch kubernetes_at(const std::string& executable_location);

/// Which pods are which tasks. Source: TensorFlow, `KubernetesClusterResolver`.
struct kubernetes_options {
  /// For each job the label selectors of its pods: "job-name=worker".
  std::map<std::string, std::vector<std::string>> job_to_label_mapping{
    {"worker", {"job-name=tensorflow"}}};
  uint16_t tf_server_port = 8470; ///< Where all tasks listen.
  std::string name_space;         ///< Empty: pods of all namespaces.
  std::optional<std::string> rpc_layer = "grpc";
  /// Whether a task is at its pod's own address, not at that of the machine that it runs on.
  bool at_pods = false;
  std::string own_pod{}; ///< The name of this process's pod; empty: it is told which task it is.
};

/// Asks for the pods of each job anew on every call: selectors in their order, the pods of each by
/// name.
/// Errors: throws `failure`: failed_precondition for a pod that does not run or has no address yet;
/// malformed if the answer is no list of pods; those of the function that asks.
class kubernetes_resolver final : public cluster_resolver {
public:
  explicit kubernetes_resolver(kubernetes_options options = {},
                               kubernetes_fetch fetch = kubernetes_over_http());

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

private:
  struct job_pods;

  /// That of its own pod.
  [[nodiscard]] task_query found_task() const override;
  [[nodiscard]] std::vector<job_pods> pods_by_job() const;

  kubernetes_options options_;
  kubernetes_fetch fetch_;
};

/// The cluster of the pods that `options.kubernetes` selects. Asks `options.kubernetes_api`, else
/// the API server of this pod's cluster about its own namespace, else `kubectl proxy` on this
/// machine about all.
/// Tasks are at their pods, at port `options.port_base`, else 8470; this process is the one with
/// the pod that HOSTNAME names.
/// @param findings Gets what is wrong, and a problem if there are other numbers of pods than
/// `options.cluster` counts.
[[nodiscard]] declared_cluster declared_by_kubernetes(const cluster_options& options,
                                                      const environment_reader& environment,
                                                      std::vector<cluster_finding>& findings);

} // namespace troupe
