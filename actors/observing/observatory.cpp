// SPDX-License-Identifier: Apache-2.0
// The observations of a world's actors, living and ended.
#include "actors/observing/observatory.hpp"

#include "messages/mapped.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

std::string name_in(const observation& seen) {
  if (const auto* name = seen.name()) return name;
  const auto* role = seen.role();
  return fmt::format("{} {}", role != nullptr ? role : "actor", seen.actor());
}

actor_sight counts_of(const observation& seen) {
  return {.received = seen.received(),
          .handled = seen.handled(),
          .errors = seen.errors(),
          .timed = seen.timed(),
          .timed_total = seen.timed_total()};
}

actor_sight sight_of(const observation& seen, size_t messages_wanted) {
  auto sight = counts_of(seen);
  sight.name = name_in(seen);
  sight.actor = seen.actor();
  sight.doing = seen.doing();
  sight.mailbox_depth = seen.mailbox_depth();
  std::array<sighting, observation::messages_kept> messages;
  auto count = seen.last_messages(messages);
  if (count > 0) sight.last = messages[count - 1];
  sight.since = seen.computing_since().value_or(sight.last ? sight.last->when : job_time{0});
  auto first = count - std::min(count, messages_wanted);
  sight.messages.assign(messages.begin() + first, messages.begin() + count);
  return sight;
}

} // namespace

void add_counts(actor_sight& sum, const actor_sight& other) {
  sum.received += other.received;
  sum.handled += other.handled;
  sum.errors += other.errors;
  sum.timed += other.timed;
  sum.timed_total += other.timed_total;
}

observation* observatory::watch(uint64_t actor) {
  std::lock_guard guard{mutex_};
  auto* seen = reusable();
  if (seen != nullptr) {
    by_actor_.erase(seen->actor());
    seen->begin_anew(actor);
  } else {
    auto made = std::make_unique<observation>(actor);
    seen = made.get();
    auto& end = all_.empty() ? first_ : all_.back()->next_;
    end.store(seen, std::memory_order_release);
    all_.push_back(std::move(made));
  }
  by_actor_[actor] = seen;
  return seen;
}

void observatory::retire(observation* gone) {
  std::lock_guard guard{mutex_};
  if (gone->doing() == actor_doing::ended) return;
  gone->end();
  keep_counts(*gone);
  ended_.push_back(gone);
}

void observatory::keep_counts(const observation& gone) {
  const auto* name = gone.name();
  if (name == nullptr || (past_.size() == names_kept_max && !past_.contains(name))) return;
  add_counts(past_[name], counts_of(gone));
}

observation* observatory::reusable() {
  if (ended_.size() <= ended_kept_max) return nullptr;
  auto* seen = ended_.front();
  ended_.pop_front();
  return seen;
}

void observatory::introduce(uint64_t actor, const std::string& name) {
  std::lock_guard guard{mutex_};
  if (auto found = by_actor_.find(actor); found != by_actor_.end())
    found->second->set_name(names_.insert(name).first->c_str());
}

std::vector<actor_sight> observatory::look(size_t messages) const {
  std::lock_guard guard{mutex_};
  auto sights = mapped(all_, [&](const auto& one) { return sight_of(*one, messages); });
  std::ranges::sort(sights, {}, &actor_sight::actor);
  std::map<std::string_view, actor_sight*> newest;
  for (auto& sight : sights)
    if (sight.doing != actor_doing::ended && past_.contains(sight.name))
      newest[sight.name] = &sight;
  for (auto& [name, sight] : newest)
    add_counts(*sight, past_.at(sight->name));
  return sights;
}

observation* observatory::find(uint64_t actor) const {
  std::lock_guard guard{mutex_};
  auto found = by_actor_.find(actor);
  return found != by_actor_.end() ? found->second : nullptr;
}

std::string observatory::name_of(uint64_t actor) const {
  if (actor == 0) return "nobody";
  std::lock_guard guard{mutex_};
  auto found = by_actor_.find(actor);
  return found != by_actor_.end() ? name_in(*found->second) : fmt::format("actor {}", actor);
}

} // namespace troupe
