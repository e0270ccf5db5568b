// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of each kind of fault.
#include "simulation/faults/planned_faults.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

job_time end_of(const fault& fault, job_time begin) {
  return fault.lasts > job_time{0} ? begin + fault.lasts : for_good;
}

std::set<node_index> set_of(const std::vector<node_index>& nodes) {
  return {nodes.begin(), nodes.end()};
}

double product(const std::vector<double>& factors) {
  return std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>{});
}

void remove_one(std::vector<double>& factors, double factor) {
  factors.erase(std::ranges::find(factors, factor));
}

} // namespace

planned_faults::planned_faults(simulated_network& network, const std::vector<fault>& faults,
                               node_freezes& freezes, network_partitions& partitions,
                               lost_nodes& lost, fault_log& log)
  : network_(network), nodes_(network.nodes()), events_(network.events()), freezes_(freezes),
    partitions_(partitions), lost_(lost), log_(log) {
  for (const auto& fault : faults)
    plan(fault);
}

void planned_faults::plan(const fault& fault) {
  if (fault.kind != fault_kind::freeze)
    return events_.at(fault.at, [this, fault] { begin(fault); });
  for (auto node : nodes_of(fault.who))
    freezes_.add(node, {fault.at, end_of(fault, fault.at)});
}

void planned_faults::begin(const fault& fault) {
  auto nodes = nodes_of(fault.who);
  switch (fault.kind) {
  case fault_kind::crash:
    for (auto node : nodes)
      lost_.crash(node, fault.lasts, "crash");
    return;
  case fault_kind::crash_with_token:
    for (auto node : nodes)
      armed_[node] = fault.lasts;
    return;
  case fault_kind::freeze:
    return; // was planned with its end
  case fault_kind::partition:
    return cut_off(fault);
  case fault_kind::slow:
    return slow_down(fault);
  case fault_kind::messages:
    return put_at_risk(fault);
  case fault_kind::corrupt:
    for (auto node : nodes)
      corrupt_[nodes_.replica_at(node)] = fault.how;
    return;
  case fault_kind::skew:
    return skew(fault);
  case fault_kind::swizzle:
    return partitions_.swizzle(nodes, fault.lasts);
  }
}

void planned_faults::on_delivery(const delivery& delivery) {
  if (armed_.empty() || std::string_view{delivery.kind} != "Token") return;
  auto found = armed_.find(delivery.to);
  if (found == armed_.end()) return;
  auto [node, lasts] = *found;
  armed_.erase(found);
  events_.at(events_.now(),
             [this, node = node, lasts = lasts] { lost_.crash(node, lasts, "crash_with_token"); });
}

void planned_faults::cut_off(const fault& fault) {
  auto others = fault.other.empty() ? std::set<node_index>{} : set_of(nodes_of(fault.other));
  partitions_.begin(set_of(nodes_of(fault.who)), others, fault.one_way,
                    end_of(fault, events_.now()));
}

void planned_faults::slow_down(const fault& fault) {
  auto nodes = nodes_of(fault.who);
  log_.tell("slow");
  for (auto node : nodes) {
    factors_[node].push_back(fault.factor);
    network_.transport().slow_down(node, product(factors_[node]));
  }
  if (fault.lasts == job_time{0}) return;
  events_.at(end_of(fault, events_.now()), [this, nodes, factor = fault.factor] {
    log_.tell("fast");
    for (auto node : nodes) {
      remove_one(factors_[node], factor);
      network_.transport().slow_down(node, product(factors_[node]));
    }
  });
}

void planned_faults::put_at_risk(const fault& fault) {
  log_.tell("messages");
  auto nodes = fault.who.empty() ? std::set<node_index>{} : set_of(nodes_of(fault.who));
  auto number = network_.injector().begin({fault.message, std::move(nodes), fault.probabilities});
  if (fault.lasts > job_time{0})
    events_.at(end_of(fault, events_.now()), [this, number] { network_.injector().end(number); });
}

corruption planned_faults::next_corruption(uint32_t replica) {
  auto found = corrupt_.find(replica);
  if (found == corrupt_.end()) return corruption::none;
  auto kind = found->second;
  corrupt_.erase(found);
  log_.tell("corrupt", fmt::format("replica {}", replica));
  return kind;
}

void planned_faults::skew(const fault& fault) {
  log_.tell("skew");
  auto nodes = nodes_of(fault.who);
  for (auto node : nodes) {
    rates_[node].push_back(fault.rate);
    network_.clocks().set(node, fault.ahead, product(rates_[node]));
  }
  if (fault.lasts == job_time{0}) return;
  events_.at(end_of(fault, events_.now()), [this, nodes, rate = fault.rate] {
    for (auto node : nodes) {
      remove_one(rates_[node], rate);
      network_.clocks().set(node, job_time{0}, product(rates_[node]));
    }
  });
}

std::vector<node_index> planned_faults::nodes_of(const std::vector<std::string>& names) const {
  std::vector<node_index> nodes;
  for (node_index node = 0; node < nodes_.node_count(); ++node) {
    auto is_chosen = names.empty() ? nodes_.is_replica(node)
                                   : std::ranges::count(names, nodes_.name_of(node)) > 0;
    if (is_chosen) nodes.push_back(node);
  }
  return nodes;
}

} // namespace troupe
