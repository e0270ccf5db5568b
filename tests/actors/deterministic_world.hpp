// SPDX-License-Identifier: Apache-2.0
// A stage for a few actors: a virtual world that a test turns by hand, and puppets that say what
// the test tells them to say.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/world/virtual_coordinator.hpp"
#include "actors/world/world.hpp"
#include "tests/doctest.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// An action that a test has a puppet perform.
struct script {
  std::function<void(caf::event_based_actor*)> act;
};

} // namespace troupe::test

TROUPE_LOCAL_MESSAGE(troupe::test::script)

namespace troupe::test {

/// The answer to a question that a puppet asked; it comes while the world is turned.
template <class Reply>
class answer {
public:
  [[nodiscard]] bool has_come() const { return content_->has_value(); }

  /// The reply. Fails the test if none has come, or an error.
  [[nodiscard]] const Reply& value() const {
    REQUIRE(has_come());
    const auto& result = **content_;
    REQUIRE_MESSAGE(result.has_value(), (result ? std::string{} : result.error().message));
    return *result;
  }

  /// Either of both. Fails the test if none has come.
  [[nodiscard]] const expected<Reply>& result() const {
    REQUIRE(has_come());
    return **content_;
  }

  /// The error. Fails the test if none has come, or a reply.
  [[nodiscard]] const troupe::error& error() const {
    REQUIRE(has_come());
    REQUIRE(!(*content_)->has_value());
    return (*content_)->error();
  }

private:
  friend class puppet;

  std::shared_ptr<std::optional<expected<Reply>>> content_
    = std::make_shared<std::optional<expected<Reply>>>();
};

/// An actor without a will of its own: it says what the test tells it, and remembers what it was
/// told. It can stand for any actor that answers no requests.
class puppet {
public:
  explicit puppet(troupe::world& world)
    : actor_(world.system().spawn([heard = heard_](caf::event_based_actor* self) -> caf::behavior {
        self->set_default_handler(
          [heard](caf::scheduled_actor*, caf::message_view& said) -> caf::result<caf::message> {
            heard->push_back(said.move_content_to_message());
            return caf::message{};
          });
        return {[self](const script& script) { script.act(self); }};
      })) {}

  puppet(puppet&&) = default;

  ~puppet() {
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  }

  /// The puppet in the costume of a role.
  template <class Handle>
  [[nodiscard]] Handle as() const {
    return caf::actor_cast<Handle>(actor_);
  }

  /// Sends `message` to `to`.
  template <class Handle, class Message>
  void tell(Handle to, Message message) {
    play([to = std::move(to), message = std::move(message)](caf::event_based_actor* self) {
      self->send(to, message);
    });
  }

  /// Sends `message` to `to`, which is to answer it with a `Reply`.
  template <class Reply, class Handle, class Message>
  answer<Reply> ask(Handle to, Message message) {
    answer<Reply> result;
    play([to = std::move(to), message = std::move(message),
          content = result.content_](caf::event_based_actor* self) {
      self->request(to, caf::infinite, message)
        .then([content](const Reply& reply) { content->emplace(reply); },
              [content](const caf::error& reason) {
                content->emplace(tl::unexpected<error>(from_caf(reason)));
              });
    });
    return result;
  }

  /// The messages of one kind that the puppet was told, in order.
  template <class T>
  [[nodiscard]] std::vector<msg<T>> heard() const {
    std::vector<msg<T>> result;
    for (const auto& said : *heard_)
      if (said.template match_elements<msg<T>>()) result.push_back(said.template get_as<msg<T>>(0));
    return result;
  }

  /// How many messages of whatever kind the puppet was told.
  [[nodiscard]] size_t heard_count() const { return heard_->size(); }

private:
  void play(std::function<void(caf::event_based_actor*)> act) {
    caf::anon_send(actor_, script{std::move(act)});
  }

  std::shared_ptr<std::vector<caf::message>> heard_ = std::make_shared<std::vector<caf::message>>();
  caf::actor actor_;
};

/// A virtual world, turned by hand: nothing happens but while `settle` or `pass` runs.
class deterministic_world {
public:
  explicit deterministic_world(uint64_t seed = 0)
    : world(world::virtual_time({.seed = seed})),
      scheduler_(dynamic_cast<virtual_coordinator&>(world.system().scheduler())) {}

  ~deterministic_world() { settle(); }

  deterministic_world(const deterministic_world&) = delete;
  deterministic_world& operator=(const deterministic_world&) = delete;

  /// Spawns an actor.
  template <class... Arguments>
  auto spawn(Arguments&&... arguments) {
    return world.system().spawn(std::forward<Arguments>(arguments)...);
  }

  /// Lets everything happen that needs no time.
  void settle() {
    do
      while (scheduler_.run_one()) {
      }
    while (scheduler_.let_moment_pass());
  }

  /// Lets everything happen until `time` from now, moment by moment.
  void pass(job_time time) {
    {
      puppet clock{world};
      auto over = std::make_shared<std::promise<void>>();
      auto due = over->get_future();
      caf::delayed_anon_send(clock.as<caf::actor>(), time,
                             script{[over](caf::event_based_actor*) { over->set_value(); }});
      REQUIRE(world.run_until(due));
    }
    settle();
  }

  /// Actors that have not ended. Puppets count.
  [[nodiscard]] size_t actors_alive() { return world.system().registry().running(); }

  troupe::world world;

private:
  virtual_coordinator& scheduler_;
};

} // namespace troupe::test
