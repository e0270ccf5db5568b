// SPDX-License-Identifier: Apache-2.0
// Crashes, waves of crashes and swizzles that come by chance.
#include "simulation/faults/drawn_faults.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe {

drawn_faults::drawn_faults(simulated_network& network, uint32_t replicas, fault_draws& draws,
                           node_freezes& freezes, network_partitions& partitions, lost_nodes& lost)
  : nodes_(network.nodes()), events_(network.events()), replicas_(replicas), draws_(draws),
    partitions_(partitions), lost_(lost) {
  const auto& rates = draws_.rates();
  for (uint32_t replica = 0; replica < replicas_; ++replica) {
    if (rates.crash_mean > job_time{0}) draw_crash(replica);
    freezes.draw(replica, job_time{1});
  }
  if (rates.wave_mean > job_time{0}) draw_wave();
  if (rates.swizzle_mean > job_time{0}) draw_swizzle();
}

void drawn_faults::draw_crash(uint32_t replica) {
  const auto& rates = draws_.rates();
  auto time = std::max(events_.now(), rates.warm_up)
              + draws_.exponential("crash", replica, rates.crash_mean);
  events_.at(time, [this, replica] {
    auto absence = draws_.absence(replica);
    auto is_allowed = may_crash();
    if (is_allowed) lost_.crash(nodes_.replica_node(replica), absence, "crash");
    if (!is_allowed || absence > job_time{0})
      events_.at(events_.now() + absence, [this, replica] { draw_crash(replica); });
  });
}

void drawn_faults::draw_wave() {
  const auto& rates = draws_.rates();
  auto begin = std::max(events_.now(), rates.warm_up);
  events_.at(begin + draws_.exponential("wave", 0, rates.wave_mean), [this] {
    auto draws = draws_.stream("wave members", 0);
    std::vector<uint32_t> replicas(replicas_);
    std::iota(replicas.begin(), replicas.end(), 0U);
    for (uint32_t i = 0; i < draws_.rates().wave_size; ++i) {
      auto rest = static_cast<double>(replicas_ - i);
      std::swap(replicas[i], replicas[i + static_cast<uint32_t>(rest * draws.uniform())]);
      auto absence = draws_.absence(replicas[i]);
      if (may_crash()) lost_.crash(nodes_.replica_node(replicas[i]), absence, "crash");
    }
    draw_wave();
  });
}

void drawn_faults::draw_swizzle() {
  const auto& rates = draws_.rates();
  events_.at(events_.now() + draws_.exponential("swizzles", 0, rates.swizzle_mean), [this] {
    std::vector<node_index> nodes(replicas_);
    std::iota(nodes.begin(), nodes.end(), nodes_.replica_node(0));
    partitions_.swizzle(nodes, draws_.rates().swizzle_lasts);
    draw_swizzle();
  });
}

bool drawn_faults::may_crash() const {
  const auto down_max = draws_.rates().down_max;
  if (down_max == 0) return true;
  uint32_t down = 0;
  for (uint32_t replica = 0; replica < replicas_; ++replica)
    down += nodes_.is_up(nodes_.replica_node(replica)) ? 0 : 1;
  return down < down_max;
}

} // namespace troupe
