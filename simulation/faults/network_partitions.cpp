// SPDX-License-Identifier: Apache-2.0
// Partitions and swizzles of a network.
#include "simulation/faults/network_partitions.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

network_partitions::network_partitions(simulated_network& network, fault_draws& draws,
                                       lost_nodes& lost, fault_log& log)
  : network_(network), events_(network.events()), draws_(draws), lost_(lost), log_(log) {}

void network_partitions::begin(const std::set<node_index>& nodes,
                               const std::set<node_index>& others, bool one_way, job_time end) {
  std::function<bool(node_index)> here = [nodes](node_index node) { return nodes.contains(node); };
  std::function<bool(node_index)> there = [nodes, others](node_index node) {
    return others.empty() ? !nodes.contains(node) : others.contains(node);
  };
  log_.tell("partition");
  for (const auto* side : {&nodes, &others})
    for (auto node : *side)
      lost_.silence(node, end);
  std::vector<uint64_t> cuts{network_.sever({here, there})};
  if (!one_way) cuts.push_back(network_.sever({there, here}));
  if (end == for_good) return;
  events_.at(end, [this, cuts] {
    log_.tell("heal");
    for (auto number : cuts)
      network_.heal(number);
  });
}

// A node that is cut off later may be back earlier: orders that no single fault would bring about.
// Source: FoundationDB's swizzled clogging.
void network_partitions::swizzle(const std::vector<node_index>& nodes, job_time lasts) {
  auto draws = draws_.stream("swizzle", 0);
  std::vector<node_index> chosen;
  for (auto node : nodes)
    if (draws.uniform() < 0.5) chosen.push_back(node);
  for (auto node : chosen) {
    auto half = static_cast<double>(lasts.count()) / 2;
    job_time begin{static_cast<int64_t>(half * draws.uniform())};
    job_time end{static_cast<int64_t>(half + half * draws.uniform())};
    events_.at(events_.now() + begin, [this, node, time = end - begin] { clog(node, time); });
  }
}

void network_partitions::clog(node_index node, job_time lasts) {
  log_.tell("clog", network_.nodes().name_of(node));
  auto end = events_.now() + lasts;
  lost_.silence(node, end);
  auto is_it = [node](node_index other) { return other == node; };
  auto out = network_.sever({is_it, {}});
  auto in = network_.sever({{}, is_it});
  events_.at(end, [this, node, out, in] {
    log_.tell("unclog", network_.nodes().name_of(node));
    network_.heal(out);
    network_.heal(in);
  });
}

} // namespace troupe
