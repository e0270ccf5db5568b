// SPDX-License-Identifier: Apache-2.0
// Reads TF_CONFIG for a resolver, and for `resolve`.
#include "strategies/cluster/resolvers/tf_config_resolver.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/cluster_check.hpp"

namespace troupe {

namespace {

constexpr auto variable = "TF_CONFIG";

declared_cluster declared(const tf_config& config) {
  return {.source = variable,
          .syntax = cluster_syntax::tf_config,
          .spec = config.cluster,
          .task_type = config.task_type,
          .task_id = config.task_id};
}

} // namespace

tf_config_resolver::tf_config_resolver(environment_reader environment, task_query own,
                                       std::optional<std::string> own_environment)
  : cluster_resolver(std::move(own)), environment_(std::move(environment)),
    own_environment_(std::move(own_environment)) {}

troupe::cluster_spec tf_config_resolver::cluster_spec() const {
  return read().cluster;
}

std::string tf_config_resolver::master(const task_query& query) const {
  auto config = read();
  if (config.session_master) return *config.session_master;
  if (config.cluster.empty()
      || (config.cluster.jobs().size() == 1 && config.cluster.task_count() == 1))
    return {};
  return address_of(query);
}

std::optional<std::string> tf_config_resolver::task_type() const {
  return own().task_type ? own().task_type : read().task_type;
}

std::optional<uint64_t> tf_config_resolver::task_id() const {
  if (own().task_id) return own().task_id;
  auto id = read().task_id;
  if (!id) return std::nullopt;
  if (*id < 0)
    throw_failure(errc::malformed, "TF_CONFIG: task {} cannot be: they count from 0", *id);
  return static_cast<uint64_t>(*id);
}

std::optional<std::string> tf_config_resolver::rpc_layer() const {
  return own().rpc_layer ? own().rpc_layer : read().rpc_layer;
}

std::string tf_config_resolver::environment() const {
  return own_environment_ ? *own_environment_ : read().environment;
}

tf_config tf_config_resolver::read() const {
  std::vector<cluster_finding> findings;
  auto config = read_tf_config(environment_(variable).value_or(""), findings);
  if (findings.empty()) return config;
  auto example = example_text(check_cluster(declared(config)).mended);
  throw_failure(errc::malformed, "{}", problem_line(variable, findings, example));
}

declared_cluster declared_by_tf_config(const environment_reader& environment,
                                       std::vector<cluster_finding>& findings) {
  return declared(read_tf_config(environment(variable).value_or(""), findings));
}

} // namespace troupe
