// SPDX-License-Identifier: Apache-2.0
// The processes of a simulated job, which enter and leave it at its roll call.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/address.hpp"
#include "actors/world/world.hpp"
#include "messages/cluster_message.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A process between its start and its end.
struct process_life {
  node_index node = 0;
  uint64_t attempt = 0;                 ///< The job's attempt at which it was there; from 0.
  job_time entered{0};                  ///< When it asked to be let in.
  std::optional<job_time> began;        ///< When it heard that the job begins.
  uint64_t first_step = 0;              ///< The first step that it was told then.
  std::optional<error> refused;         ///< Why it heard that the job does not.
  std::optional<job_time> heard_of_end; ///< When it heard that the job is over.
  std::optional<job_time> left;         ///< When it heard that all have left.
  std::optional<job_ending> ending;     ///< How the job ended, as it was told then.
};

/// A job of several processes begins when all of them are there, and ends for all alike. In a
/// simulation all actors are in one process; so this does for each node but the chief's what a
/// process does there: enter, spawn its replica when it hears that the job begins, and leave
/// when it hears that it is over.
///
/// Thread: that of the virtual world. The network and the world outlive it.
class simulated_processes {
public:
  /// @param network With a roll call. @param late By node, how long after the first attempt begins
  /// its process is started. @param lives Every life is added to it; outlives this.
  simulated_processes(simulated_network& network, world& world, uint32_t replicas,
                      std::map<node_index, job_time> late, std::vector<process_life>& lives);

  /// Sets the lines that processes enter the next attempt with, as `job_agreement` gives them.
  void agree(std::string agreement) { agreement_ = std::move(agreement); }

  /// The attempt is over: the processes that are still there end.
  void end();

private:
  void start_all();
  void start(node_index node);
  void begin(size_t life, const expected<msg<wire::JobBegins>>& begins);
  void leave(size_t life);
  void come_to_end(size_t life, const expected<job_ending>& ending);

  const simulated_nodes& nodes_;
  timed_events& events_;
  simulated_placement& placement_;
  world& world_;
  uint32_t replicas_;
  std::string agreement_;
  std::map<node_index, job_time> late_;
  std::vector<process_life>& lives_;
  std::map<size_t, member_actor> members_; ///< By life, of the current attempt.
  uint64_t attempt_ = 0;
  bool is_in_job_ = false; ///< Between its roll call and its end.
};

} // namespace troupe
