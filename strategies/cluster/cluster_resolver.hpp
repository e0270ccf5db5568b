// SPDX-License-Identifier: Apache-2.0
// Resolvers: each knows the cluster that this process is a task of.
#pragma once

#include "strategies/cluster/cluster_spec.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace troupe {

/// Which task a question is about, and how its address is to be spelled. Each field that is not set
/// stands for the resolver's answer about its own task.
struct task_query {
  std::optional<std::string> task_type;
  std::optional<uint64_t> task_id;
  std::optional<std::string> rpc_layer;
};

/// Each launcher tells a process in its own way which tasks there are, and which it is. A resolver
/// reads one of these ways; nothing is remembered between two calls, so a job that has changed is
/// seen. Source: TensorFlow, `tf.distribute.cluster_resolver.ClusterResolver`.
/// Errors: all functions throw `failure` if what they read is not as it must be.
class cluster_resolver {
public:
  virtual ~cluster_resolver() = default;

  /// All tasks; no job if there is no cluster.
  [[nodiscard]] virtual troupe::cluster_spec cluster_spec() const = 0;

  /// The address to dial in order to talk to a task, with the rpc layer before it if there is
  /// one: "grpc://host:port"; empty if the resolver knows none, or neither the query nor the
  /// resolver says type and id.
  [[nodiscard]] virtual std::string master(const task_query& query) const {
    return address_of(query);
  }

  /// The address of the own task.
  [[nodiscard]] std::string master() const { return master(task_query{}); }

  /// Accelerators of a task by kind, such as {"GPU", 2}; empty where they are not known.
  [[nodiscard]] virtual std::map<std::string, uint64_t>
  num_accelerators(const task_query& query) const;

  /// The accelerators of the own task.
  [[nodiscard]] std::map<std::string, uint64_t> num_accelerators() const {
    return num_accelerators(task_query{});
  }

  /// The job of the own task, as it was set, else as the source says; nothing if it is not known.
  [[nodiscard]] virtual std::optional<std::string> task_type() const {
    return own_.task_type ? own_.task_type : found_task().task_type;
  }

  /// The index of the own task in its job, from the same place.
  [[nodiscard]] virtual std::optional<uint64_t> task_id() const {
    return own_.task_id ? own_.task_id : found_task().task_id;
  }

  /// The rpc layer that stands before addresses, as in "grpc://"; nothing: addresses have none.
  [[nodiscard]] virtual std::optional<std::string> rpc_layer() const { return own_.rpc_layer; }

  /// Where the cluster is run, such as "google"; empty: nowhere in particular.
  [[nodiscard]] virtual std::string environment() const { return {}; }

  /// Sets the type of the own task, which then wins over the resolver's source.
  void set_task_type(std::string task_type) { own_.task_type = std::move(task_type); }

  void set_task_id(uint64_t task_id) { own_.task_id = task_id; }

  void set_rpc_layer(std::string rpc_layer) { own_.rpc_layer = std::move(rpc_layer); }

protected:
  cluster_resolver() = default;

  explicit cluster_resolver(task_query own) : own_(std::move(own)) {}

  cluster_resolver(const cluster_resolver&) = default;
  cluster_resolver& operator=(const cluster_resolver&) = default;

  /// The values that were set, and not read from the resolver's source.
  [[nodiscard]] const task_query& own() const { return own_; }

  /// The own task's type and id as the resolver's source says.
  [[nodiscard]] virtual task_query found_task() const { return {}; }

  /// The address of the task asked for, else of the own one; empty if neither says type and id.
  [[nodiscard]] std::string address_of(const task_query& query) const;

private:
  task_query own_;
};

/// "grpc://host:port", or the address alone if there is no rpc layer.
[[nodiscard]] std::string format_master_url(const std::string& address,
                                            const std::optional<std::string>& rpc_layer);

/// Counts devices by kind. @param devices Names such as "/job:worker/task:1/device:GPU:0"; CPUs are
/// no accelerators. @param query Counts those of this task only, if it says both type and id.
[[nodiscard]] std::map<std::string, uint64_t>
count_accelerators(std::span<const std::string> devices, const task_query& query);

} // namespace troupe
