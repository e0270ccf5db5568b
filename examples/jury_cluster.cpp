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
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace troupe;

namespace {

// ---- what jurors are told, and say: jury.capnp, as C++ ----

msg<trial::Question> make_question(const tensor& line) {
  own_message_builder<trial::Question> made;
  write_tensor(*made.storage, made.body.initLine(), line);
  return std::move(made).finish();
}

msg<trial::Opinion> make_opinion(uint32_t juror, const tensor& gradient) {
  own_message_builder<trial::Opinion> made;
  made.body.setReplica(juror);
  write_tensor(*made.storage, made.body.initGradient(), gradient);
  return std::move(made).finish();
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

// Element by element; a juror that is lost has said nothing.
tensor median_of(const std::vector<tensor>& opinions) {
  auto result = zeros({2});
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> said;
    for (const auto& one : opinions)
      if (one.element_count() == 2) said.push_back(one.values<float>()[i]);
    if (said.empty()) throw failure{{errc::unavailable, "no juror is left"}};
    std::ranges::sort(said);
    result.mutable_values<float>()[i] = said[said.size() / 2];
  }
  return result;
}

// Each replica of this process speaks to one juror, so that all are asked at once.
void preside(world& world, server& server) {
  auto tasks = server.trainers();
  std::vector<juror_actor> jurors;
  for (const auto& task : tasks)
    jurors.push_back(value_or_throw(server.find<juror_actor>(task, "juror").wait()));
  mirrored_strategy strategy{world, {.devices = cpu_devices(static_cast<uint32_t>(tasks.size()))}};

  auto line = zeros({2});
  for (int step = 1; step <= 300; ++step) {
    auto said = strategy.run([=](replica_context& context) -> task<tensor> {
      auto asked = jurors[context.replica_id_in_sync_group()];
      auto asking = context.request<msg<trial::Opinion>>(asked, make_question(line));
      auto opinion = co_await asking;
      if (!opinion) co_return tensor{}; // its process is gone, as the error says
      co_return read_tensor(opinion->reader().getGradient(), opinion->owner());
    });
    auto opinions = said.local_results();
    auto gradient = median_of(opinions);
    auto next = line.clone();
    for (size_t i = 0; i < 2; ++i)
      next.mutable_values<float>()[i] -= gradient.values<float>()[i] / 2;
    line = next;
    auto heard = std::ranges::count(opinions, 2U, &tensor::element_count);
    std::printf("step %d: y = %.3f x + %.3f, said by %ld of %zu jurors\n", step,
                line.values<float>()[0], line.values<float>()[1], static_cast<long>(heard),
                tasks.size());
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
  server.publish("juror", own);
  if (server.is_chief())
    preside(world, server);
  else
    value_or_throw(server.join());
  return 0;
}

} // namespace

int main() {
  try {
    return take_part();
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return static_cast<int>(exit_code_of(failed.reason().code));
  }
}
