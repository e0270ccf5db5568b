// SPDX-License-Identifier: Apache-2.0
// The supervisor's actor: failures, restarts, and giving up.
#include "actors/supervision/supervisor.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/supervision/supervised_proxy.hpp"
#include "actors/world/world.hpp"
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

using child_phase = supervised_child::phase;

bool is_regular_end(const caf::error& reason) {
  return !reason || reason == caf::exit_reason::normal || reason == caf::exit_reason::user_shutdown;
}

error has_ended(const supervised_child& child) {
  return {errc::unavailable, child.name + " has ended"};
}

} // namespace

supervised_proxy& supervised_child::handle() const {
  return static_cast<supervised_proxy&>(*proxy->get());
}

supervised_child::~supervised_child() {
  if (now_in == phase::stopped || !proxy) return;
  if (actor) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  error why{errc::unavailable, name + " has no supervisor any more"};
  handle().end(why, to_caf(why));
}

void supervisor_state::add(const child_pointer& child) {
  children.push_back(child);
  self->monitor(child->actor);
}

void supervisor_state::lose(const caf::actor_addr& gone, const caf::error& reason) {
  auto is_gone = [&](const child_pointer& child) {
    return child->actor && caf::actor_cast<caf::actor_addr>(child->actor) == gone;
  };
  auto found = std::ranges::find_if(children, is_gone);
  if (found == children.end()) return;
  auto& lost = **found;
  lost.actor = nullptr;
  if (lost.now_in == child_phase::ending) {
    lost.now_in = child_phase::down;
    return restart_all();
  }
  if (lost.now_in == child_phase::running && !is_regular_end(reason))
    return fail(lost, from_caf(reason));
  lost.now_in = child_phase::stopped;
  lost.handle().end(has_ended(lost), reason);
  children.erase(found);
  if (options.restart.together) restart_all();
}

void supervisor_state::stop(supervised_child& child) {
  child.now_in = child_phase::stopped;
  if (child.actor) {
    self->send_exit(child.actor, caf::exit_reason::user_shutdown);
    return;
  }
  child.handle().end(has_ended(child), caf::exit_reason::user_shutdown);
  std::erase_if(children, [&](const child_pointer& other) { return other.get() == &child; });
}

void supervisor_state::fail(supervised_child& child, error why) {
  child.now_in = child_phase::down;
  child.why = std::move(why);
  auto& counted = options.restart.together ? failures : child.failures;
  if (!counted) counted.emplace(options.restart);
  auto delay = counted->next(world->now());
  if (!delay) return give_up(child);
  child.handle().unbind(
    {errc::unavailable,
     fmt::format("{} has failed and begins anew: {}", child.name, child.why.message),
     child.why.throw_site});
  options.on_warning(fmt::format("supervisor '{}': {} has failed and begins anew in {:.1f} s: {}",
                                 called, child.name, seconds(*delay), child.why.message));
  may_begin = false;
  for (const auto& sibling : children) {
    if (!options.restart.together || sibling->now_in != child_phase::running) continue;
    sibling->now_in = child_phase::ending;
    sibling->why = child.why;
    sibling->handle().unbind({errc::unavailable,
                              fmt::format("{} begins anew with {}, which has failed: {}",
                                          sibling->name, child.name, child.why.message),
                              child.why.throw_site});
    self->send_exit(sibling->actor, caf::exit_reason::kill);
  }
  auto failed = std::ranges::find(children, &child, &child_pointer::get);
  self->delayed_send(self, *delay, restart_due{*failed, ++failure_count});
}

void supervisor_state::restart(const restart_due& due) {
  if (options.restart.together) {
    if (due.failure != failure_count) return;
    may_begin = true;
    return restart_all();
  }
  // It may have been stopped meanwhile, or have ended with its supervisor.
  if (auto child = due.child.lock(); child && child->now_in == child_phase::down)
    begin_anew(*child);
}

// Restarts actors together, when the backoff is over and the last of them has ended.
void supervisor_state::restart_all() {
  auto is_ending = [](const child_pointer& child) { return child->now_in == child_phase::ending; };
  if (!may_begin || std::ranges::any_of(children, is_ending)) return;
  for (const auto& child : std::vector(children)) {
    if (child->now_in == child_phase::down) begin_anew(*child);
    if (child->now_in == child_phase::down) return; // it has failed again, and all wait for it
  }
}

void supervised_child::begin() {
  actor = make({restarts, why, state});
  if (!actor)
    throw_failure(errc::invalid_argument, "the function that makes {} returned no actor", name);
}

void supervisor_state::begin_anew(supervised_child& child) {
  ++child.restarts;
  try {
    child.begin();
  } catch (...) {
    return fail(child, reason_of(std::current_exception()));
  }
  child.now_in = child_phase::running;
  self->monitor(child.actor);
  child.handle().bind(child.actor);
}

void supervisor_state::give_up(const supervised_child& child) {
  error why{
    errc::unavailable,
    fmt::format("supervisor '{}' gives up: {} has failed {} times within {:.1f} s, at last: {}",
                called, child.name, options.restart.restarts + 1, seconds(options.restart.within),
                child.why.message),
    child.why.throw_site};
  end_all(why, to_caf(why));
  self->quit(to_caf(why));
  options.on_warning(why.message);
  options.on_give_up(why);
}

void supervisor_state::end_all(const error& why, const caf::error& reason) {
  for (const auto& child : std::exchange(children, {})) {
    child->now_in = child_phase::stopped;
    if (child->actor) self->send_exit(child->actor, caf::exit_reason::user_shutdown);
    child->handle().end(why, reason);
  }
}

supervisor_actor::behavior_type supervise(supervisor_pointer self, troupe::world* world,
                                          const std::string& name, supervisor_options options) {
  auto& state = self->state;
  state.self = self;
  state.world = world;
  state.called = name;
  state.options.restart = options.restart;
  state.options.on_warning
    = line_teller("on_warning of a supervisor", std::move(options.on_warning));
  state.options.on_give_up = [tell = std::move(options.on_give_up)](const error& why) {
    if (tell) call_users_code("on_give_up of a supervisor", [&] { tell(why); });
  };
  self->set_down_handler(
    [self](const caf::down_msg& down) { self->state.lose(down.source, down.reason); });
  self->set_exit_handler([self](const caf::exit_msg& exit) {
    self->state.end_all({errc::unavailable, "supervisor '" + self->state.called + "' has ended"},
                        exit.reason);
    self->quit(exit.reason);
  });
  return {
    [self](const supervise_child& message) { self->state.add(message.child); },
    [self](const stop_child& message) {
      if (auto child = message.child.lock()) self->state.stop(*child);
    },
    [self](const restart_due& due) { self->state.restart(due); },
  };
}

supervisor::supervisor(troupe::world& world, std::string name, supervisor_options options)
  : world_(world) {
  const auto& restart = options.restart;
  if (restart.within <= job_time{0} || restart.backoff < job_time{0}
      || restart.backoff_max < job_time{0})
    throw_failure(errc::invalid_argument,
                  "supervisor '{}' counts restarts within {} s, and begins anew after {} to {} s: "
                  "give a time above 0, and backoffs of at least 0",
                  name, seconds(restart.within), seconds(restart.backoff),
                  seconds(restart.backoff_max));
  actor_ = world.system().spawn(supervise, &world, name, std::move(options));
  world.introduce(actor_.id(), "supervisor " + name);
}

supervisor::~supervisor() {
  caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
}

caf::strong_actor_ptr
supervisor::add_child(const std::string& name,
                      std::function<caf::strong_actor_ptr(const child_start&)> make) {
  if (!make) throw_failure(errc::invalid_argument, "the function that makes {} is empty", name);
  auto child = std::make_shared<supervised_child>();
  child->name = name;
  child->make = std::move(make);
  auto on_exit
    = [supervisor = actor_, stop = stop_child{child}] { caf::anon_send(supervisor, stop); };
  auto& system = world_.system();
  caf::actor_config config;
  child->proxy = caf::make_actor<supervised_proxy, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, std::move(on_exit));
  child->begin();
  child->handle().bind(child->actor);
  auto handle = child->proxy;
  caf::anon_send(actor_, supervise_child{std::move(child)});
  return handle;
}

} // namespace troupe
