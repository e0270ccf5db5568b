// SPDX-License-Identifier: Apache-2.0
// Carries out a plan of faults in a simulated network.
#pragma once

#include "kernels/tensor/random.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A fault that has just begun, or ended, for observers.
struct fault_event {
  job_time time{0};
  std::string what; ///< "crash replica 3", "restart replica 3", "partition", "heal".
};

/// Carries out a plan in a network: planned faults at their times, and drawn faults as they come.
/// The draws are those of a replica and its count of faults, so that they are the same whatever
/// else differs between two runs.
/// Thread: that of the virtual world. The network outlives it, and rings no more after it.
class fault_driver {
public:
  /// @param plan Valid. @param seed Names the draws.
  fault_driver(simulated_network& network, fault_plan plan, uint32_t replicas, uint64_t seed);

  /// When a computation ends that would, without freezes, begin now and take `time`.
  [[nodiscard]] job_time with_freezes(uint32_t replica, job_time time);

  /// How the gradient that a replica makes now is corrupt; asking forgets it.
  [[nodiscard]] corruption next_corruption(uint32_t replica);

  /// The time that a replica's clock counts while a time passes.
  [[nodiscard]] job_time on_its_clock(uint32_t replica, job_time time) const;

  /// Takes in every message that arrives: some faults wait for one.
  void on_delivery(const delivery& delivery);

  /// When the job can begin again, if the chief's or an owner's node is gone; forgets it.
  [[nodiscard]] std::optional<job_time> restart_time();

  std::function<void(const fault_event&)> on_fault; ///< May be empty.

  /// How often each event has happened: "fault crash", "fault thaw".
  [[nodiscard]] const std::map<std::string, uint64_t>& counts() const { return counts_; }

private:
  /// When a replica is frozen.
  struct window {
    job_time begin{0};
    job_time end{0};
  };

  void plan_fault(const fault& fault);
  void begin(const fault& fault);
  void crash(node_index node, job_time lasts, const char* event);
  [[nodiscard]] bool takes_back(node_index node) const;
  void come_back(node_index node);
  void freeze_between(const std::string& name, node_index node, window freeze);
  void cut_off(const fault& fault);
  void slow_down(const fault& fault);
  void put_at_risk(const fault& fault);
  void skew(const fault& fault);
  void silence(node_index node, job_time until);
  void on_give_up(node_index by, node_index lost);
  void swizzle(const std::vector<node_index>& nodes, job_time lasts);

  void draw_crash(uint32_t replica);
  void draw_wave();
  void draw_swizzle();
  void draw_freezes(uint32_t replica, job_time until);
  [[nodiscard]] job_time draw_return(uint32_t replica);
  [[nodiscard]] job_time exponential(const char* purpose, uint32_t index, job_time mean);
  [[nodiscard]] random_stream stream(const char* purpose, uint32_t index);

  [[nodiscard]] std::vector<node_index> nodes_of(const std::vector<std::string>& names) const;
  [[nodiscard]] bool may_crash() const;
  [[nodiscard]] job_time end_of(const fault& fault) const;
  void tell(const char* event, const std::string& node = {});

  simulated_network& network_;
  const simulated_nodes& nodes_;
  timed_events& events_;
  fault_plan plan_;
  uint32_t replicas_;
  uint64_t seed_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> draws_; ///< By purpose and index.
  std::vector<std::vector<window>> freezes_;                   ///< By replica, in order.
  std::vector<job_time> freezes_drawn_;                        ///< Until when; by replica.
  std::map<node_index, job_time> armed_; ///< Crash with their next token, and how long for.
  std::map<uint32_t, corruption> corrupt_;
  std::map<node_index, std::vector<double>> factors_; ///< Faults that slow a node down now.
  std::map<node_index, std::vector<double>> rates_;   ///< Faults that hurry its clock now.
  std::optional<job_time> job_restarts_;
  bool never_restarts_ = false; ///< A process is gone for good that no job goes on without.
  std::map<node_index, job_time> silent_until_; ///< Frozen or cut off; of some in the past.
  std::map<std::string, uint64_t> counts_;
};

} // namespace troupe
