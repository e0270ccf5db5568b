// SPDX-License-Identifier: Apache-2.0
// Drawn failures of a job's nodes, and the work that checkpoints save.
#include "simulation/reports/goodput.hpp"

#include "kernels/tensor/random.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

namespace troupe {

namespace {

/// Nodes that fail and return. @pre All are up when it is made.
class node_failures {
public:
  node_failures(const failure_model& model, random_stream& stream)
    : model_(model), stream_(stream) {}

  // How long the job goes on with all its nodes up at the beginning, at most `most`.
  double time_to_stop(double most) {
    std::queue<double> returns; // in order, because all take as long
    double now = 0;
    while (true) {
      auto up = model_.nodes + model_.backups - static_cast<double>(returns.size());
      auto failure = now + stream_.exponential() * model_.node_mtbf / up;
      // Waiting has no memory: when the number of nodes changes, the next failure is drawn anew.
      if (!returns.empty() && returns.front() <= failure) {
        now = returns.front();
        returns.pop();
      } else {
        now = failure;
        returns.push(now + model_.node_return);
      }
      if (now >= most) return most;
      if (returns.size() > model_.backups) return now;
    }
  }

private:
  const failure_model& model_;
  random_stream& stream_;
};

void draw_horizon(const failure_model& model, double horizon, random_stream& stream,
                  failure_history& history) {
  node_failures failures{model, stream};
  auto outage = model.detection + model.restart;
  for (double now = 0; now < horizon;) {
    auto stretch = failures.time_to_stop(horizon - now);
    now += stretch;
    history.stretches.push_back(stretch);
    history.ended.push_back(now < horizon);
    while (now < horizon) {
      auto quiet = failures.time_to_stop(outage);
      now += quiet;
      if (quiet >= outage) break;
    }
  }
  history.seconds += horizon;
}

} // namespace

failure_history draw_failures(const failure_model& model, double horizon, uint64_t runs,
                              uint64_t seed) {
  TROUPE_ASSERT(model.nodes >= 1 && model.node_mtbf > 0, model.nodes, model.node_mtbf);
  TROUPE_ASSERT(horizon > 0, horizon);
  failure_history history;
  for (uint64_t run = 0; run < runs; ++run) {
    random_stream stream{random_key{seed, "failures of nodes", 0, run}};
    draw_horizon(model, horizon, stream, history);
  }
  return history;
}

double goodput_of(const failure_history& history, double checkpoint_cost, double interval) {
  double useful = 0;
  auto period = interval + checkpoint_cost;
  for (size_t i = 0; i < history.stretches.size(); ++i) {
    auto whole = std::floor(history.stretches[i] / period);
    useful += whole * interval;
    // Work that is not saved at the end of the horizon is not lost either.
    if (!history.ended[i]) useful += std::min(interval, history.stretches[i] - whole * period);
  }
  return useful / history.seconds;
}

double best_interval(const failure_history& history, double checkpoint_cost) {
  auto longest = std::ranges::max(history.stretches);
  auto low = std::max(1e-3 * std::min(mean_time_to_stop(history), longest), checkpoint_cost);
  auto high = std::max(longest, 2 * low);
  double best = low;
  double most = -1;
  constexpr int tried = 400;
  for (int i = 0; i <= tried; ++i) {
    auto interval = low * std::pow(high / low, static_cast<double>(i) / tried);
    auto share = goodput_of(history, checkpoint_cost, interval);
    if (share > most) {
      most = share;
      best = interval;
    }
  }
  return best;
}

double mean_time_to_stop(const failure_history& history) {
  double sum = 0;
  double stops = 0;
  for (size_t i = 0; i < history.stretches.size(); ++i) {
    sum += history.stretches[i];
    stops += history.ended[i] ? 1 : 0;
  }
  return sum / std::max(1.0, stops);
}

double young_interval(double checkpoint_cost, double mtbf) {
  return std::sqrt(2 * checkpoint_cost * mtbf);
}

double daly_interval(double checkpoint_cost, double mtbf) {
  if (checkpoint_cost >= 2 * mtbf) return mtbf;
  auto part = checkpoint_cost / (2 * mtbf);
  return young_interval(checkpoint_cost, mtbf) * (1 + std::sqrt(part) / 3 + part / 9)
         - checkpoint_cost;
}

double daly_goodput(const failure_model& model, double interval) {
  auto mtbf = model.node_mtbf / model.nodes;
  auto outage = model.detection + model.restart;
  return interval
         / (mtbf * std::exp(outage / mtbf) * std::expm1((interval + model.checkpoint_cost) / mtbf));
}

} // namespace troupe
