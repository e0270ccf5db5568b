// SPDX-License-Identifier: Apache-2.0
// A job that counts its gradients: counted_job POLICY AGGREGATE OWNER_COPIES MIN_REPLICAS. Each
// gradient adds 1 to a row of its own, until SIGTERM. At the end the chief compares the rows with
// its ledger: each gradient that the ledger has as accepted is part of the variable exactly once,
// and no other gradient is. A line on standard error tells each event.
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/system/signal_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>

using namespace troupe;

namespace {

constexpr int64_t lives_max = 16;
constexpr int64_t steps_max = 16'384;
constexpr int life_bits = 32; ///< Bits of the iteration's number, below those of the life.

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

// Where a gradient leaves its trace: each life of a replica gives one for each step at most.
int64_t row_of(uint32_t replica, int64_t life, uint64_t step) {
  if (life >= lives_max || step >= static_cast<uint64_t>(steps_max))
    throw failure{{errc::out_of_range, "it has too many lives, or makes too many steps"}};
  return (int64_t{replica} * lives_max + life) * steps_max + static_cast<int64_t>(step);
}

/// The accepted gradients, as the chief tells it, by replica and step.
class ledger {
public:
  void add(const step_record& record) {
    for (const auto& one : record.accepted)
      ++listed_[{one.replica, one.local_step}];
    if (record.step % 50 == 0) say("step " + std::to_string(record.step));
  }

  // True if the rows hold each accepted gradient once. A ledger names no lives.
  [[nodiscard]] bool agrees_with(std::span<const float> rows, uint32_t replicas) const {
    int64_t accepted = 0;
    int64_t missing = 0;
    int64_t too_many = 0;
    for (uint32_t replica = 0; replica < replicas; ++replica)
      for (uint64_t step = 0; step < steps_max; ++step) {
        int64_t held = 0;
        for (int64_t life = 0; life < lives_max; ++life) {
          auto value = rows[static_cast<size_t>(row_of(replica, life, step))];
          if (value > 1) ++too_many;
          held += static_cast<int64_t>(value);
        }
        auto found = listed_.find({replica, step});
        auto listed = found == listed_.end() ? 0 : found->second;
        accepted += listed;
        missing += std::max<int64_t>(0, listed - held);
        too_many += std::max<int64_t>(0, held - listed);
      }
    say("accepted " + std::to_string(accepted) + ", missing " + std::to_string(missing)
        + ", too many " + std::to_string(too_many));
    return missing == 0 && too_many == 0;
  }

private:
  std::map<std::pair<uint32_t, uint64_t>, int64_t> listed_;
};

gradient one_at(int64_t row, const shape& rows) {
  auto index = zeros({1}, dtype::i64);
  index.mutable_values<int64_t>()[0] = row;
  return indexed_slices{index, make_tensor({1}, {-1.0F}), rows};
}

int take_part(sync_policy policy, uint32_t aggregate, uint32_t owner_copies, uint32_t min_replicas,
              const std::stop_token& stop) {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster, {.replicate_owners = owner_copies}};
  parameter_server_strategy strategy{world,
                                     {.replicas = server.replicas(),
                                      .placement = server.placement(),
                                      .replicate_owners = owner_copies}};
  shape rows{int64_t{server.replicas()} * lives_max * steps_max};
  auto counts = strategy.make_variable("counts", zeros(rows));
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1},
                                    {aggregate, server.replicas(), policy}};
  std::atomic_flag has_begun;
  auto step = [=, &has_begun](replica_context& context) -> task<void> {
    if (!has_begun.test_and_set()) say("begins");
    auto life = static_cast<int64_t>(context.iteration() >> life_bits);
    auto row = row_of(context.replica_id_in_sync_group(), life, context.local_step());
    auto computing = context.compute([row, rows](std::stop_token) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      return one_at(row, rows);
    });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, counts);
    co_await applying;
  };
  ledger accepted;
  training_options training{.steps = steps_max - 1, .stop = stop};
  training.min_replicas = min_replicas;
  training.rejoin_timeout = std::chrono::seconds{60};
  training.on_warning = say;
  training.on_step = [&accepted](const step_record& record) { accepted.add(record); };
  auto report = train(strategy, optimizer, step, training);
  if (report.failure) {
    say("ended: " + report.failure->message);
    return static_cast<int>(exit_code_of(report.failure->code));
  }
  auto leads = server.placement() == nullptr || server.placement()->leads();
  if (!leads) return 0;
  return accepted.agrees_with(strategy.read(counts).values<float>(), server.replicas()) ? 0 : 1;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 5) return static_cast<int>(exit_code::usage);
  signal_watch signals;
  try {
    auto policy = parse_sync_policy(arguments[1]);
    return take_part(value_or_throw(std::move(policy)), std::stoul(arguments[2]),
                     std::stoul(arguments[3]), std::stoul(arguments[4]), signals.token());
  } catch (const failure& failed) {
    say(failed.what());
    return static_cast<int>(exit_code_of(failed.reason().code));
  }
}
