// SPDX-License-Identifier: Apache-2.0
// Several nodes in one process, each with a world of its own: a parcel is handed to the other node
// at once, by the thread that sends it.
#pragma once

#include "actors/net/membership.hpp"
#include "actors/net/network_messages.hpp"
#include "actors/net/node.hpp"
#include "actors/net/parcel_codec.hpp"
#include "actors/net/transport.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

/// Joins nodes, and can part them. Thread: any.
class direct_network final : public transport {
public:
  /// @param names The nodes' names, by position. @param messages Messages of other schemas that
  /// travel.
  explicit direct_network(std::vector<std::string> names,
                          std::shared_ptr<const network_messages> messages = nullptr)
    : names_(std::move(names)), messages_(std::move(messages)) {
    for (const auto& name : names_) {
      static_cast<void>(name);
      places_.push_back(std::make_unique<place>());
    }
  }

  [[nodiscard]] const std::string& name_of(node_index node) const { return names_[node]; }

  /// A node's next life; its first is 0.
  [[nodiscard]] uint32_t begin_life(node_index of) {
    std::lock_guard guard{mutex_};
    auto& at = *places_[of];
    if (at.lives > 0) {
      at.arrived = {};
      at.arrival = at.arrived.get_future().share();
    }
    return at.lives++;
  }

  void join(const std::shared_ptr<node>& one) {
    auto& at = *places_[one->address().node];
    {
      std::lock_guard guard{mutex_};
      at.here = one;
    }
    at.arrived.set_value(one->address());
  }

  /// A node is gone: the others lose it, and it loses them.
  void lose(node_index gone, const std::string& how = "is gone") {
    holder holding{*this};
    std::shared_ptr<node> lost;
    std::vector<std::shared_ptr<node>> others;
    {
      std::lock_guard guard{mutex_};
      lost = std::exchange(places_[gone]->here, nullptr);
      for (auto& place : places_)
        if (place->here) others.push_back(place->here);
    }
    if (!lost) return;
    for (auto& other : others) {
      other->lose(lost->address(), reason(gone, how));
      lost->lose(other->address(), reason(other->address().node, how));
    }
  }

  /// Two nodes lose each other, and no others.
  void cut(node_index one, node_index other) {
    holder holding{*this};
    std::array ends{std::pair{one, other}, std::pair{other, one}};
    for (auto [here, there] : ends) {
      std::shared_ptr<node> hearing;
      std::shared_ptr<node> lost;
      {
        std::lock_guard guard{mutex_};
        hearing = places_[here]->here;
        lost = places_[there]->here;
      }
      if (hearing && lost) hearing->lose(lost->address(), reason(there, "is gone"));
    }
  }

  /// The node leaves: as `lose`, unless it is in its next life already. Returns when no other
  /// thread refers to the node: it would free the node, perhaps after the node's world.
  void leave(const std::shared_ptr<node>& one) {
    if (is_here(one)) lose(one->address().node, "has left");
    std::unique_lock guard{mutex_};
    auto is_mine = [](std::thread::id each) { return each == std::this_thread::get_id(); };
    let_go_.wait(guard, [&] { return std::ranges::all_of(holders_, is_mine); });
  }

  void send(const node_address& from, parcel what) override {
    holder holding{*this};
    std::shared_ptr<node> home;
    std::shared_ptr<node> to;
    {
      std::lock_guard guard{mutex_};
      home = places_[from.node]->here;
      if (home) to = places_[what.to.at.node]->here;
    }
    if (!to) return;
    auto travels = check_travels(what, messages_.get());
    if (travels) return to->deliver(std::move(what));
    auto refusal = refusal_of(what, travels.error());
    if (refusal) (refusal->to.at == from ? home : to)->deliver(std::move(*refusal));
  }

  [[nodiscard]] std::shared_future<expected<node_address>> arrival(node_index node) {
    std::lock_guard guard{mutex_};
    return places_[node]->arrival;
  }

private:
  struct place {
    std::shared_ptr<node> here;
    uint32_t lives = 0;
    std::promise<expected<node_address>> arrived;
    std::shared_future<expected<node_address>> arrival{arrived.get_future()};
  };

  /// A call that refers to nodes, until its end.
  class holder {
  public:
    explicit holder(direct_network& network) : network_(network) {
      std::lock_guard guard{network_.mutex_};
      network_.holders_.push_back(std::this_thread::get_id());
    }

    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;

    ~holder() {
      std::lock_guard guard{network_.mutex_};
      auto& all = network_.holders_;
      all.erase(std::ranges::find(all, std::this_thread::get_id()));
      network_.let_go_.notify_all();
    }

  private:
    direct_network& network_;
  };

  [[nodiscard]] bool is_here(const std::shared_ptr<node>& one) {
    std::lock_guard guard{mutex_};
    return places_[one->address().node]->here == one;
  }

  [[nodiscard]] error reason(node_index node, const std::string& how) const {
    return {errc::unavailable, fmt::format("node '{}' {}", names_[node], how)};
  }

  std::mutex mutex_; ///< Guards the places, and the calls that refer to nodes.
  std::condition_variable let_go_;
  std::vector<std::thread::id> holders_; ///< The thread of each such call.
  std::vector<std::string> names_;
  std::shared_ptr<const network_messages> messages_;
  std::vector<std::unique_ptr<place>> places_;
};

/// A node at such a network, for as long as it lives.
class direct_membership final : public membership {
public:
  /// Both outlive it.
  direct_membership(direct_network& network, caf::actor_system& system, node_index position)
    : network_(network), here_(node::make(system, network, {position, network.begin_life(position)},
                                          network.name_of(position))) {
    network_.join(here_);
  }

  direct_membership(const direct_membership&) = delete;
  direct_membership& operator=(const direct_membership&) = delete;

  ~direct_membership() override { network_.leave(here_); }

  [[nodiscard]] const std::shared_ptr<node>& here() const override { return here_; }

  [[nodiscard]] std::string name_of(node_index peer) const override {
    return network_.name_of(peer);
  }

  [[nodiscard]] std::shared_future<expected<node_address>> arrival(node_index peer) override {
    return network_.arrival(peer);
  }

  [[nodiscard]] std::function<std::shared_future<expected<node_address>>()>
  arrivals(node_index peer) override {
    return [&network = network_, peer] { return network.arrival(peer); };
  }

private:
  direct_network& network_;
  std::shared_ptr<node> here_;
};

} // namespace troupe::test
