// SPDX-License-Identifier: Apache-2.0
// Actors and messages of one's own in several processes: each process has a juror with data of its
// own. The first process asks all jurors for their gradients, takes the median, and goes on without
// a juror that is gone with its process.
//
//   troupe launch -n 3 -- jury_cluster
//   TF_CONFIG='{"cluster": {...}, "task": {...}}' jury_cluster     once for each task
#include "actors/net/network_messages.hpp"
#include "actors/observing/observed.hpp"
#include "examples/jury.capnp.h"
#include "kernels/tensor/random.hpp"
#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server_groups.hpp"
#include "strategies/jobs/exit_codes.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace troupe;

namespace {

// ---- the messages of jury.capnp, as C++ ----

msg<trial::Question> make_question(const tensor& line) {
  own_message_builder<trial::Question> builder;
  write_tensor(*builder.storage, builder.body.initLine(), line);
  return std::move(builder).finish();
}

msg<trial::Opinion> make_opinion(uint32_t juror, const tensor& gradient) {
  own_message_builder<trial::Opinion> builder;
  builder.body.setReplica(juror);
  write_tensor(*builder.storage, builder.body.initGradient(), gradient);
  return std::move(builder).finish();
}

// ---- a juror ----

// The gradient of (a x + b - y)^2, for 32 points of y = 3 x + 1 that this juror alone has.
tensor gradient_of(const tensor& line, uint32_t juror) {
  auto a = line.values<float>()[0];
  auto b = line.values<float>()[1];
  random_stream points{random_key{1, "points", juror}};
  float by_a = 0;
  float by_b = 0;
  for (int i = 0; i < 32; ++i) {
    auto x = static_cast<float>(points.uniform());
    auto error = a * x + b - (3 * x + 1);
    by_a += 2 * error * x / 32;
    by_b += 2 * error / 32;
  }
  return make_tensor({2}, {by_a, by_b});
}

using juror_actor
  = caf::typed_actor<caf::replies_to<msg<trial::Question>>::with<msg<trial::Opinion>>>;

struct juror_state {
  static inline const char* name = "juror";
};

juror_actor::behavior_type juror(observed_pointer<juror_actor, juror_state> /*self*/,
                                 uint32_t index) {
  return {[index](const msg<trial::Question>& question) {
    auto line = read_tensor(question.reader().getLine(), question.owner());
    return make_opinion(index, gradient_of(line, index));
  }};
}

// ---- the process that asks ----

// The median of each element.
tensor median_of(const std::vector<tensor>& gradients) {
  auto result = zeros({2});
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> elements;
    for (const auto& gradient : gradients)
      elements.push_back(gradient.values<float>()[i]);
    std::ranges::sort(elements);
    result.mutable_values<float>()[i] = elements[elements.size() / 2];
  }
  return result;
}

// A juror that is gone with its process has no opinion; the others decide.
void preside(world& world, server& server) {
  auto jurors = value_or_throw(find_group<juror_actor>(world, server, "juror", server.trainers()));
  auto line = zeros({2});
  for (int step = 1; step <= 300; ++step) {
    auto answers = jurors.ask<msg<trial::Opinion>>(make_question(line)).wait();
    std::vector<tensor> opinions;
    for (const auto& opinion : answers.counted())
      opinions.push_back(read_tensor(opinion.reader().getGradient(), opinion.owner()));
    if (opinions.empty()) throw failure{answers.why_not_enough()};
    auto gradient = median_of(opinions);
    auto next = line.clone();
    for (size_t i = 0; i < 2; ++i)
      next.mutable_values<float>()[i] -= gradient.values<float>()[i] / 2;
    line = next;
    std::printf("step %d: y = %.3f x + %.3f, said by %zu of %zu jurors\n", step,
                line.values<float>()[0], line.values<float>()[1], opinions.size(), jurors.size());
  }
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  network_messages known;
  known.add<trial::Question>("trial.Question").add<trial::Opinion>("trial.Opinion");
  server server{world, cluster, {.messages = known}};
  juror_actor own = world.system().spawn(juror, server.task().index);
  std::shared_ptr<void> end{nullptr, [own](void*) { // whatever happens: its world waits for it
                              caf::anon_send_exit(own, caf::exit_reason::user_shutdown);
                            }};
  publish_members(server, "juror", std::vector{own});
  if (server.is_chief()) preside(world, server);
  if (auto joined = server.join(); !joined) { // the chief's process does not wait
    std::fprintf(stderr, "%s\n", joined.error().message.c_str());
    return static_cast<int>(exit_code_of_join(joined.error().code));
  }
  return 0;
}

} // namespace

int main() {
  return run_main(take_part);
}
