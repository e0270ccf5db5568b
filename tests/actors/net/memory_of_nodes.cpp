// SPDX-License-Identifier: Apache-2.0
// One of two nodes, for a test of what they keep in memory: `sender` sends gradients of 1 MB, one
// after the other, to an actor of `reader`, which takes its time with each.
//
//   memory_of_nodes reader PORT WINDOW_MB MILLISECONDS_FOR_EACH
//   memory_of_nodes sender PORT WINDOW_MB COUNT UNANSWERED_MAX
//
// Each says how much memory it had when both had met, and how much at most until its end.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "actors/world/world.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/net/forced_spin.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr int64_t elements = 250'000; // of f32: 1 MB

// Most megabytes that this process had in memory at one time, as Linux counts them.
double resident_megabytes_max() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  while (status >> word && word != "VmHWM:")
    ;
  double kibibytes = 0;
  status >> kibibytes;
  return kibibytes * 1024 / 1e6;
}

socket_network_options network_of(node_index self, uint16_t port, uint64_t window_mb) {
  return {.job = "memory",
          .nodes = {{"reader", fmt::format("127.0.0.1:{}", port)}, {"sender", ""}},
          .self = self,
          .window_bytes = window_mb * 1'000'000,
          .message_bytes_max = 4'000'000,
          .spin = test::forced_spin()};
}

/// The other node is gone, and why.
class goodbye {
public:
  explicit goodbye(socket_network& network) {
    network.on_loss([this](node_index, const error& why) {
      std::lock_guard guard{mutex_};
      why_ = why.message;
      is_said_ = true;
      said_.notify_all();
    });
  }

  [[nodiscard]] bool is_said() const { return is_said_; }

  std::string wait() {
    std::unique_lock lock{mutex_};
    said_.wait_for(lock, 60s, [this] { return is_said_.load(); });
    return why_;
  }

private:
  std::mutex mutex_;
  std::condition_variable said_;
  std::atomic<bool> is_said_ = false;
  std::string why_;
};

void print(const char* who, double before, int messages, const std::string& why) {
  std::printf("%s: %.1f MB when they had met, %.1f MB at most, %d messages; %s\n", who, before,
              resident_megabytes_max(), messages, why.c_str());
  std::fflush(stdout);
}

int read_slowly(uint16_t port, uint64_t window_mb, std::chrono::milliseconds pause) {
  auto world = world::threads();
  auto network = socket_network::open(world.system(), network_of(0, port, window_mb)).value();
  goodbye ended{*network};
  std::atomic<int> count = 0;
  auto reader = world.system().spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](const msg<wire::Token>& token) { return token; },
            [&, pause](const msg<wire::PushGradient>&) {
              std::this_thread::sleep_for(pause);
              ++count;
              return make_push_reply(verdict::accepted, 0, 0);
            }};
  });
  network->here()->publish("reader", caf::actor_cast<caf::strong_actor_ptr>(reader));
  static_cast<void>(network->arrival(1).get());
  auto before = resident_megabytes_max();
  std::printf("met\n");
  std::fflush(stdout);
  auto why = ended.wait();
  print("reader", before, count, why);
  std::_Exit(0); // what is still in the mailbox is of no interest
}

/// Sends so many, of which only some are unanswered at a time.
caf::behavior pusher(caf::event_based_actor* self, const caf::actor& to, int count, int unanswered,
                     const std::shared_ptr<std::promise<void>>& done) {
  struct progress {
    int sent = 0;
    int answered = 0;
  };

  auto so_far = std::make_shared<progress>();
  auto push = [=] {
    if (so_far->sent == count) return;
    ++so_far->sent;
    auto gradient = make_push_gradient({}, zeros({elements}));
    self->request(to, caf::infinite, gradient).then([=](const msg<wire::PushReply>&) {
      if (++so_far->answered == count) done->set_value();
      self->send(self, 1);
    });
  };
  for (int i = 0; i < unanswered; ++i)
    self->send(self, 1);
  return {[push](int) { push(); }};
}

int send_quickly(uint16_t port, uint64_t window_mb, int count, int unanswered_max) {
  auto world = world::threads();
  auto network = socket_network::open(world.system(), network_of(1, port, window_mb)).value();
  goodbye ended{*network};
  auto at = network->arrival(0).get().value();
  std::promise<caf::strong_actor_ptr> found;
  network->here()->find(at, "reader", [&](auto actor) { found.set_value(actor.value()); });
  auto reader = caf::actor_cast<caf::actor>(found.get_future().get());
  auto before = resident_megabytes_max();
  std::printf("met\n");
  std::fflush(stdout);
  int sent = 0;
  if (unanswered_max > 0) {
    auto done = std::make_shared<std::promise<void>>();
    auto all_sent = done->get_future();
    world.system().spawn(pusher, reader, count, unanswered_max, done);
    while (all_sent.wait_for(10ms) != std::future_status::ready && !ended.is_said())
      ;
    sent = count;
  }
  for (; sent < count && !ended.is_said(); ++sent)
    caf::anon_send(reader, make_push_gradient({}, zeros({elements})));
  auto has_answers = unanswered_max > 0 && !ended.is_said();
  auto why = has_answers ? "all were answered" : ended.wait();
  print("sender", before, sent, why);
  std::this_thread::sleep_for(std::chrono::milliseconds{500}); // its link tells the reader why
  std::_Exit(0);
}

} // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  auto port = static_cast<uint16_t>(std::atoi(words[2]));
  auto window_mb = static_cast<uint64_t>(std::atoi(words[3]));
  if (words[1] == std::string_view{"reader"})
    return read_slowly(port, window_mb, std::chrono::milliseconds{std::atoi(words[4])});
  return send_quickly(port, window_mb, std::atoi(words[4]), count > 5 ? std::atoi(words[5]) : 0);
}
