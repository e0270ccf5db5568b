// SPDX-License-Identifier: Apache-2.0
// Addresses become handles, and handles addresses.
#include "actors/net/node.hpp"

#include "actors/net/remote_proxy.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>
#include <caf/message_id.hpp>
#include <caf/sec.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

caf::error error_of(const caf::message& content) {
  return content.match_elements<caf::error>() ? content.get_as<caf::error>(0) : caf::error{};
}

// The same for a request and its response, urgent or not.
uint64_t number_of(caf::message_id id) {
  return id.request_id().integer_value();
}

void answer(const caf::strong_actor_ptr& asker, uint64_t request, const caf::error& reason) {
  asker->enqueue(nullptr, caf::make_message_id(request).response_id(), caf::make_message(reason),
                 nullptr);
}

} // namespace

std::shared_ptr<node> node::make(caf::actor_system& system, transport& carrier,
                                 node_address address, std::string name) {
  return std::shared_ptr<node>{new node{system, carrier, address, std::move(name)}};
}

actor_address node::show(const caf::strong_actor_ptr& actor, const node_address& to) {
  if (!actor) return {};
  // Whoever passes on what it knows from others names the original.
  if (const auto* proxy = dynamic_cast<const remote_proxy*>(actor->get()))
    return proxy->stands_for();
  bool is_new = false;
  {
    std::lock_guard guard{mutex_};
    auto& entry = shown_[actor->id()];
    is_new = !entry.actor;
    entry.actor = actor;
    entry.known_to.insert(to);
  }
  if (is_new)
    actor->get()->attach_functor([home = weak_from_this(), id = actor->id()](caf::error reason) {
      if (auto alive = home.lock()) alive->on_end(id, reason);
    });
  return {address_, actor->id()};
}

caf::strong_actor_ptr node::handle_of(const actor_address& actor) {
  if (actor.actor == 0) return nullptr;
  std::lock_guard guard{mutex_};
  if (actor.at == address_) {
    auto found = shown_.find(actor.actor);
    return found == shown_.end() ? nullptr : found->second.actor;
  }
  auto& proxy = proxies_[actor];
  if (!proxy) {
    caf::actor_config config;
    proxy = caf::make_actor<remote_proxy, caf::strong_actor_ptr>(
      system_.next_actor_id(), system_.node(), &system_, config, weak_from_this(), actor);
  }
  return proxy;
}

void node::send(const actor_address& to, caf::mailbox_element& what) {
  parcel sent{.to = to,
              .from = show(what.sender, to.at),
              .id = what.mid.integer_value(),
              .content = what.move_content_to_message()};
  if (what.mid.is_request() && what.sender) {
    std::lock_guard guard{mutex_};
    pending_[{what.sender->id(), number_of(what.mid)}] = {what.sender, sent.id, to.at};
  }
  transport_.send(address_, std::move(sent));
}

void node::deliver(parcel what) {
  if (what.to.at != address_ || is_lost(what.from.at)) return;
  if (what.kind == parcel::content_kind::down) return end_proxy(what.from, error_of(what.content));
  auto id = caf::make_message_id(what.id);
  auto receiver = handle_of(what.to);
  if (id.is_response()) {
    std::lock_guard guard{mutex_};
    pending_.erase({what.to.actor, number_of(id)});
  }
  if (!receiver) return refuse(what);
  auto sender = handle_of(what.from);
  receiver->enqueue(caf::make_mailbox_element(std::move(sender), id, {}, std::move(what.content)),
                    nullptr);
}

void node::lose(const node_address& peer, const error& reason) {
  std::vector<caf::strong_actor_ptr> ended;
  std::vector<std::pair<caf::strong_actor_ptr, uint64_t>> unanswered;
  {
    std::lock_guard guard{mutex_};
    lost_[peer.node] = std::max(lost_[peer.node], peer.incarnation + 1);
    std::erase_if(proxies_, [&](auto& one) {
      if (one.first.at != peer) return false;
      ended.push_back(std::move(one.second));
      return true;
    });
    std::erase_if(pending_, [&](const auto& one) {
      if (one.second.asked != peer) return false;
      unanswered.emplace_back(one.second.asker, one.second.id);
      return true;
    });
    for (auto& [id, actor] : shown_)
      actor.known_to.erase(peer);
  }
  auto told = to_caf(reason);
  for (auto& proxy : ended)
    static_cast<remote_proxy*>(proxy->get())->kill_proxy(nullptr, told);
  for (auto& [asker, request] : unanswered)
    answer(asker, request, told);
}

size_t node::pending_requests() const {
  std::lock_guard guard{mutex_};
  return pending_.size();
}

bool node::is_lost(const node_address& peer) const {
  std::lock_guard guard{mutex_};
  auto found = lost_.find(peer.node);
  return found != lost_.end() && peer.incarnation < found->second;
}

// Of an actor that has ended: whoever asks it is told so.
void node::refuse(const parcel& request) {
  auto id = caf::make_message_id(request.id);
  if (!id.is_request() || request.from.actor == 0) return;
  transport_.send(address_,
                  {.to = request.from,
                   .from = request.to,
                   .id = id.response_id().integer_value(),
                   .content = caf::make_message(caf::error{caf::sec::request_receiver_down})});
}

void node::on_end(uint64_t actor, const caf::error& reason) {
  std::set<node_address> told;
  {
    std::lock_guard guard{mutex_};
    auto found = shown_.find(actor);
    if (found == shown_.end()) return;
    told = std::move(found->second.known_to);
    shown_.erase(found);
    std::erase_if(pending_, [actor](const auto& one) { return one.first.first == actor; });
  }
  for (const auto& peer : told)
    transport_.send(address_, {.kind = parcel::content_kind::down,
                               .to = {peer, 0},
                               .from = {address_, actor},
                               .content = caf::make_message(reason)});
}

void node::end_proxy(const actor_address& of, caf::error reason) {
  caf::strong_actor_ptr proxy;
  {
    std::lock_guard guard{mutex_};
    auto found = proxies_.find(of);
    if (found == proxies_.end()) return;
    proxy = std::move(found->second);
    proxies_.erase(found);
  }
  static_cast<remote_proxy*>(proxy->get())->kill_proxy(nullptr, std::move(reason));
}

} // namespace troupe
