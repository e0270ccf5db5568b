// SPDX-License-Identifier: Apache-2.0
// The cost of messages to another process: a raw blocking socket (the machine's limit), actors of
// two nodes, and actors over CAF's own middleman, in turns in one run; medians of the turns.
//
// Without arguments both processes are of this machine, and two more are measured that speak by TCP
// although they need not. Between two machines, or two network namespaces: `links serve HOST PORT`
// at HOST, which uses four ports from there, then `links ask HOST PORT`. TROUPE_SPIN_US as for a
// server.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "actors/world/world.hpp"
#include "benchmarks/resident_memory.hpp"
#include "benchmarks/spin.hpp"
#include "benchmarks/stopwatch.hpp"
#include "messages/training_message.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <netinet/tcp.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr size_t small_bytes = 64;
constexpr int round_trips = 2000;
constexpr int small_messages = 100'000;
constexpr int turns = 5;

// A request with a deadline would stay in the clock until it is over, so actors ask without one.
const auto for_ever = caf::infinite; // the benchmark's caller has one

/// One of the links that are compared, with the operations that are measured.
struct peer {
  virtual ~peer() = default;

  /// Asks and waits for the answer.
  virtual void round_trip() = 0;

  /// Has an event-based actor ask `count` times, one after the other.
  virtual void round_trips_of_actor(int /*count*/) {}

  /// Makes the message that is sent from now on.
  virtual void prepare(size_t bytes) = 0;

  /// Begins to send the message `count` times, and does not wait.
  virtual void begin(int /*count*/) {}

  /// Waits until the last message of `begin` has come.
  virtual void await() {}

  /// Sends the message `count` times, and waits until the last has come.
  virtual void send(int count) {
    begin(count);
    await();
  }
};

// ---- a raw socket ----

void write_all(int socket, const void* from, size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    auto written = ::write(socket, at, bytes);
    if (written <= 0) std::exit(1);
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void read_all(int socket, void* into, size_t bytes) {
  for (auto* at = static_cast<char*>(into); bytes > 0;) {
    auto count = ::read(socket, at, bytes);
    if (count <= 0) std::_Exit(0);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

/// The number and size of the messages that follow, after which one byte goes back.
struct announcement {
  uint64_t count;
  uint64_t bytes;
};

sockaddr_in address_of(const std::string& host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

int without_delay(int socket) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void serve_raw(const std::string& host, uint16_t port) {
  int door = ::socket(AF_INET, SOCK_STREAM, 0);
  int on = 1;
  ::setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto address = address_of(host, port);
  if (::bind(door, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::exit(1);
  ::listen(door, 1);
  int socket = without_delay(::accept(door, nullptr, nullptr));
  std::vector<char> memory(100'000'000);
  while (true) {
    announcement next{};
    read_all(socket, &next, sizeof next);
    for (uint64_t i = 0; i < next.count; ++i)
      read_all(socket, memory.data(), next.bytes);
    write_all(socket, "!", 1);
  }
}

struct raw_peer final : peer {
  raw_peer(const std::string& host, uint16_t port)
    : socket{without_delay(::socket(AF_INET, SOCK_STREAM, 0))},
      memory(sizeof(announcement) + 100'000'000) {
    auto address = address_of(host, port);
    while (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      std::this_thread::sleep_for(10ms);
  }

  void round_trip() override { send(1); }

  void prepare(size_t bytes) override { message_bytes = bytes; }

  // The announcement lies before the message, and goes out with the first.
  void send(int count) override {
    announcement next{static_cast<uint64_t>(count), message_bytes};
    std::memcpy(memory.data(), &next, sizeof next);
    write_all(socket, memory.data(), sizeof next + message_bytes);
    for (int i = 1; i < count; ++i)
      write_all(socket, memory.data() + sizeof next, message_bytes);
    char answer = 0;
    read_all(socket, &answer, 1);
  }

  int socket;
  size_t message_bytes = small_bytes;
  std::vector<char> memory;
};

// ---- actors that ask ----

template <class Reply>
struct asker {
  caf::actor server;
  caf::message question;
  int left;
  std::promise<void> done;
};

template <class Reply>
void ask_again(caf::event_based_actor* self, const std::shared_ptr<asker<Reply>>& state) {
  if (state->left-- == 0) return state->done.set_value();
  self->request(state->server, for_ever, state->question).then([=](const Reply&) {
    ask_again(self, state);
  });
}

template <class Reply>
void ask_in_turn(caf::actor_system& system, const caf::actor& server, caf::message question,
                 int count) {
  auto state = std::make_shared<asker<Reply>>(asker<Reply>{server, std::move(question), count, {}});
  auto done = state->done.get_future();
  system.spawn([state](caf::event_based_actor* self) { ask_again(self, state); });
  done.wait();
}

// ---- actors of ours ----

// Answers tokens. Answers gradients of examples > 0 only: the last of a row.
caf::behavior troupe_server(caf::event_based_actor* /*self*/) {
  return {[](const msg<wire::Token>& token) { return token; },
          [](const msg<wire::PushGradient>& push) -> caf::result<msg<wire::PushReply>> {
            if (push.reader().getOrigin().getExamples() == 0)
              return caf::delegated<msg<wire::PushReply>>{};
            return make_push_reply(verdict::accepted, 0, 0);
          }};
}

socket_network_options network_of(node_index self, const std::string& host, uint16_t port,
                                  bool local_sockets = true) {
  return {.job = "bench",
          .nodes = {{"server", fmt::format("{}:{}", host, port)}, {"client", ""}},
          .self = self,
          .insecure_network = true,
          .local_sockets = local_sockets,
          .spin = spin_of_environment()};
}

void serve_troupe(const std::string& host, uint16_t port) {
  auto world = world::threads();
  auto network = socket_network::open(world.system(), network_of(0, host, port)).value();
  auto server = world.system().spawn(troupe_server);
  network->here()->publish("server", caf::actor_cast<caf::strong_actor_ptr>(server));
  while (true)
    std::this_thread::sleep_for(1s);
}

/// Asks from outside the actors, as `scoped_actor` does.
struct troupe_peer final : peer {
  troupe_peer(const std::string& host, uint16_t port, bool local_sockets = true)
    : network{socket_network::open(world.system(), network_of(1, host, port, local_sockets))
                .value()},
      self{world.system()} {
    auto at = network->arrival(0).get().value();
    std::promise<caf::strong_actor_ptr> found;
    network->here()->find(at, "server", [&](auto actor) { found.set_value(actor.value()); });
    server = caf::actor_cast<caf::actor>(found.get_future().get());
  }

  void round_trip() override {
    self->request(server, for_ever, token).receive([](const msg<wire::Token>&) {}, give_up);
  }

  void round_trips_of_actor(int count) override {
    ask_in_turn<msg<wire::Token>>(world.system(), server, caf::make_message(token), count);
  }

  void prepare(size_t bytes) override {
    auto gradient = zeros({static_cast<int64_t>(bytes / sizeof(float))});
    one_of_many = make_push_gradient({}, gradient);
    the_last = make_push_gradient({.examples = 1}, gradient);
  }

  void begin(int count) override {
    for (int i = 1; i < count; ++i)
      self->send(server, one_of_many);
    last = self->request(server, for_ever, the_last);
  }

  void await() override {
    last->receive([](const msg<wire::PushReply>&) {}, give_up);
  }

  static void give_up(const caf::error& reason) {
    std::fprintf(stderr, "%s\n", from_caf(reason).message.c_str());
    std::exit(1);
  }

  troupe::world world = world::threads();
  std::unique_ptr<socket_network> network;
  caf::scoped_actor self;
  caf::actor server;
  msg<wire::Token> token = make_token(1);
  msg<wire::PushGradient> one_of_many;
  msg<wire::PushGradient> the_last;
  using waiting = decltype(self->request(server, for_ever, the_last));
  std::optional<waiting> last;
};

// ---- CAF's middleman ----

using bytes_message = std::vector<char>;

struct caf_config : caf::actor_system_config {
  caf_config() {
    load<caf::io::middleman>();
    set("scheduler.policy", caf::atom("sharing"));
    set("middleman.max-consecutive-reads", 1000);
    add_message_type<bytes_message>("bytes_message");
  }
};

// Answers messages that begin with 1.
caf::behavior caf_server(caf::event_based_actor* /*self*/) {
  return {[](const bytes_message& bytes) -> caf::result<int> {
    if (bytes[0] == 0) return caf::delegated<int>{};
    return 1;
  }};
}

void serve_caf(const std::string& host, uint16_t port) {
  caf_config config;
  caf::actor_system system{config};
  auto server = system.spawn(caf_server);
  if (!system.middleman().publish(server, port, host.c_str(), true)) std::exit(1);
  while (true)
    std::this_thread::sleep_for(1s);
}

struct caf_peer final : peer {
  caf_peer(const std::string& host, uint16_t port) {
    while (true) {
      if (auto found = system.middleman().remote_actor(host, port)) {
        server = *found;
        return;
      }
      std::this_thread::sleep_for(10ms);
    }
  }

  void round_trip() override {
    self->request(server, for_ever, small).receive([](int) {}, troupe_peer::give_up);
  }

  void round_trips_of_actor(int count) override { ask_in_turn<int>(system, server, small, count); }

  void prepare(size_t bytes) override {
    bytes_message message(bytes);
    one_of_many = caf::make_message(message);
    message[0] = 1;
    the_last = caf::make_message(std::move(message));
  }

  void begin(int count) override {
    for (int i = 1; i < count; ++i)
      self->send(server, one_of_many);
    last = self->request(server, for_ever, the_last);
  }

  void await() override {
    last->receive([](int) {}, troupe_peer::give_up);
  }

  caf_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  caf::actor server;
  caf::message small = caf::make_message(bytes_message(small_bytes, 1));
  caf::message one_of_many;
  caf::message the_last;
  using waiting = decltype(self->request(server, for_ever, the_last));
  std::optional<waiting> last;
};

// ---- the measurements ----

struct figures {
  std::vector<double> round_trip;
  std::vector<double> round_trip_of_actor; ///< Asked by an event-based actor.
  std::vector<double> small_rate;
  std::vector<double> megabyte;
  std::vector<double> hundred_megabytes;
  std::vector<double> token; ///< While 1 GB is on its way.
};

void measure(peer& with, figures& into, bool has_actors) {
  for (int i = 0; i < 100; ++i)
    with.round_trip();
  auto begin = clock_type::now();
  for (int i = 0; i < round_trips; ++i)
    with.round_trip();
  into.round_trip.push_back(seconds_since(begin) / round_trips);
  begin = clock_type::now();
  with.round_trips_of_actor(round_trips);
  if (has_actors) into.round_trip_of_actor.push_back(seconds_since(begin) / round_trips);
  with.prepare(small_bytes);
  begin = clock_type::now();
  with.send(small_messages);
  into.small_rate.push_back(small_messages / seconds_since(begin));
  with.prepare(1'000'000);
  with.send(20);
  begin = clock_type::now();
  with.send(500);
  into.megabyte.push_back(0.5 / seconds_since(begin));
  with.prepare(100'000'000);
  with.send(1);
  begin = clock_type::now();
  with.send(5);
  into.hundred_megabytes.push_back(0.5 / seconds_since(begin));
  if (has_actors) {
    with.begin(10);
    begin = clock_type::now();
    for (int i = 0; i < 20; ++i) {
      auto sent = clock_type::now();
      with.round_trip();
      into.token.push_back(seconds_since(sent));
    }
    with.await();
  }
  with.prepare(small_bytes);
}

void print(const char* name, const figures& own, const figures& limit) {
  auto ratio = [](const std::vector<double>& ours, const std::vector<double>& theirs) {
    return quantile(ours, 0.5) / quantile(theirs, 0.5);
  };
  std::printf("  %-22s %7.1f %5.2f", name, 1e6 * quantile(own.round_trip, 0.5),
              ratio(own.round_trip, limit.round_trip));
  if (own.round_trip_of_actor.empty())
    std::printf("               ");
  else
    std::printf(" %8.1f %5.2f", 1e6 * quantile(own.round_trip_of_actor, 0.5),
                ratio(own.round_trip_of_actor, limit.round_trip));
  std::printf(" %10.0f %5.2f %8.2f %5.2f %8.2f %5.2f", quantile(own.small_rate, 0.5),
              ratio(own.small_rate, limit.small_rate), quantile(own.megabyte, 0.5),
              ratio(own.megabyte, limit.megabyte), quantile(own.hundred_megabytes, 0.5),
              ratio(own.hundred_megabytes, limit.hundred_megabytes));
  if (!own.token.empty())
    std::printf(" %8.2f %8.2f", 1e3 * quantile(own.token, 0.5), 1e3 * quantile(own.token, 1));
  std::printf("\n");
}

void ask(const std::string& host, uint16_t port, bool is_here) {
  raw_peer raw{host, port};
  troupe_peer ours{host, static_cast<uint16_t>(port + 1)};
  caf_peer caf{host, static_cast<uint16_t>(port + 2)};
  std::optional<troupe_peer> by_tcp;
  if (is_here) by_tcp.emplace(host, static_cast<uint16_t>(port + 3), false);
  figures of_raw;
  figures of_ours;
  figures of_caf;
  figures of_tcp;
  for (int turn = 0; turn < turns; ++turn) {
    measure(raw, of_raw, false);
    measure(ours, of_ours, true);
    measure(caf, of_caf, true);
    if (by_tcp) measure(*by_tcp, of_tcp, true);
  }
  std::printf(
    "                         round trip       of actors   64 B messages  1 MB messages  "
    "100 MB messages  token, ms, behind 1 GB\n"
    "                              us x raw       us x raw        1/s x raw     GB/s x raw "
    "    GB/s x raw   median      max\n");
  print("raw blocking socket", of_raw, of_raw);
  print("actors of two nodes", of_ours, of_raw);
  if (by_tcp) print("the same, by TCP", of_tcp, of_raw);
  print("CAF's middleman", of_caf, of_raw);
  std::printf("memory of the asking side, at most: %.0f MB\n", resident_megabytes_max());
}

using server = void (*)(const std::string&, uint16_t);

constexpr server servers[] = {serve_raw, serve_troupe, serve_caf, serve_troupe};

std::vector<pid_t> start_servers(const std::string& host, uint16_t port) {
  std::vector<pid_t> children;
  for (auto serve : servers) {
    auto child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(host, port);
    }
    children.push_back(child);
    ++port;
  }
  return children;
}

} // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string role = count > 1 ? words[1] : "both";
  std::string host = count > 2 ? words[2] : "127.0.0.1";
  auto port = static_cast<uint16_t>(count > 3 ? std::atoi(words[3]) : 20'000 + ::getpid() % 20'000);
  std::vector<pid_t> children;
  if (role != "ask") children = start_servers(host, port);
  if (role == "serve") return ::pause();
  ask(host, port, role == "both");
  for (auto child : children)
    ::kill(child, SIGKILL);
  while (::wait(nullptr) > 0)
    ;
  std::fflush(stdout);
  std::_Exit(0); // the actors' own end is not measured
}
