// SPDX-License-Identifier: Apache-2.0
// Many actors of one kind that are asked together: all of them, or the first N.
#pragma once

#include "actors/groups/gatherer.hpp"
#include "actors/groups/group_answers.hpp"
#include "actors/groups/group_members.hpp"
#include "actors/groups/group_shape.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/converted.hpp"
#include "actors/world/world.hpp"
#include "messages/errors/users_code.hpp"
#include "messages/mapped.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A question to a group that was not asked yet. A coroutine gives the result of `by` a name, and
/// awaits it; a thread that runs no actor calls `wait`; an actor without a coroutine calls `then`.
/// Only one of these is called, once, copies of the question included.
///
///     auto asking = jurors.ask<msg<Opinion>>(question, {.first = 3, .limit = 2s});
///     auto answering = asking.by(context);
///     auto answers = co_await answering;
///     for (const auto& opinion : answers.require()) ...
template <class Reply>
class group_question {
public:
  using replies = std::shared_ptr<std::vector<expected<Reply>>>;

  group_question(std::shared_ptr<const group_members> members, group_call call, size_t wanted,
                 replies slots)
    : members_(std::move(members)), asked_(call.members),
      call_(std::make_shared<group_call>(std::move(call))), wanted_(wanted),
      replies_(std::move(slots)) {}

  // A move copies, so that a handle that was moved from still means the same.
  group_question(const group_question&) = default;
  group_question& operator=(const group_question&) = default;

  /// For a coroutine. @param asker Its `replica_context` or `activity`.
  /// @returns An awaitable of `group_answers<Reply>`. Errors: throws `failure` with cancelled, if
  /// the group's actor was told to end.
  template <class Asker>
  [[nodiscard]] auto by(Asker& asker) {
    return converted{asker.template request<group_outcome>(members_->gatherer(), taken_call()),
                     [question = *this](expected<group_outcome> outcome) {
                       return question.answers(value_or_throw(std::move(outcome)));
                     }};
  }

  /// For a thread that runs no actor. Errors: throws `failure` as above, and as `ask`.
  [[nodiscard]] group_answers<Reply> wait() {
    auto outcome = ask<group_outcome>(members_->world(), members_->gatherer(), taken_call());
    return answers(value_or_throw(std::move(outcome)));
  }

  /// For an actor: `settle(expected<group_answers<Reply>>)` runs in it. Errors: as `by`.
  template <class Self, class Settle>
  void then(Self* self, Settle settle) {
    using result = expected<group_answers<Reply>>;
    self
      ->request(members_->gatherer(), caf::infinite, taken_call()) // it ends at the limit
      .then([question = *this, settle](
              const group_outcome& outcome) mutable { settle(result{question.answers(outcome)}); },
            [settle](const caf::error& why) mutable {
              settle(result{tl::unexpected<error>(from_caf(why))});
            });
  }

private:
  /// The call, once. Errors: throws `failure` with failed_precondition.
  [[nodiscard]] group_call taken_call() {
    if (call_->members.empty())
      throw failure{
        {errc::failed_precondition, "a question to group '" + members_->name()
                                      + "' was asked before; call `ask` again for each question"}};
    return std::exchange(*call_, {});
  }

  [[nodiscard]] group_answers<Reply> answers(group_outcome outcome) const {
    group_answers<Reply> result;
    result.group = members_->name();
    result.names = troupe::mapped(asked_, [&](auto member) { return members_->name_of(member); });
    result.wanted = wanted_;
    result.replies = std::move(*replies_);
    result.members = std::move(outcome.members);
    for (size_t i = 0; i < result.members.size(); ++i)
      if (!result.members[i].has_answer)
        result.replies[i] = tl::unexpected<error>(result.members[i].why);
    return result;
  }

  std::shared_ptr<const group_members> members_;
  std::vector<uint32_t> asked_;
  std::shared_ptr<group_call> call_; ///< Without members once it was asked.
  size_t wanted_;
  replies replies_;
};

/// A member's answer, as it comes.
template <class Reply>
struct group_reply {
  size_t member = 0; ///< Its position among the members that were asked.
  std::string name;
  member_report report;
  expected<Reply> reply;
};

/// The answers of a group one by one, in the order in which they come. It ends when no more are
/// waited for, without a word of members that are late then. One reader at a time calls `next`.
///
///     auto answers = trainers.stream<msg<Score>>(question);
///     for (;;) {
///       auto reading = answers.next(context);
///       auto answer = co_await reading;
///       if (!answer) break;
///     }
template <class Reply>
class group_stream {
public:
  using replies = std::shared_ptr<std::vector<expected<Reply>>>;

  group_stream(std::shared_ptr<const group_members> members, const group_call& call, replies slots)
    : read_(
      std::make_shared<reading>(std::move(members), call.stream, call.members, std::move(slots))) {
    caf::anon_send(read_->members->gatherer(), call);
  }

  // A move copies, so that a handle that was moved from still means the same.
  group_stream(const group_stream&) = default;
  group_stream& operator=(const group_stream&) = default;

  /// For a coroutine. @returns An awaitable of `std::optional<group_reply<Reply>>`; nothing at the
  /// end. Errors: throws `failure` with cancelled, if the group's actor was told to end.
  template <class Asker>
  [[nodiscard]] auto next(Asker& asker) const {
    return converted{asker.template request<group_arrival>(read_->members->gatherer(),
                                                           next_arrival{read_->stream}),
                     [read = read_](expected<group_arrival> arrival) {
                       return read->reply(value_or_throw(std::move(arrival)));
                     }};
  }

  /// For a thread that runs no actor. Errors: throws `failure` as above, and as `ask`.
  [[nodiscard]] std::optional<group_reply<Reply>> next() const {
    auto arrival = ask<group_arrival>(read_->members->world(), read_->members->gatherer(),
                                      next_arrival{read_->stream});
    return read_->reply(value_or_throw(std::move(arrival)));
  }

private:
  struct reading {
    reading(std::shared_ptr<const group_members> of_group, uint64_t number,
            std::vector<uint32_t> numbers, replies slots)
      : members(std::move(of_group)), stream(number), asked(std::move(numbers)),
        answers(std::move(slots)) {}

    ~reading() { caf::anon_send(members->gatherer(), end_stream{stream}); }

    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;

    [[nodiscard]] std::optional<group_reply<Reply>> reply(group_arrival arrival) const {
      if (!arrival.position) return std::nullopt;
      auto at = *arrival.position;
      group_reply<Reply> result{at, members->name_of(asked[at]), arrival.report, {}};
      if (arrival.report.has_answer)
        result.reply = std::move((*answers)[at]);
      else
        result.reply = tl::unexpected<error>(arrival.report.why);
      return result;
    }

    std::shared_ptr<const group_members> members;
    uint64_t stream;
    std::vector<uint32_t> asked;
    replies answers;
  };

  std::shared_ptr<const reading> read_;
};

/// A step is done when enough gradients are there, and reports the late ones. A group does so with
/// any question to many actors: it asks all of its members, takes the first N answers, and reports
/// the members that were late, have failed or are lost.
///
///     group jurors{world, "juror", actors};
///     group all{world, "trainers", actors, group_shape{{{"host", 4}, {"device", 8}}}};
///     auto second_host = all.at("host", 1);
///
/// A group is a value: copies and slices share its members, which it does not own. A member is
/// asked as by any request; one that has ended, or its process, is lost: the group is told and does
/// not poll. Answers are given in the order of members, so a result does not depend on which came
/// first. Members may stand in other processes.
///
/// Thread: any; `wait` and `next()` that of the world.
template <class Handle>
class group {
public:
  /// Members in one row, "juror 0", "juror 1", ... of a group "juror".
  /// Errors: throws `failure` with invalid_argument without members, and for an empty handle.
  group(troupe::world& world, const std::string& name, const std::vector<Handle>& actors)
    : group(world, name, actors, group_shape{{{name, actors.size()}}}) {}

  /// Members by dimensions. Errors: as above; throws `failure` with invalid_argument if the shape
  /// has not as many members.
  group(troupe::world& world, const std::string& name, const std::vector<Handle>& actors,
        const group_shape& shape)
    : group(world, name, actors, names_by(shape), shape) {}

  /// Members with names of their own, such as those of their processes. Errors: as above.
  group(troupe::world& world, const std::string& name, const std::vector<Handle>& actors,
        std::vector<std::string> names, group_shape shape)
    : shape_(std::move(shape)), chosen_(actors.size()) {
    auto members = troupe::mapped(
      actors, [](const auto& actor) { return caf::actor_cast<caf::strong_actor_ptr>(actor); });
    members_ = std::make_shared<group_members>(world, name, std::move(members), std::move(names),
                                               shape_.size());
    std::iota(chosen_.begin(), chosen_.end(), 0U);
  }

  // A move copies, so that a handle that was moved from still means the same.
  group(const group&) = default;
  group& operator=(const group&) = default;

  [[nodiscard]] size_t size() const { return chosen_.size(); }

  [[nodiscard]] const group_shape& shape() const { return shape_; }

  [[nodiscard]] troupe::world& world() const { return members_->world(); }

  [[nodiscard]] Handle operator[](size_t member) const {
    return caf::actor_cast<Handle>(members_->actor(chosen_[member]));
  }

  [[nodiscard]] const std::string& name_of(size_t member) const {
    return members_->name_of(chosen_[member]);
  }

  /// The members with positions from `begin` to below `end` in one dimension.
  /// Errors: throws `failure`: not_found, if there is no such dimension; out_of_range.
  [[nodiscard]] group slice(std::string_view dimension, size_t begin, size_t end) const {
    auto result = *this;
    result.chosen_ = troupe::mapped(shape_.members_within(dimension, begin, end),
                                    [&](auto member) { return chosen_[member]; });
    result.shape_ = shape_.within(dimension, begin, end);
    return result;
  }

  /// The members with one position in one dimension. Errors: as above.
  [[nodiscard]] group at(std::string_view dimension, size_t position) const {
    return slice(dimension, position, position + 1);
  }

  /// A question to all members.
  /// Errors: throws `failure` with invalid_argument if more answers are wanted than there are
  /// members, or for a limit of no time.
  template <class Reply, class Message>
  [[nodiscard]] group_question<Reply> ask(Message message, group_options options = {}) const {
    return question<Reply>(std::move(options), [message](uint32_t) { return message; });
  }

  /// A question of its own to each member. @param messages One for each member, in their order.
  /// Errors: as above; throws `failure` with invalid_argument for another number of messages.
  template <class Reply, class Message>
  [[nodiscard]] group_question<Reply> ask_each(std::vector<Message> messages,
                                               group_options options = {}) const {
    if (messages.size() != size())
      throw failure{{errc::invalid_argument, "group '" + members_->name() + "' has "
                                               + std::to_string(size()) + " members, and was given "
                                               + std::to_string(messages.size()) + " messages"}};
    auto shared = std::make_shared<const std::vector<Message>>(std::move(messages));
    return question<Reply>(std::move(options),
                           [shared](uint32_t position) { return (*shared)[position]; });
  }

  /// Errors: throws `failure` with invalid_argument for options that no question can have.
  void check(const group_options& options) const {
    static_cast<void>(check_group_options(members_->name(), options, size()));
  }

  /// As `ask`, for answers that are read as they come. It is asked at once.
  template <class Reply, class Message>
  [[nodiscard]] group_stream<Reply> stream(Message message, group_options options = {}) const {
    auto replies = empty_replies<Reply>();
    check(options);
    auto call = make_call<Reply>(
      std::move(options), [message](uint32_t) { return message; }, replies);
    call.stream = members_->new_stream();
    return {members_, call, std::move(replies)};
  }

  /// Sends a message to all members, and waits for no answer.
  template <class Message>
  void tell(const Message& message) const {
    for (size_t i = 0; i < size(); ++i)
      caf::anon_send((*this)[i], message);
  }

  /// For `group_options::cancel`: members that are late are sent this message.
  template <class Message>
  [[nodiscard]] static auto cancel_by(Message message) {
    return [message](const caf::strong_actor_ptr& member) {
      caf::anon_send(caf::actor_cast<Handle>(member), message);
    };
  }

  /// Ends all members. An actor of another process is told to end, too.
  void end() const {
    for (size_t i = 0; i < size(); ++i)
      caf::anon_send_exit((*this)[i], caf::exit_reason::user_shutdown);
  }

private:
  [[nodiscard]] static std::vector<std::string> names_by(const group_shape& shape) {
    std::vector<std::string> result;
    for (size_t i = 0; i < shape.size(); ++i)
      result.push_back(shape.name_of(i));
    return result;
  }

  template <class Reply>
  [[nodiscard]] std::shared_ptr<std::vector<expected<Reply>>> empty_replies() const {
    return std::make_shared<std::vector<expected<Reply>>>(size(), fail(errc::unavailable, ""));
  }

  template <class Reply, class MessageOf>
  [[nodiscard]] group_question<Reply> question(group_options options, MessageOf message_of) const {
    auto wanted = check_group_options(members_->name(), options, size());
    auto replies = empty_replies<Reply>();
    auto call = make_call<Reply>(std::move(options), std::move(message_of), replies);
    return {members_, std::move(call), wanted, std::move(replies)};
  }

  template <class Reply, class MessageOf>
  [[nodiscard]] group_call make_call(group_options options, MessageOf message_of,
                                     std::shared_ptr<std::vector<expected<Reply>>> replies) const {
    group_call result{chosen_, std::move(options), {}};
    result.ask
      = [members = chosen_, message_of = std::move(message_of), on_late = result.options.on_late,
         replies = std::move(replies)](gatherer_state& from, uint64_t call, uint32_t position) {
          auto asked_at = from.world->now();
          auto member = caf::actor_cast<Handle>(from.members[members[position]].actor);
          // A request that is never answered keeps no answers of others.
          std::weak_ptr slots = replies;
          from.self
            ->request(member, caf::infinite, message_of(position)) // until the call's limit
            .then(
              [self = from.self, call, position, slots, on_late, asked_at](const Reply& reply) {
                auto& state = self->state;
                if (state.is_wanted(call, position)) {
                  (*slots.lock())[position] = reply; // an open call keeps them
                  state.answer(call, position);
                } else if (on_late) {
                  call_users_code("on_late of a group",
                                  [&] { on_late(position, state.world->now() - asked_at); });
                }
              },
              [self = from.self, call, position](const caf::error& why) {
                self->state.fail(call, position, why);
              });
        };
    return result;
  }

  std::shared_ptr<const group_members> members_;
  group_shape shape_;
  std::vector<uint32_t> chosen_; ///< The members of this slice, by their numbers in `members_`.
};

} // namespace troupe
