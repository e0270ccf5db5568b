// SPDX-License-Identifier: Apache-2.0
// Searches, from the question to the deadline.
#include "actors/net/finder.hpp"

#include "actors/net/node.hpp"
#include "actors/recording/seconds.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// How often a finder looks for nodes that have come, and for deadlines that have passed.
constexpr std::chrono::milliseconds search_look_period{20};

std::string name_for_finders(const std::string& name) {
  return "own " + name;
}

} // namespace

caf::typed_response_promise<found_actor> finder_state::begin(find_actor request) {
  auto number = ++count;
  auto now = self->clock().now();
  constexpr auto end_of_time = caf::actor_clock::time_point::max();
  auto until = request.deadline < end_of_time - now ? now + request.deadline : end_of_time;
  auto answer = self->make_response_promise<found_actor>();
  open.emplace(number, search{std::move(request), until, answer});
  if (ended)
    end_all(*ended);
  else
    look();
  return answer;
}

void finder_state::look() {
  std::vector<uint64_t> late;
  for (auto& [number, one] : open) {
    if (!one.is_asked) ask(one);
    if (self->clock().now() >= one.until) late.push_back(number);
  }
  for (auto number : late)
    end(number, tl::unexpected<error>(why_late(open.at(number))));
  if (open.empty() || std::exchange(looks_again, true)) return;
  self->delayed_send(self, search_look_period, look_at_searches{});
}

void finder_state::ask(search& one) {
  auto arrival = nodes->arrival(one.request.at);
  if (arrival.wait_for(std::chrono::seconds{0}) != std::future_status::ready) return;
  one.is_asked = true;
  if (!asked.emplace(one.request.at, one.request.name).second) return;
  auto tell = [finder = caf::actor_cast<caf::actor_addr>(self), at = one.request.at,
               name = one.request.name](expected<caf::strong_actor_ptr> result) {
    if (auto alive = caf::actor_cast<finder_actor>(finder))
      caf::anon_send(alive, search_over{at, name, std::move(result)});
  };
  const auto& address = arrival.get();
  if (!address) return tell(tl::unexpected<error>(address.error()));
  nodes->here()->find(*address, name_for_finders(one.request.name), tell);
}

void finder_state::end(uint64_t number, expected<caf::strong_actor_ptr> result) {
  auto found = open.find(number);
  auto answer = std::move(found->second.answer);
  open.erase(found);
  deliver(std::move(answer), std::move(result).map([](caf::strong_actor_ptr actor) {
    return found_actor{std::move(actor)};
  }));
}

void finder_state::on_answer(const search_over& over) {
  asked.erase({over.at, over.name});
  std::vector<uint64_t> answered;
  for (const auto& [number, one] : open)
    if (one.is_asked && one.request.at == over.at && one.request.name == over.name)
      answered.push_back(number);
  for (auto number : answered)
    end(number, over.result);
}

void finder_state::end_all(const error& why) {
  while (!open.empty())
    end(open.begin()->first, tl::unexpected<error>(why));
}

error finder_state::why_late(const search& one) const {
  auto trouble = one.is_asked ? std::string{"the process has published no actor of that name"}
                              : nodes->trouble_with(one.request.at);
  return {errc::deadline_exceeded,
          fmt::format("waited {:.1f} s for the actor '{}' of {}: {}", seconds(one.request.deadline),
                      one.request.name, nodes->name_of(one.request.at),
                      trouble.empty() ? "the process is not there" : trouble)};
}

finder_actor::behavior_type finder(finder_actor::stateful_pointer<finder_state> self,
                                   membership* nodes) {
  self->state.self = self;
  self->state.nodes = nodes;
  self->set_exit_handler([self](const caf::exit_msg& exit) {
    self->state.end_all({errc::cancelled, "this process looks for no actors any more"});
    self->quit(exit.reason);
  });
  return {
    [self](const find_actor& request) { return self->state.begin(request); },
    [self](const end_searches& all) {
      self->state.ended = all.why;
      self->state.end_all(all.why);
    },
    [self](const search_over& over) { self->state.on_answer(over); },
    [self](look_at_searches) {
      self->state.looks_again = false;
      self->state.look();
    },
  };
}

void publish_for_finders(node& here, const std::string& name, const caf::strong_actor_ptr& actor) {
  here.publish(name_for_finders(name), actor);
}

} // namespace troupe
