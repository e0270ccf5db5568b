// SPDX-License-Identifier: Apache-2.0
// Listening, dialing, and which nodes are there or gone.
#include "actors/net/sockets/socket_network.hpp"

#include "actors/interfaces/message_kind.hpp"
#include "actors/net/host_port.hpp"
#include "actors/net/network_messages.hpp"
#include "actors/net/sockets/actor_ends.hpp"
#include "actors/net/sockets/connection_acceptor.hpp"
#include "actors/net/sockets/link.hpp"
#include "actors/net/sockets/local_socket.hpp"
#include "actors/net/sockets/name_lookup.hpp"
#include "actors/net/sockets/peer_admission.hpp"
#include "actors/net/sockets/read_watch.hpp"
#include "actors/net/sockets/reading_threads.hpp"
#include "actors/net/sockets/tcp_dial.hpp"
#include "actors/net/sockets/warning_queue.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <ratio>
#include <set>
#include <thread>

namespace troupe {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

// Strangers: connections with a peer that has not said hello, has not had ours, or is being
// refused. Room for as many as there are nodes, which may all dial at once, and at least for these.
constexpr size_t strangers_max_least = 64;

// So many different lines about refused peers are written.
constexpr size_t told_max = 100;

constexpr milliseconds connect_timeout{2000};
constexpr milliseconds redial_min{20};
constexpr milliseconds redial_max{1000};

// Each life begins with a tick of its own, which tells a node that is started again at once from
// its former life. Good until 2032.
uint32_t new_incarnation() {
  using tick = std::chrono::duration<int64_t, std::ratio<1, 20>>;
  constexpr std::chrono::sys_days begin{std::chrono::year{2026} / 1 / 1};
  auto since = std::chrono::system_clock::now() - begin;
  auto next = std::chrono::floor<tick>(since) + tick{1};
  std::this_thread::sleep_for(next - since);
  return static_cast<uint32_t>(std::max<int64_t>(1, next.count()));
}

} // namespace

/// Lives as long as its threads, and as the links' callbacks.
class socket_network::implementation {
public:
  implementation(caf::actor_system& system, socket_network& carrier, socket_network_options options)
    : options_(std::move(options)), warnings_(options_.on_warning), members_(options_.nodes.size()),
      here_(node::make(system, carrier, {options_.self, new_incarnation()},
                       options_.nodes[options_.self].name)),
      io_(std::make_shared<asio::io_context>(1)), work_(io_->get_executor()),
      door_(
        *io_, [this](stream_socket socket) { let_in(std::move(socket)); },
        [this](const std::string& line) { warn(line); }),
      threads_(system, *io_, reads_,
               options_.spin.value_or(usual_spin(processors_of_this_process()))) {
    for (auto& member : members_)
      member.arrival = member.arrived.get_future().share();
    members_[options_.self].address = here_->address();
    settle(members_[options_.self], here_->address());
  }

  expected<void> open() {
    if (options_.tls) {
      auto identity = load_tls_identity(*options_.tls);
      if (!identity) return tl::unexpected<error>(identity.error());
      identity_ = std::move(*identity);
    }
    if (!options_.nodes[options_.self].address.empty() && is_dialed())
      if (auto opened = door_.open(options_); !opened) return opened;
    for (node_index peer = 0; peer < options_.self; ++peer)
      if (talks_to(peer)) {
        auto where = parse_host_port(options_.nodes[peer].address);
        if (!where)
          return fail(where.error().code,
                      fmt::format("{}: {}", options_.nodes[peer].name, where.error().message));
        asio::post(*io_, [this, peer] { dial(peer); });
      }
    threads_.start();
    return {};
  }

  void leave(milliseconds timeout) {
    if (!threads_.have_started()) return;
    std::promise<void> left;
    auto done = left.get_future();
    asio::post(*io_, [&] {
      is_leaving_ = true;
      on_everybody_left_ = [&] { left.set_value(); };
      close_doors();
      for (auto& member : members_)
        if (auto with = member.link) with->leave();
      look_who_is_left();
    });
    auto in_time = done.wait_for(timeout) == std::future_status::ready;
    asio::post(*io_, [this, in_time] {
      on_everybody_left_ = {};
      if (!in_time)
        for (auto& member : members_)
          if (auto with = member.link) with->end({errc::deadline_exceeded, "it reads too slowly"});
      work_.reset(); // the threads end with the last handler
    });
    threads_.join();
    warnings_.end();
    here_->disconnect(); // actors may have last words for nodes that are gone
    std::lock_guard guard{mutex_};
    for (auto& member : members_)
      if (!member.has_arrived) settle(member, fail(errc::cancelled, "this node has left"));
  }

  [[nodiscard]] const std::shared_ptr<node>& here() const { return here_; }

  [[nodiscard]] std::string name_of(node_index node) const {
    return troupe::name_of(options_, node);
  }

  std::shared_future<expected<node_address>> arrival(node_index node) {
    std::lock_guard guard{mutex_};
    return members_.at(node).arrival;
  }

  [[nodiscard]] std::string trouble_with(node_index node) const {
    std::lock_guard guard{mutex_};
    return members_.at(node).trouble;
  }

  void give_up(node_index peer, const std::string& why) {
    asio::post(*io_, [this, peer, why] {
      if (auto with = members_.at(peer).link) with->end({errc::unavailable, why});
    });
  }

  void on_loss(std::function<void(node_index, const error&)> tell) {
    std::lock_guard guard{mutex_};
    on_loss_ = std::move(tell);
  }

  [[nodiscard]] const std::string& listening_at() const { return door_.address(); }

  void send(parcel message) {
    auto encoded = encode_parcel(message, options_.messages.get());
    if (!encoded) {
      warn(
        fmt::format("a message for {}: {}", name_of(message.to.at.node), encoded.error().message));
      return refuse(message, encoded.error());
    }
    auto with = link_to(message.to.at);
    if (!with)
      return answer(
        message, {errc::unavailable, fmt::format("{} is not there", name_of(message.to.at.node))});
    if (message.kind == parcel::content_kind::down && with->has_waiting(lane::bulk)) {
      encoded->header.id = in_both_lanes;
      auto again = *encoded;
      again.header.lane = lane::bulk;
      with->send(std::move(again));
    }
    with->send(std::move(*encoded));
  }

private:
  /// Another node, as far as it is known.
  struct member {
    std::shared_ptr<troupe::link> link; ///< While it is there.
    node_address address;               ///< Its address in its present life, or in its last.
    std::promise<expected<node_address>> arrived;
    std::shared_future<expected<node_address>> arrival;
    bool has_arrived = false; ///< `arrived` has its value.
    std::string trouble;      ///< Why it did not come when it last dialed, or was dialed.
    uint64_t last_step = no_step;
    actor_ends ends;
    milliseconds redial = redial_min;
    std::optional<steady_clock::time_point> refused_since;
  };

  // ---- the door ----

  [[nodiscard]] bool talks_to(node_index peer) const { return troupe::talks_to(options_, peer); }

  [[nodiscard]] bool is_dialed() const {
    for (auto peer = options_.self + 1; peer < options_.nodes.size(); ++peer)
      if (talks_to(peer)) return true;
    return false;
  }

  void let_in(stream_socket socket) {
    if (strangers_.size() >= std::max(strangers_max_least, members_.size())) {
      auto silent = std::ranges::find(strangers_, false, &troupe::link::is_greeted);
      auto oldest = silent != strangers_.end() ? *silent : strangers_.front();
      oldest->drop({errc::limit_exceeded, "too many are at the door"});
    }
    auto comes = make_link(std::move(socket), {});
    strangers_.push_back(comes);
    comes->start();
  }

  void close_doors() {
    door_.close();
    for (auto* timer : timers_)
      timer->cancel();
    for (const auto& stranger : std::deque{strangers_})
      stranger->end({errc::cancelled, "it leaves"});
    for (const auto& dialed : std::exchange(dialed_, {}))
      dialed->leave();
  }

  // ---- dialing ----

  void dial(node_index peer) {
    if (is_leaving_) return;
    auto where = *parse_host_port(options_.nodes[peer].address);
    if (members_[peer].trouble.empty())
      trouble(peer, fmt::format("the name of host '{}' is not resolved yet", where.host));
    look_up(io_, where.host, std::to_string(where.port),
            [this, peer, host = where.host](expected<endpoint_list> found) {
              if (is_leaving_) return;
              if (found)
                return connect(peer, reachable(host, std::move(*found), options_.own_addresses));
              trouble(peer, found.error().message);
              dial_again(peer);
            });
  }

  void connect(node_index peer, const endpoint_list& endpoints) {
    if (goes_past_network(options_))
      if (auto reached = connect_locally(*io_, endpoints)) return greet(peer, std::move(*reached));
    connect_to_one(peer, endpoints, 0);
  }

  // One after the other: each has its time, for the first may be one that drops what comes.
  void connect_to_one(node_index peer, const endpoint_list& endpoints, size_t which) {
    auto socket = open_to_dial(*io_, endpoints[which]);
    auto timer = std::make_shared<asio::steady_timer>(*io_, connect_timeout);
    timers_.insert(timer.get());
    timer->async_wait([this, timer, socket](const error_code&) { // late, over, or we leave
      timers_.erase(timer.get());
      error_code ignored;
      socket->close(ignored);
    });
    socket->async_connect(endpoints[which], [this, peer, endpoints, which, socket,
                                             timer](const error_code& failed) {
      auto reached = std::move(*socket);
      timer->cancel();
      if (is_leaving_) return;
      auto why_not = dial_failure(failed, reached);
      if (!why_not) return greet(peer, std::move(reached));
      trouble(peer, std::move(*why_not));
      which + 1 < endpoints.size() ? connect_to_one(peer, endpoints, which + 1) : dial_again(peer);
    });
  }

  void greet(node_index peer, stream_socket reached) {
    trouble(peer, "it sends no hello; is it a task of this job?");
    auto dialed = make_link(std::move(reached), peer);
    dialed_.insert(dialed);
    dialed->start();
  }

  void trouble(node_index peer, std::string why) {
    std::lock_guard guard{mutex_};
    members_[peer].trouble = std::move(why);
  }

  void dial_again(node_index peer) {
    if (is_leaving_) return;
    auto& member = members_[peer];
    later(member.redial, [this, peer] { dial(peer); });
    member.redial = std::min(2 * member.redial, redial_max);
  }

  void later(milliseconds wait, std::function<void()> action) {
    auto timer = std::make_shared<asio::steady_timer>(*io_, wait);
    timers_.insert(timer.get());
    timer->async_wait([this, timer, action = std::move(action)](const error_code& failed) {
      timers_.erase(timer.get());
      if (!failed) action();
    });
  }

  // ---- links ----

  std::shared_ptr<troupe::link> make_link(stream_socket socket, std::optional<node_index> dialed) {
    link_options options{.self = greeting_of(options_, here_->address().incarnation),
                         .is_dialer = dialed.has_value(),
                         .silence_timeout = options_.silence_timeout,
                         .message_bytes_max = options_.message_bytes_max,
                         .part_bytes_max = options_.part_bytes_max,
                         .arrays = here_->arrays()};
    link::callbacks callbacks{
      .on_hello
      = [this, dialed](link& at, const greeting& peer) { return judge(at, peer, dialed); },
      .on_up = [this](link& with) { welcome(with); },
      .on_parcel
      = [this](link& from, received_frame frame) { return receive(from, std::move(frame)); },
      .on_end = [this, dialed](link& with, const error& why) { on_end(with, dialed, why); },
      .on_closed = [this](link& with) { std::erase(strangers_, with.shared_from_this()); },
      .on_warning
      = [this](link& with,
               const std::string& line) { warn(name_of(with.peer().node) + ": " + line); },
      .on_recalled =
        [this](link&, const frame_header& of) {
          answer({.from = of.from, .id = of.id}, {errc::cancelled, "the message was recalled"});
        }};
    return std::make_shared<link>(io_, make_byte_stream(std::move(socket), identity_, reads_),
                                  std::move(options), std::move(callbacks));
  }

  // Whether a peer may come in, or is the node that was dialed.
  expected<void> judge(link& at, const greeting& peer, std::optional<node_index> dialed) {
    auto accepted
      = judge_admission(options_, peer, dialed).and_then([&] { return judge_life(at, peer); });
    if (accepted || dialed) return accepted;
    auto line = fmt::format("{} is refused: {}", at.peer_address(), accepted.error().message);
    if (peer.node > options_.self && peer.node < members_.size() && !members_[peer.node].link)
      trouble(peer.node, line); // told to callers that wait for the node in vain
    if (is_lost(peer) || told_.size() >= told_max) return accepted; // a lost one was told of before
    auto code = static_cast<int>(accepted.error().code);
    if (told_.insert(fmt::format("{} {} {}", code, peer.node, peer.job)).second) warn(line);
    return accepted;
  }

  // Whether it was here already.
  [[nodiscard]] bool is_lost(const greeting& peer) const {
    return peer.node < members_.size() && !members_[peer.node].link
           && peer.incarnation == members_[peer.node].address.incarnation;
  }

  // Whether it is the first of its name.
  expected<void> judge_life(link& at, const greeting& peer) {
    auto& member = members_[peer.node];
    if (member.link && member.link->silence() < options_.alive_for)
      return fail(errc::invalid_argument,
                  fmt::format("{} is there already, from {}; two processes have the same task "
                              "index, this one is at {}{}",
                              name_of(peer.node), member.link->peer_address(), at.peer_address(),
                              free_task(options_, [this](node_index node) {
                                return members_[node].link != nullptr;
                              })));
    if (is_lost(peer))
      return fail(errc::failed_precondition,
                  fmt::format("{} was given up, and no process is taken in twice; start it again",
                              name_of(peer.node)));
    if (peer.incarnation <= member.address.incarnation)
      return fail(errc::failed_precondition,
                  fmt::format("{} began no later than the one before it; is its clock right?",
                              name_of(peer.node)));
    if (member.link) member.link->end({errc::unavailable, "it began a new life"});
    return {};
  }

  void welcome(link& with) {
    auto with_shared = with.shared_from_this();
    std::erase(strangers_, with_shared);
    dialed_.erase(with_shared);
    auto& member = members_[with.peer().node];
    member.redial = redial_min;
    member.refused_since.reset();
    std::lock_guard guard{mutex_}; // all at once: what was for a former life goes to no other link
    member.link = with_shared;
    member.address = {with.peer().node, with.peer().incarnation};
    member.trouble.clear();
    member.last_step = no_step;
    member.ends = {};
    settle(member, member.address);
  }

  // @pre `mutex_` is held.
  static void settle(member& peer, expected<node_address> arrived) {
    if (peer.has_arrived) await_again(peer);
    peer.has_arrived = true;
    peer.arrived.set_value(std::move(arrived));
  }

  // @pre `mutex_` is held.
  static void await_again(member& peer) {
    peer.has_arrived = false;
    peer.arrived = {};
    peer.arrival = peer.arrived.get_future().share();
  }

  void on_end(link& with, std::optional<node_index> dialed, const error& why) {
    auto peer = with.shared_from_this();
    auto was_stranger = std::ranges::find(strangers_, peer) != strangers_.end();
    if (!was_stranger) strangers_.push_back(peer); // until it is closed
    dialed_.erase(peer);
    auto found = std::ranges::find(members_, peer, &member::link);
    if (found != members_.end())
      lose(*found, why);
    else if (dialed)
      on_refused(*dialed, why);
    else if (was_stranger)
      on_stranger_gone(with, why);
    look_who_is_left();
    if (dialed) dial_again(*dialed);
  }

  void lose(member& gone, const error& why) {
    auto index = gone.address.node;
    auto step = gone.last_step == no_step
                  ? std::string{}
                  : fmt::format("; last heard of at step {}", gone.last_step);
    error reason{errc::unavailable,
                 fmt::format("{} is gone: {}{}", name_of(index), why.message, step)};
    auto told = why.code == errc::cancelled ? error{errc::cancelled, reason.message} : reason;
    std::function<void(node_index, const error&)> tell;
    {
      std::lock_guard guard{mutex_};
      tell = on_loss_;
      await_again(gone);
    }
    here_->lose(gone.address, reason);
    {
      std::lock_guard guard{mutex_};
      gone.link.reset(); // last: until the node knows why, no sender is told that there is no link
    }
    if (tell) tell(index, told);
  }

  // A node may be awaited that comes with the wrong certificate; other noise is not worth a word.
  void on_stranger_gone(const link& with, const error& why) {
    if (!is_leaving_ && why.message.starts_with("TLS: ") && told_.size() < told_max
        && told_.insert(why.message).second)
      warn(fmt::format("{} is refused: {}", with.peer_address(), why.message));
  }

  // A peer that does not want us, or that we do not want.
  void on_refused(node_index peer, const error& why) {
    if (is_leaving_) return;
    auto& member = members_[peer];
    auto now = steady_clock::now();
    auto is_first = !member.refused_since;
    if (is_first) member.refused_since = now;
    // A process that was there before us may be dead, and not be known to be so yet.
    auto is_final
      = why.code == errc::failed_precondition
        || (why.code == errc::invalid_argument
            && now - *member.refused_since > options_.silence_timeout + options_.alive_for);
    auto known = why.message;
    if (why.code == errc::unavailable)
      known += "; it has ended, or is no task of this job, or only one of the two uses TLS";
    trouble(peer, known);
    auto line = fmt::format("{}: {}", name_of(peer), known);
    auto is_news = is_final && !member.has_arrived; // to callers that wait for it
    if (is_news) {
      std::lock_guard guard{mutex_};
      settle(member, fail(errc::failed_precondition, line));
    } else if (is_first) {
      warn(line);
    }
  }

  void look_who_is_left() {
    auto nobody = std::ranges::all_of(members_, [](const auto& one) { return !one.link; });
    if (is_leaving_ && nobody && on_everybody_left_) std::exchange(on_everybody_left_, {})();
  }

  // ---- parcels ----

  expected<void> receive(link& from, received_frame frame) {
    const auto& header = frame.header;
    auto& sender = members_[from.peer().node];
    if (header.from.at.node >= members_.size())
      return fail(errc::malformed, "frame header: from a node that there is not");
    auto speaks_for_itself
      = header.content == content_code::down || header.content == content_code::found;
    if (speaks_for_itself && header.from.at != sender.address)
      return fail(errc::malformed, "frame header: it speaks of an actor that is not its own");
    auto message
      = decode_parcel(here_->address(), header, std::move(frame.body), options_.messages.get());
    if (!message) return tl::unexpected<error>(message.error());
    if (message->kind == parcel::content_kind::down && header.id == in_both_lanes) {
      auto why = sender.ends.come(header.from.actor, header.lane, reason_in(message->content));
      if (!why) return {};
      message->content = caf::make_message(*std::move(why));
    }
    if (auto step = step_of(message->content); step != no_step) sender.last_step = step;
    here_->deliver(std::move(*message), threads_.host(header.body_bytes));
    return {};
  }

  std::shared_ptr<link> link_to(const node_address& where) {
    std::lock_guard guard{mutex_};
    if (where.node >= members_.size()) return nullptr;
    const auto& member = members_[where.node];
    return member.address == where ? member.link : nullptr;
  }

  // The sender of a request gets an answer, even if it is this node's.
  void answer(const parcel& question, const error& why) {
    if (caf::make_message_id(question.id).is_request()) refuse(question, why);
  }

  void refuse(const parcel& message, const error& why) {
    auto refusal = refusal_of(message, why); // its asker may be at another node
    if (refusal && refusal->to.at != here_->address()) return send(std::move(*refusal));
    if (refusal) here_->deliver(std::move(*refusal));
  }

  void warn(std::string line) { warnings_.tell(std::move(line)); }

  socket_network_options options_;
  warning_queue warnings_;
  std::vector<member> members_;
  std::shared_ptr<node> here_;
  std::shared_ptr<tls_identity> identity_;
  read_watch reads_;
  std::shared_ptr<asio::io_context> io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  connection_acceptor door_;
  std::set<asio::steady_timer*> timers_;
  std::deque<std::shared_ptr<link>> strangers_; ///< The oldest first.
  std::set<std::shared_ptr<link>> dialed_;      ///< Without the peer's hello so far.
  std::set<std::string> told_;                  ///< About refused peers.
  bool is_leaving_ = false;
  std::function<void()> on_everybody_left_;
  std::function<void(node_index, const error&)> on_loss_;
  mutable std::mutex mutex_; ///< Guards members' links, addresses and arrivals, and `on_loss_`.
  reading_threads threads_;
};

expected<std::unique_ptr<socket_network>> socket_network::open(caf::actor_system& system,
                                                               socket_network_options options) {
  if (auto checked = check(options); !checked) return tl::unexpected<error>(checked.error());
  std::unique_ptr<socket_network> network{new socket_network};
  network->implementation_ = std::make_shared<implementation>(system, *network, std::move(options));
  return network->implementation_->open().map([&] { return std::move(network); });
}

socket_network::socket_network() = default;

socket_network::~socket_network() {
  if (implementation_) leave(std::chrono::seconds{1});
}

const std::shared_ptr<node>& socket_network::here() const {
  return implementation_->here();
}

std::string socket_network::name_of(node_index node) const {
  return implementation_->name_of(node);
}

std::shared_future<expected<node_address>> socket_network::arrival(node_index node) {
  return implementation_->arrival(node);
}

std::function<std::shared_future<expected<node_address>>()>
socket_network::arrivals(node_index node) {
  return [last = arrival(node), node, weak = std::weak_ptr{implementation_}] {
    auto alive = weak.lock();
    return alive ? alive->arrival(node) : last;
  };
}

void socket_network::give_up(node_index peer, const std::string& why) {
  implementation_->give_up(peer, why);
}

std::string socket_network::trouble_with(node_index node) const {
  return implementation_->trouble_with(node);
}

void socket_network::on_loss(std::function<void(node_index, const error&)> tell) {
  implementation_->on_loss(std::move(tell));
}

std::string socket_network::listening_at() const {
  return implementation_->listening_at();
}

void socket_network::leave(std::chrono::milliseconds timeout) {
  implementation_->leave(timeout);
}

void socket_network::send(const node_address& /*from*/, parcel message) {
  implementation_->send(std::move(message));
}

} // namespace troupe
