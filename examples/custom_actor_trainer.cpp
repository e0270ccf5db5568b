// SPDX-License-Identifier: Apache-2.0
// A trainer with an actor of its own: before gradients are applied, a jury takes their median, so
// that a replica with broken data cannot spoil the line that five replicas fit together.
#include "actors/observing/observed.hpp"
#include "examples/jury.capnp.h"
#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdio>

using namespace troupe;

constexpr uint32_t replicas = 5;

// ---- the messages of jury.capnp, as C++ ----

msg<trial::Opinion> make_opinion(uint32_t replica, const tensor& gradient) {
  own_message_builder<trial::Opinion> builder;
  builder.body.setReplica(replica);
  write_tensor(*builder.storage, builder.body.initGradient(), gradient);
  return std::move(builder).finish();
}

msg<trial::Agreement> make_agreement(const tensor& gradient, uint32_t outlier) {
  own_message_builder<trial::Agreement> builder;
  builder.body.setOutlier(outlier);
  write_tensor(*builder.storage, builder.body.initGradient(), gradient);
  return std::move(builder).finish();
}

// The gradient in such a message, which shares the message's memory.
template <class T>
tensor gradient_in(const msg<T>& message) {
  return read_tensor(message.reader().getGradient(), message.owner());
}

// ---- the jury's decisions: plain functions ----

tensor median_of(const std::vector<tensor>& gradients) {
  auto result = zeros(gradients.front().extents());
  auto median = result.mutable_values<float>();
  std::vector<float> elements(gradients.size());
  for (size_t i = 0; i < median.size(); ++i) {
    for (size_t k = 0; k < elements.size(); ++k)
      elements[k] = gradients[k].values<float>()[i];
    auto middle = elements.begin() + static_cast<std::ptrdiff_t>(elements.size() / 2);
    auto is_less = [](float a, float b) { return std::strong_order(a, b) < 0; }; // NaNs lie outside
    std::nth_element(elements.begin(), middle, elements.end(), is_less);
    median[i] = *middle;
  }
  return result;
}

uint32_t farthest_from(const tensor& median, const std::vector<tensor>& gradients) {
  auto distance = [&](const tensor& gradient) {
    double sum = 0;
    for (size_t i = 0; i < median.element_count(); ++i)
      sum += std::abs(gradient.values<float>()[i] - median.values<float>()[i]);
    return std::isnan(sum) ? INFINITY : sum;
  };
  auto is_nearer = [&](const tensor& a, const tensor& b) { return distance(a) < distance(b); };
  auto farthest = std::max_element(gradients.begin(), gradients.end(), is_nearer);
  return static_cast<uint32_t>(farthest - gradients.begin());
}

// ---- the jury: its interface, its state, its answers ----

using jury_actor
  = caf::typed_actor<caf::replies_to<msg<trial::Opinion>>::with<msg<trial::Agreement>>>;

struct jury_state {
  static inline const char* name = "jury";
  std::vector<tensor> opinions = std::vector<tensor>(replicas); // by replica
  std::vector<caf::typed_response_promise<msg<trial::Agreement>>> waiting;
};

jury_actor::behavior_type jury(observed_pointer<jury_actor, jury_state> self) {
  return {[self](const msg<trial::Opinion>& opinion) {
    auto& [opinions, waiting] = self->state;
    opinions.at(opinion.reader().getReplica()) = gradient_in(opinion);
    auto answer = self->make_response_promise<msg<trial::Agreement>>();
    waiting.push_back(answer);
    if (waiting.size() < replicas) return answer;
    auto median = median_of(opinions);
    auto agreement = make_agreement(median, farthest_from(median, opinions));
    for (auto& replica : std::exchange(waiting, {}))
      replica.deliver(agreement);
    return answer;
  }};
}

// ---- the trainer ----

// The gradient of (a x + b - y)^2, for 32 points of y = 3 x + 1; replica 4 reads y as -50 x.
tensor gradient_of(const tensor& line, uint32_t replica, const random_key& key) {
  auto a = line.values<float>()[0];
  auto b = line.values<float>()[1];
  random_stream points{key};
  float by_a = 0;
  float by_b = 0;
  for (int i = 0; i < 32; ++i) {
    auto x = static_cast<float>(points.uniform());
    auto error = a * x + b - (replica == 4 ? -50 * x : 3 * x + 1);
    by_a += 2 * error * x / 32;
    by_b += 2 * error / 32;
  }
  return make_tensor({2}, {by_a, by_b});
}

int main() {
  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto line = strategy.make_variable("line", zeros({2}));
  sync_replicas_optimizer optimizer{rules::momentum{.learning_rate = 0.1},
                                    {.replicas_to_aggregate = replicas,
                                     .total_num_replicas = replicas,
                                     .policy = sync_policy::latest_token}};

  jury_actor judge = world.system().spawn(jury);
  world.introduce(judge.id(), "jury");

  auto outvoted = std::make_shared<std::vector<int>>(replicas);
  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(line);
    auto value = co_await reading;
    auto me = context.replica_id_in_sync_group();
    auto key = context.random("points");
    auto computing = context.compute([=](std::stop_token) { return gradient_of(value, me, key); });
    auto gradient = co_await computing;
    auto asking = context.request<msg<trial::Agreement>>(judge, make_opinion(me, gradient));
    auto agreement = value_or_throw(co_await asking);
    if (agreement.reader().getOutlier() == me) ++(*outvoted)[me];
    auto applying = optimizer.apply_gradients(context, gradient_in(agreement), line);
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = 500});
  caf::anon_send_exit(judge, caf::exit_reason::user_shutdown);
  if (report.failure) return static_cast<int>(exit_code_of(report));

  auto trained = strategy.read(line);
  std::printf("after %lu steps: y = %.3f x + %.3f; replica 4 was outvoted %d times\n",
              static_cast<unsigned long>(report.step), trained.values<float>()[0],
              trained.values<float>()[1], outvoted->at(4));
}
