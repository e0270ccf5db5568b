// SPDX-License-Identifier: Apache-2.0
// Addresses become handles, and handles addresses.
#include "actors/net/node.hpp"

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/remote_proxy.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>
#include <caf/message_id.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// Kept questions of other nodes for names that no actor here goes by.
constexpr size_t asked_questions_max = 65'536;

/// A message in a mailbox, which counts for its connection as long as it is there.
class delivered_element final : public caf::mailbox_element {
public:
  delivered_element(caf::strong_actor_ptr sender, caf::message_id id, caf::message content,
                    std::shared_ptr<const void> charge)
    : caf::mailbox_element(std::move(sender), id, {}), content_(std::move(content)),
      charge_(std::move(charge)) {}

  caf::type_erased_tuple& content() override {
    if (content_.empty()) return nothing_;
    return const_cast<caf::detail::message_data&>(*content_.vals()); // NOLINT: it is only read
  }

  [[nodiscard]] const caf::type_erased_tuple& content() const override {
    if (content_.empty()) return nothing_;
    return content_.content();
  }

  caf::message move_content_to_message() override { return std::move(content_); }

  [[nodiscard]] caf::message copy_content_to_message() const override { return content_; }

private:
  caf::empty_type_erased_tuple nothing_;
  caf::message content_;
  std::shared_ptr<const void> charge_;
};

// An error with the name of the process in which an actor threw, if it is this one.
caf::error from_here(const caf::error& reason, const std::string& process) {
  auto ours = from_caf(reason);
  if (!ours.throw_site.starts_with("actor '")) return reason;
  ours.throw_site = process + ", " + ours.throw_site;
  return to_caf(ours);
}

// The same for a request and its response, urgent or not.
uint64_t request_number(caf::message_id id) {
  return id.request_id().integer_value();
}

void fail_request(const caf::strong_actor_ptr& asker, uint64_t request, const caf::error& reason) {
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
  if (const auto* original = original_of(actor)) return *original; // it is passed on as that
  bool is_new = false;
  {
    std::lock_guard guard{mutex_};
    is_new = enlist(actor, to);
  }
  if (is_new) watch(actor);
  return {address_, actor->id()};
}

// @returns Whether no node has heard of it before, so that it is to be watched.
bool node::enlist(const caf::strong_actor_ptr& actor, const node_address& known_to) {
  auto& entry = shown_[actor->id()];
  entry.known_to.insert(known_to);
  return !std::exchange(entry.actor, actor);
}

void node::watch(const caf::strong_actor_ptr& actor) {
  actor->get()->attach_functor([home = weak_from_this(), id = actor->id()](caf::error reason) {
    if (auto alive = home.lock()) alive->on_end(id, reason);
  });
}

caf::strong_actor_ptr node::handle_of(const actor_address& actor) {
  std::optional<error> lost;
  {
    std::lock_guard guard{mutex_};
    if (actor.actor == 0 || !is_over(actor.at)) return known(actor);
    lost = lost_.at(actor.at.node).reason;
  }
  // Nothing else would ever end it.
  auto proxy = make_proxy(actor);
  static_cast<remote_proxy*>(proxy->get())->kill_proxy(nullptr, to_caf(*lost));
  return proxy;
}

caf::strong_actor_ptr node::known(const actor_address& actor) {
  if (actor.actor == 0) return nullptr;
  if (actor.at == address_) {
    auto found = shown_.find(actor.actor);
    return found == shown_.end() ? nullptr : found->second.actor;
  }
  auto& proxy = proxies_[actor];
  if (!proxy) proxy = make_proxy(actor);
  return proxy;
}

caf::strong_actor_ptr node::make_proxy(const actor_address& of) {
  caf::actor_config config;
  return caf::make_actor<remote_proxy, caf::strong_actor_ptr>(
    system_.next_actor_id(), system_.node(), &system_, config, weak_from_this(), of);
}

void node::disconnect() {
  carrier_ = nullptr;
  for (auto busy = carrying_.load(); busy > 0; busy = carrying_.load())
    carrying_.wait(busy);
}

// A thread that sees the carrier has counted before, so `disconnect` waits for it.
void node::carry(parcel message) {
  if (message.content.match_elements<caf::error>())
    message.content = caf::make_message(from_here(message.content.get_as<caf::error>(0), name_));
  ++carrying_;
  if (auto* carrier = carrier_.load()) carrier->send(address_, std::move(message));
  if (--carrying_ == 0) carrying_.notify_all();
}

void node::send(const actor_address& to, caf::mailbox_element& element) {
  const auto& sender = element.sender;
  parcel sent{.to = to,
              .from = {address_, 0},
              .id = element.mid.integer_value(),
              .content = element.move_content_to_message()};
  auto is_request = element.mid.is_request();
  // A request that an actor here has delegated is answered to the asker's proxy: the nodes at its
  // ends need not talk to each other, and it is pending here no longer than that takes.
  const auto* original = sender && !is_request ? original_of(sender) : nullptr;
  if (sender) sent.from = original ? *original : actor_address{address_, sender->id()};
  std::optional<error> lost; // just now, perhaps, when all requests to the peer failed
  bool is_new = false;
  if (sender) {
    std::lock_guard guard{mutex_};
    if (!original) is_new = enlist(sender, to.at);
    if (is_request && is_over(to.at))
      lost = lost_.at(to.at.node).reason;
    else if (is_request)
      pending_[{sender->id(), request_number(element.mid)}] = {sender, sent.id, to.at};
  }
  if (is_new) watch(sender);
  if (lost) return fail_request(sender, sent.id, to_caf(*lost));
  carry(std::move(sent));
  if (sender && !original) say_if_ended(sender, to.at);
}

// If the actor has ended meanwhile, the news of it may have gone before what names it.
void node::say_if_ended(const caf::strong_actor_ptr& actor, const node_address& to) {
  if (actor->get()->getf(caf::abstract_actor::is_cleaned_up_flag))
    carry({.kind = parcel::content_kind::down,
           .to = {to, 0},
           .from = {address_, actor->id()},
           .content = caf::make_message(caf::error{})});
}

// ---- the directory: actors by name ----

void node::publish(const std::string& name, const caf::strong_actor_ptr& actor) {
  std::vector<asked_question> waiting;
  auto published = actor; // the name's former actor ends up here, outside the lock
  {
    std::lock_guard guard{mutex_};
    std::swap(published_[name], published);
    auto [begin, end] = asked_.equal_range(name);
    for (auto it = begin; it != end; ++it)
      waiting.push_back(it->second);
    asked_.erase(begin, end);
  }
  actor->get()->attach_functor([home = weak_from_this(), name, id = actor->id()] {
    if (auto alive = home.lock()) alive->withdraw(name, id);
  });
  for (const auto& question : waiting)
    answer(question, actor);
}

void node::withdraw(const std::string& name, uint64_t actor) {
  caf::strong_actor_ptr withdrawn;
  std::lock_guard guard{mutex_};
  auto found = published_.find(name);
  if (found == published_.end() || found->second->id() != actor) return;
  withdrawn = std::move(found->second);
  published_.erase(found);
}

void node::find(const node_address& peer, const std::string& name, found_callback then) {
  std::optional<error> lost;
  uint64_t number = 0;
  {
    std::lock_guard guard{mutex_};
    if (is_over(peer))
      lost = lost_.at(peer.node).reason;
    else
      finding_.emplace(number = ++question_count_, open_question{peer, std::move(then)});
  }
  if (lost) return then(tl::unexpected<error>(std::move(*lost)));
  parcel question{.kind = parcel::content_kind::find,
                  .to = {peer, 0},
                  .from = {address_, 0},
                  .id = number,
                  .content = caf::make_message(name)};
  if (peer == address_) return on_find(question);
  carry(std::move(question));
}

void node::on_find(const parcel& question) {
  if (!question.content.match_elements<std::string>()) return;
  asked_question asked{question.from.at, question.id, question.charge};
  caf::strong_actor_ptr actor;
  {
    std::lock_guard guard{mutex_};
    const auto& name = question.content.get_as<std::string>(0);
    if (auto found = published_.find(name); found != published_.end())
      actor = found->second;
    else if (asked_.size() < asked_questions_max)
      asked_.emplace(name, asked);
  }
  if (actor) answer(asked, actor);
}

void node::answer(const asked_question& question, const caf::strong_actor_ptr& with) {
  parcel found{.kind = parcel::content_kind::found,
               .to = {question.asker, 0},
               .from = {address_, with->id()},
               .id = question.number};
  if (question.asker == address_) return finish_find(found, with);
  found.from = show(with, question.asker);
  carry(std::move(found));
  say_if_ended(with, question.asker);
}

// @param with The actor, or its proxy.
void node::finish_find(const parcel& answer, const caf::strong_actor_ptr& with) {
  found_callback then;
  {
    std::lock_guard guard{mutex_};
    auto question = finding_.find(answer.id);
    if (question == finding_.end() || question->second.asked != answer.from.at) return;
    then = std::move(question->second.then);
    finding_.erase(question);
  }
  then(with);
}

// ---- what comes from others ----

void node::deliver(parcel message, caf::execution_unit* host) {
  if (message.to.at != address_) return;
  if (message.kind == parcel::content_kind::message)
    return deliver_message(std::move(message), host);
  if (is_lost(message.from.at)) return;
  switch (message.kind) {
  case parcel::content_kind::message:
    return;
  case parcel::content_kind::down:
    return end_proxy(message.from, reason_in(message.content));
  case parcel::content_kind::find:
    return on_find(message);
  case parcel::content_kind::found:
    if (auto actor = handle_of(message.from)) finish_find(message, actor);
  }
}

void node::deliver_message(parcel message, caf::execution_unit* host) {
  auto id = caf::make_message_id(message.id);
  caf::strong_actor_ptr receiver;
  caf::strong_actor_ptr sender;
  {
    std::lock_guard guard{mutex_};
    auto is_awaited
      = id.is_response() && pending_.erase({message.to.actor, request_number(id)}) > 0;
    if (is_over(message.from.at)) {
      if (!is_awaited) return;
      message.from = {}; // it was delegated to a node that is gone, by one that is not
    }
    receiver = known(message.to);
    if (receiver) sender = known(message.from);
  }
  if (!receiver) return refuse(message);
  if (sender && message.content.match_elements<caf::exit_msg>())
    message.content = caf::make_message(
      caf::exit_msg{sender->address(), message.content.get_as<caf::exit_msg>(0).reason});
  receiver->enqueue(caf::mailbox_element_ptr{new delivered_element{std::move(sender), id,
                                                                   std::move(message.content),
                                                                   std::move(message.charge)}},
                    host);
}

void node::lose(const node_address& peer, const error& reason) {
  std::vector<caf::strong_actor_ptr> ended;
  std::vector<std::pair<caf::strong_actor_ptr, uint64_t>> unanswered;
  std::vector<found_callback> unfound;
  {
    std::lock_guard guard{mutex_};
    if (auto& known = lost_[peer.node]; known.lives <= peer.incarnation)
      known = {peer.incarnation + 1, reason};
    std::erase_if(asked_, [&](const auto& one) { return one.second.asker == peer; });
    std::erase_if(finding_, [&](auto& one) {
      if (one.second.asked != peer) return false;
      unfound.push_back(std::move(one.second.then));
      return true;
    });
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
    fail_request(asker, request, told);
  for (auto& then : unfound)
    then(tl::unexpected<error>(reason));
}

size_t node::pending_requests() const {
  std::lock_guard guard{mutex_};
  return pending_.size();
}

bool node::is_lost(const node_address& peer) const {
  std::lock_guard guard{mutex_};
  return is_over(peer);
}

bool node::is_over(const node_address& peer) const {
  auto found = lost_.find(peer.node);
  return found != lost_.end() && peer.incarnation < found->second.lives;
}

// The actor that was asked has ended: the sender is told so.
void node::refuse(const parcel& request) {
  auto id = caf::make_message_id(request.id);
  if (!id.is_request() || request.from.actor == 0) return;
  carry({.to = request.from,
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
    pending_.erase(pending_.lower_bound({actor, 0}), pending_.lower_bound({actor + 1, 0}));
  }
  for (const auto& peer : told)
    carry({.kind = parcel::content_kind::down,
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
