// SPDX-License-Identifier: Apache-2.0
// The actors of a job that runs as several processes: which are here, and how to find the others.
#pragma once

#include "actors/net/cluster_layout.hpp"
#include "actors/net/membership.hpp"
#include "actors/net/placement.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Every process makes the same calls in the same order, so all of them count alike: the second
/// actor that enters as "token queue" is the second everywhere, and no process finds the one of a
/// former job in its place.
///
/// Thread: the one that made the world.
class cluster_placement final : public placement {
public:
  /// @param layout As `validate` accepts it, the same in every process.
  /// @param nodes The layout's nodes. Outlives the placement.
  /// @param start_deadline How long an actor of another process is waited for.
  cluster_placement(cluster_layout layout, membership& nodes,
                    job_time start_deadline = std::chrono::seconds{60});

  [[nodiscard]] const cluster_layout& layout() const { return layout_; }

  [[nodiscard]] bool leads() const override { return here_ == layout_.chief_node(); }

  [[nodiscard]] uint32_t here() const override { return here_; }

  [[nodiscard]] std::shared_ptr<array_places> arrays() const override;

  [[nodiscard]] std::string name_here() const override { return nodes_.name_of(here_); }

  [[nodiscard]] std::map<uint32_t, std::string> others() const override;

  [[nodiscard]] std::optional<uint32_t> worker_count() const override {
    return layout_.worker_count();
  }

  [[nodiscard]] uint32_t owner_places() const override {
    return layout_.owners_meet ? std::max(1U, layout_.ps) : 1;
  }

  [[nodiscard]] job_time start_deadline() const override { return start_deadline_; }

  [[nodiscard]] expected<bool> enter(const std::string& name, double load = 1) override;
  [[nodiscard]] expected<bool> enter_beside(const std::string& name,
                                            const std::string& neighbour) override;
  [[nodiscard]] uint32_t where(const std::string& name) const override;
  void give_up(const std::optional<error>& why) override;
  void part_with(uint32_t lost, uint32_t lost_by) override;
  void place(const std::string& name, const caf::strong_actor_ptr& actor) override;

  void on_refusal(std::function<void(const error&)> refused) override;

  /// A process was refused. Unless the job has begun (`begin`), it cannot begin: calls of `see`
  /// that wait, or fail, end with the reason, and so do later ones. Thread: any.
  void refuse(const error& why);

  /// Why the job cannot begin: the first refusal, unless it has begun. Thread: any.
  [[nodiscard]] std::optional<error> refusal() const;

  /// Has `compare` called once, before an actor of the chief's process is seen: `see` returns its
  /// error. It may call `see`.
  void on_meeting(std::function<expected<void>()> compare) { on_meeting_ = std::move(compare); }

  void begin() override;

  void tell_spared(const spared_tasks& spared) override {
    if (on_spared_) on_spared_(spared);
  }

  /// Says it to the listener, or on standard error if there is none.
  void tell_waiting(const std::string& line) override;

  /// Has `listener` called with each line of `tell_waiting`. Thread: any, one at a time.
  void on_waiting(std::function<void(const std::string&)> listener) {
    on_waiting_ = std::move(listener);
  }

  /// Has `listener` called with what `tell_spared` is told.
  void on_spared(std::function<void(const spared_tasks&)> listener) {
    on_spared_ = std::move(listener);
  }

  /// Waits until the chief's process has come, or `end` is ready; says what it waits for.
  /// Errors: deadline_exceeded after `start_deadline`, naming the process and what is known of it;
  /// that of `give_up`; as `membership::arrival`.
  [[nodiscard]] expected<void> await_chief(const std::future<void>& end);

  [[nodiscard]] expected<caf::strong_actor_ptr> see(const std::string& viewer,
                                                    const std::string& name) override;
  [[nodiscard]] expected<actor_search> search(const std::string& viewer,
                                              const std::string& name) override;

  /// A process that was gone and comes back is not taken in again.
  void on_return(std::function<void(uint32_t replica)> /*come_back*/) override {}

private:
  /// An actor that has entered.
  struct entry {
    node_index at = 0;
    uint64_t life = 0;            ///< How many have entered under its name.
    caf::strong_actor_ptr handle; ///< As it is known here; null until it was looked for.
  };

  using clock = std::chrono::steady_clock;

  template <class T>
  [[nodiscard]] expected<void> wait(const T& future, clock::time_point began,
                                    const std::string& awaited);
  [[nodiscard]] tl::unexpected<error> explain(error reason, const std::string& awaited,
                                              const std::string& trouble) const;
  [[nodiscard]] expected<node_index> node_of(const std::string& name, double load);
  [[nodiscard]] expected<node_index> variable_node(const std::string& owner, double load);
  [[nodiscard]] bool enter_at(const std::string& name, node_index at);
  [[nodiscard]] std::optional<node_index> place_of(const std::string& name) const;
  [[nodiscard]] expected<caf::strong_actor_ptr> look_for(const std::string& name,
                                                         const entry& known);
  [[nodiscard]] expected<void> meet(node_index at);

  cluster_layout layout_;
  membership& nodes_;
  job_time start_deadline_;
  node_index here_;
  std::vector<double> ps_loads_; ///< Sum of the loads that each parameter server holds.
  std::map<std::string, entry> entries_;
  std::function<void(const spared_tasks&)> on_spared_;
  std::function<void(const std::string&)> on_waiting_;
  std::function<expected<void>()> on_meeting_; ///< Empty, once this process has met the chief's.
  mutable std::mutex mutex_;
  std::optional<error> given_up_; ///< Guarded by `mutex_`, as are those below.
  std::optional<error> refusal_;
  bool has_begun_ = false;
  std::function<void(const error&)> on_refusal_;
};

} // namespace troupe
