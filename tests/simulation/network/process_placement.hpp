// SPDX-License-Identifier: Apache-2.0
// The placement of one process at a simulated network, for that process's own program.
#pragma once

#include "simulation/network/simulated_network.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// A simulated network has the placement of one program that plays all processes. Where each
/// process has its own program (`virtual_programs`), each has its own placement, too: only what
/// stands at its node is here, and an actor that has not come yet, or is cut off, is waited for.
///
/// Thread: that of the program.
class process_placement final : public placement {
public:
  /// @param world The program's; it and the network outlive the placement. @param names The
  /// processes', by rank; process i stands at the node of replica i.
  /// @param start_deadline How long an actor of another process is waited for.
  process_placement(world& world, simulated_network& network, std::vector<std::string> names,
                    uint32_t rank, job_time start_deadline = std::chrono::seconds{60});

  [[nodiscard]] bool leads() const override { return rank_ == 0; }

  [[nodiscard]] uint32_t here() const override { return rank_; }

  [[nodiscard]] std::string name_here() const override { return names_[rank_]; }

  [[nodiscard]] std::map<uint32_t, std::string> others() const override;

  [[nodiscard]] job_time start_deadline() const override { return start_deadline_; }

  [[nodiscard]] expected<bool> enter(const std::string& name, double load) override;
  [[nodiscard]] uint32_t where(const std::string& name) const override;
  void place(const std::string& name, const caf::strong_actor_ptr& actor) override;
  void stand_beside(const std::string& neighbour, const caf::strong_actor_ptr& actor) override;
  [[nodiscard]] expected<caf::strong_actor_ptr> see(const std::string& viewer,
                                                    const std::string& name) override;
  [[nodiscard]] expected<actor_search> search(const std::string& viewer,
                                              const std::string& name) override;

  /// A process that was gone and comes back is not taken in again.
  void on_return(std::function<void(uint32_t replica)> /*come_back*/) override {}

private:
  world& world_;
  simulated_network& network_;
  std::vector<std::string> names_;
  uint32_t rank_;
  job_time start_deadline_;
};

} // namespace troupe
