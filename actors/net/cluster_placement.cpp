// SPDX-License-Identifier: Apache-2.0
// Names become places, and handles.
#include "actors/net/cluster_placement.hpp"

#include "actors/net/node.hpp"
#include "actors/policies/waiting_lines.hpp"
#include "actors/recording/seconds.hpp"
#include "messages/errors/users_code.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <future>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

// How often a waiting thread looks whether it is to give up.
constexpr auto peer_look_period = std::chrono::milliseconds{20};

// The rest of a name that begins with `role`.
std::optional<std::string_view> after(std::string_view role, std::string_view name) {
  if (!name.starts_with(role)) return std::nullopt;
  return name.substr(role.size());
}

tl::unexpected<error> nobody_entered(const std::string& name) {
  return fail(errc::not_found, fmt::format("no process has entered as '{}'", name));
}

template <class Future>
bool is_ready(const Future& future) {
  return future.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

// A wait for a process, which another event ends, too.
struct arrival_or_end {
  const std::shared_future<expected<node_address>>& arrival;
  const std::future<void>& end;

  template <class Time>
  [[nodiscard]] std::future_status wait_until(Time time) const {
    return is_ready(end) ? std::future_status::ready : arrival.wait_until(time);
  }
};

// A name as other processes ask for it.
std::string published_name(const std::string& name, uint64_t life) {
  return life == 1 ? name : fmt::format("{} ({})", name, life);
}

} // namespace

cluster_placement::cluster_placement(cluster_layout layout, membership& nodes,
                                     job_time start_deadline)
  : layout_(layout), nodes_(nodes), start_deadline_(start_deadline),
    here_(nodes.here()->address().node), ps_loads_(layout.ps) {}

std::shared_ptr<array_places> cluster_placement::arrays() const {
  return nodes_.here()->arrays();
}

void cluster_placement::tell_waiting(const std::string& line) {
  if (on_waiting_) return on_waiting_(line);
  say_on_standard_error(line);
}

std::map<uint32_t, std::string> cluster_placement::others() const {
  std::map<uint32_t, std::string> names;
  for (node_index node = 0; node < layout_.node_count(); ++node)
    if (node != here_) names.emplace(node, nodes_.name_of(node));
  return names;
}

std::optional<node_index> cluster_placement::place_of(const std::string& name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? std::nullopt : std::optional{found->second.at};
}

expected<node_index> cluster_placement::variable_node(const std::string& owner, double load) {
  if (!std::isfinite(load) || load < 0)
    return fail(
      errc::invalid_argument,
      fmt::format("'{}' weighs {}: a load must be finite, and not negative", owner, load));
  if (ps_loads_.empty()) return layout_.chief_node();
  auto least = std::ranges::min_element(ps_loads_);
  *least += load;
  return layout_.ps_node(static_cast<uint32_t>(least - ps_loads_.begin()));
}

expected<node_index> cluster_placement::node_of(const std::string& name, double load) {
  if (after("owner ", name)) return variable_node(name, load);
  for (std::string_view mirror : {"", "mirror "})
    if (auto variable = after(fmt::format("{}accumulator ", mirror), name))
      if (auto at = place_of(fmt::format("{}owner {}", mirror, *variable))) return *at;
  if (auto variable = after("mirror owner ", name))
    if (auto at = place_of(fmt::format("owner {}", *variable)); at && layout_.ps > 0)
      return layout_.mirror_node(*at);
  if (auto replica = after("replica ", name))
    if (auto number = number_of<uint32_t>(*replica)) return layout_.replica_node(*number);
  if (auto rank = after("communicator ", name))
    if (auto number = number_of<uint32_t>(*rank)) return layout_.communicator_node(*number);
  if (auto worker = after("worker ", name))
    if (auto number = number_of<uint32_t>(*worker)) return layout_.worker_node(*number);
  return layout_.chief_node();
}

expected<bool> cluster_placement::enter(const std::string& name, double load) {
  auto at = node_of(name, load);
  if (!at) return tl::unexpected<error>(at.error());
  return enter_at(name, *at);
}

expected<bool> cluster_placement::enter_beside(const std::string& name,
                                               const std::string& neighbour) {
  auto at = place_of(neighbour);
  if (!at) return nobody_entered(neighbour);
  return enter_at(name, *at);
}

bool cluster_placement::enter_at(const std::string& name, node_index at) {
  auto& one = entries_[name];
  one = {at, one.life + 1, nullptr};
  return at == here_;
}

void cluster_placement::place(const std::string& name, const caf::strong_actor_ptr& actor) {
  auto found = entries_.find(name);
  if (found == entries_.end()) return;
  found->second.handle = actor;
  nodes_.here()->publish(published_name(name, found->second.life), actor);
}

expected<caf::strong_actor_ptr> cluster_placement::see(const std::string& /*viewer*/,
                                                       const std::string& name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) return nobody_entered(name);
  auto& known = found->second;
  if (known.handle || !layout_.talk(here_, known.at)) return known.handle;
  auto looked = look_for(name, known);
  if (!looked) return tl::unexpected<error>(refusal().value_or(looked.error()));
  known.handle = *looked;
  return looked;
}

// Shares what it needs: it may outlast the placement by a moment.
expected<actor_search> cluster_placement::search(const std::string& /*viewer*/,
                                                 const std::string& name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) return nobody_entered(name);
  const auto& known = found->second;
  using found_callback = std::function<void(const caf::strong_actor_ptr&)>;
  if (known.handle && known.at == here_)
    return [handle = known.handle](const found_callback& tell) {
      tell(handle);
      return true;
    };
  return [here = nodes_.here(), arrivals = nodes_.arrivals(known.at),
          published = published_name(name, known.life)](const found_callback& tell) {
    auto arrival = arrivals();
    if (!is_ready(arrival)) return false;
    const auto& address = arrival.get();
    if (!address) return true; // it will never come
    here->find(*address, published, [tell](const expected<caf::strong_actor_ptr>& actor) {
      tell(actor ? *actor : nullptr);
    });
    return true;
  };
}

uint32_t cluster_placement::where(const std::string& name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? here_ : found->second.at;
}

void cluster_placement::give_up(const std::optional<error>& why) {
  std::lock_guard guard{mutex_};
  given_up_ = why;
}

void cluster_placement::on_refusal(std::function<void(const error&)> refused) {
  std::lock_guard guard{mutex_};
  on_refusal_ = std::move(refused);
  has_begun_ = false; // another job may have, before
  if (refusal_ && on_refusal_) on_refusal_(*refusal_);
}

void cluster_placement::refuse(const error& why) {
  std::lock_guard guard{mutex_};
  if (has_begun_ || refusal_) return;
  refusal_ = why;
  if (on_refusal_) on_refusal_(why);
}

std::optional<error> cluster_placement::refusal() const {
  std::lock_guard guard{mutex_};
  return refusal_;
}

// A process that the job begins without may have been refused at the last moment.
void cluster_placement::begin() {
  std::lock_guard guard{mutex_};
  has_begun_ = true;
  refusal_.reset();
}

void cluster_placement::part_with(uint32_t lost, uint32_t lost_by) {
  nodes_.give_up(lost, fmt::format("{} cannot reach it", nodes_.name_of(lost_by)));
}

// The whole process waits: nothing can be done before the actor is there.
expected<caf::strong_actor_ptr> cluster_placement::look_for(const std::string& name,
                                                            const entry& known) {
  auto began = clock::now();
  auto awaited = fmt::format("'{}' at {}", name, nodes_.name_of(known.at));
  auto arrival = nodes_.arrival(known.at);
  if (auto come = wait(arrival, began, awaited); !come)
    return explain(come.error(), awaited, nodes_.trouble_with(known.at));
  const auto& address = arrival.get();
  if (!address) return tl::unexpected<error>(address.error());
  using result = expected<caf::strong_actor_ptr>;
  auto found = std::make_shared<std::promise<result>>();
  auto answer = found->get_future();
  nodes_.here()->find(*address, published_name(name, known.life),
                      [found](result actor) { found->set_value(std::move(actor)); });
  if (auto met = meet(known.at); !met) return tl::unexpected<error>(met.error());
  if (auto come = wait(answer, began, awaited); !come)
    return explain(come.error(), awaited,
                   "it has not come so far, or was started with other options");
  return answer.get();
}

// The error of a wait that has come to its deadline names the awaited, and what is known of it.
tl::unexpected<error> cluster_placement::explain(error reason, const std::string& awaited,
                                                 const std::string& trouble) const {
  if (reason.code == errc::deadline_exceeded)
    reason.message = fmt::format("waited {:.1f} s for {}{}{}", seconds(start_deadline_), awaited,
                                 trouble.empty() ? "" : ": ", trouble);
  return tl::unexpected<error>(std::move(reason));
}

expected<void> cluster_placement::await_chief(const std::future<void>& end) {
  auto chief = layout_.chief_node();
  auto awaited = nodes_.name_of(chief);
  auto arrival = nodes_.arrival(chief);
  if (auto come = wait(arrival_or_end{arrival, end}, clock::now(), awaited); !come)
    return explain(come.error(), awaited, nodes_.trouble_with(chief));
  if (is_ready(end)) return {};
  const auto& address = arrival.get();
  return address ? expected<void>{} : tl::unexpected<error>(address.error());
}

expected<void> cluster_placement::meet(node_index at) {
  if (at != layout_.chief_node() || !on_meeting_) return {};
  return std::exchange(on_meeting_, nullptr)();
}

template <class T>
expected<void> cluster_placement::wait(const T& future, clock::time_point began,
                                       const std::string& awaited) {
  auto deadline = began + start_deadline_;
  waiting_lines lines{start_deadline_};
  while (future.wait_until(std::min(deadline, clock::now() + peer_look_period))
         != std::future_status::ready) {
    if (auto line = lines.due(clock::now() - began, awaited)) tell_waiting(*line);
    std::lock_guard guard{mutex_};
    if (given_up_) return tl::unexpected<error>(*given_up_);
    if (refusal_) return tl::unexpected<error>(*refusal_);
    if (clock::now() >= deadline) return fail(errc::deadline_exceeded, "");
  }
  return {};
}

} // namespace troupe
