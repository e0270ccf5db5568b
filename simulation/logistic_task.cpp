// SPDX-License-Identifier: Apache-2.0
// Drawn examples, and the loss and gradient of weights on them.
#include "simulation/logistic_task.hpp"

#include "kernels/tensor/random.hpp"

#include <cmath>
#include <memory>

namespace troupe {

namespace {

// log(1 + exp(x)), which neither overflows nor loses small numbers.
double softplus(double x) {
  auto size = std::abs(x);
  return (x > 0 ? x : 0) + std::log1p(portable_exp(-size));
}

double sigmoid(double x) {
  return 1 / (1 + portable_exp(-x));
}

double loss_of(double margin, bool label) {
  return softplus(label ? -margin : margin);
}

} // namespace

logistic_data::logistic_data(const logistic_options& options) : options_(options) {
  random_stream draws{random_key{options.seed, "logistic truth"}};
  for (uint32_t i = 0; i < options.features; ++i)
    truth_.push_back(2 * draws.normal() / std::sqrt(options.features));
  for (uint32_t i = 0; options.own_data && i < options.replicas; ++i)
    truth_.push_back(2 * draws.normal());
  held_out_.resize(options.replicas);
  for (uint32_t replica = 0; replica < options.replicas; ++replica) {
    random_stream replica_draws{random_key{options.seed, "logistic held out", replica}};
    for (uint32_t i = 0; i < options.held_out; ++i)
      held_out_[replica].push_back(draw(replica, replica_draws));
  }
}

logistic_data::example logistic_data::draw(uint32_t replica, random_stream& draws) const {
  example drawn;
  for (uint32_t i = 0; i < options_.features; ++i)
    drawn.features.push_back(draws.normal());
  drawn.label = draws.uniform() < sigmoid(margin(truth_, replica, drawn.features));
  return drawn;
}

double logistic_data::margin(std::span<const double> weights, uint32_t replica,
                             std::span<const double> features) const {
  double sum = options_.own_data ? weights[features.size() + replica] : 0;
  for (size_t i = 0; i < features.size(); ++i)
    sum += weights[i] * features[i];
  return sum;
}

computed_batch logistic_data::differentiate(std::span<const double> weights, uint32_t replica,
                                            uint64_t batch) const {
  random_stream draws{random_key{options_.seed, "logistic batch", replica, batch}};
  auto by_weights = zeros({static_cast<int64_t>(weights.size())}, dtype::f64);
  auto sum = by_weights.mutable_values<double>();
  computed_batch result{.examples = options_.batch};
  for (uint32_t i = 0; i < options_.batch; ++i) {
    auto [features, label] = draw(replica, draws);
    auto logit = margin(weights, replica, features);
    result.loss += loss_of(logit, label) / options_.batch;
    auto slope = (sigmoid(logit) - (label ? 1 : 0)) / options_.batch;
    for (size_t feature = 0; feature < features.size(); ++feature)
      sum[feature] += slope * features[feature];
    if (options_.own_data) sum[features.size() + replica] += slope;
  }
  result.gradients.emplace_back(std::move(by_weights));
  return result;
}

double logistic_data::loss(std::span<const double> weights,
                           std::span<const uint32_t> replicas) const {
  double sum = 0;
  for (auto replica : replicas)
    for (const auto& [features, label] : held_out_[replica])
      sum += loss_of(margin(weights, replica, features), label);
  return sum / (static_cast<double>(replicas.size()) * options_.held_out);
}

learning_task logistic_task(const logistic_options& options) {
  auto data = std::make_shared<const logistic_data>(options);
  auto size = static_cast<int64_t>(data->truth().size());
  learning_task task;
  task.variables.emplace_back("weights", zeros({size}, dtype::f64));
  task.differentiate = [data](std::span<const tensor> values, uint32_t replica, uint64_t batch) {
    return data->differentiate(values[0].values<double>(), replica, batch);
  };
  task.evaluate = [data](std::span<const tensor> values, std::span<const uint32_t> replicas) {
    return data->loss(values[0].values<double>(), replicas);
  };
  return task;
}

} // namespace troupe
