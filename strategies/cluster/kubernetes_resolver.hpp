// SPDX-License-Identifier: Apache-2.0
// The cluster that Kubernetes' pods make up.
#pragma once

#include "actors/net/host_port.hpp"
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

/// Asks over plain HTTP: what `kubectl proxy` serves, or an API server that takes it.
/// @param where Host and port. @param token_file A file with a bearer token, read anew for each
/// question because tokens are replaced; empty: none. @param deadline For each answer.
/// Errors of what it returns: those of `http_get`; not_found if there is no such file.
[[nodiscard]] kubernetes_fetch kubernetes_over_http(const host_port& where = {"127.0.0.1", 8001},
                                                    const std::string& token_file = {},
                                                    std::chrono::milliseconds deadline
                                                    = std::chrono::seconds{10});

/// How to ask from where this process is: "off_cluster" is what `kubectl proxy` serves on port 8001
/// of this machine.
/// Errors: throws `failure`: unimplemented for "within_cluster", because the API server there
/// speaks https only (run `kubectl proxy` beside this container, or bring a function of your own);
/// invalid_argument for any other place.
[[nodiscard]] kubernetes_fetch kubernetes_at(const std::string& executable_location);

/// Which pods are which tasks. Source: TensorFlow, `KubernetesClusterResolver`.
struct kubernetes_options {
  /// For each job the label selectors of its pods: "job-name=worker".
  std::map<std::string, std::vector<std::string>> job_to_label_mapping{
    {"worker", {"job-name=tensorflow"}}};
  uint16_t tf_server_port = 8470; ///< Where all tasks listen.
  std::string name_space;         ///< Empty: pods of all namespaces.
  std::optional<std::string> rpc_layer = "grpc";
};

/// Asks for the pods of each job anew on every call: selectors in their order, the pods of each by
/// name. A task is at the address of the machine that its pod runs on.
/// Errors: throws `failure`: failed_precondition for a pod that does not run or has no machine yet;
/// malformed if the answer is no list of pods; those of the function that asks.
class kubernetes_resolver final : public cluster_resolver {
public:
  explicit kubernetes_resolver(kubernetes_options options = {},
                               kubernetes_fetch fetch = kubernetes_over_http());

  using cluster_resolver::master;

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

  /// Empty unless type and id are known.
  [[nodiscard]] std::string master(const task_query& query) const override;

private:
  kubernetes_options options_;
  kubernetes_fetch fetch_;
};

} // namespace troupe
