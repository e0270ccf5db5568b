// SPDX-License-Identifier: Apache-2.0
// From a failure to the restart, or to the end of all.
#include "actors/supervision/supervisor.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/supervision/supervised_proxy.hpp"
#include "actors/world/users_code.hpp"
#include "actors/world/world.hpp"
#include "messages/failure.hpp"
#include "messages/throw_failure.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace troupe {

namespace {

using child_phase = supervised_child::phase;

bool is_as_it_should(const caf::error& reason) {
  return !reason || reason == caf::exit_reason::normal || reason == caf::exit_reason::user_shutdown;
}

error is_gone(const supervised_child& child) {
  return {errc::unavailable, child.name + " has ended"};
}

} // namespace

supervised_proxy& supervised_child::handle() const {
  return static_cast<supervised_proxy&>(*proxy->get());
}

supervised_child::~supervised_child() {
  if (is == phase::stopped || !proxy) return;
  if (actor) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  error why{errc::unavailable, name + " has no supervisor any more"};
  handle().end(why, to_caf(why));
}

void supervisor_state::add(const child& what) {
  children.push_back(what);
  self->monitor(what->actor);
}

void supervisor_state::lose(const caf::actor_addr& gone, const caf::error& reason) {
  auto is_it = [&](const child& one) {
    return one->actor && caf::actor_cast<caf::actor_addr>(one->actor) == gone;
  };
  auto found = std::ranges::find_if(children, is_it);
  if (found == children.end()) return;
  auto& lost = **found;
  lost.actor = nullptr;
  if (lost.is == child_phase::ending) {
    lost.is = child_phase::down;
    return restart_all();
  }
  if (lost.is == child_phase::running && !is_as_it_should(reason))
    return fail(lost, from_caf(reason));
  lost.is = child_phase::stopped;
  lost.handle().end(is_gone(lost), reason);
  children.erase(found);
  if (options.restart.together) restart_all();
}

void supervisor_state::stop(supervised_child& what) {
  what.is = child_phase::stopped;
  if (what.actor) {
    self->send_exit(what.actor, caf::exit_reason::user_shutdown);
    return;
  }
  what.handle().end(is_gone(what), caf::exit_reason::user_shutdown);
  std::erase_if(children, [&](const child& one) { return one.get() == &what; });
}

void supervisor_state::fail(supervised_child& what, error why) {
  what.is = child_phase::down;
  what.why = std::move(why);
  auto& counted = options.restart.together ? failures : what.failures;
  if (!counted) counted.emplace(options.restart);
  auto delay = counted->next(world->now());
  if (!delay) return give_up(what);
  what.handle().unbind(
    {errc::unavailable,
     fmt::format("{} has failed and begins anew: {}", what.name, what.why.message),
     what.why.throw_site});
  options.on_warning(fmt::format("supervisor '{}': {} has failed and begins anew in {:.1f} s: {}",
                                 called, what.name, seconds(*delay), what.why.message));
  may_begin = false;
  for (const auto& one : children) {
    if (!options.restart.together || one->is != child_phase::running) continue;
    one->is = child_phase::ending;
    one->why = what.why;
    one->handle().unbind({errc::unavailable,
                          fmt::format("{} begins anew with {}, which has failed: {}", one->name,
                                      what.name, what.why.message),
                          what.why.throw_site});
    self->send_exit(one->actor, caf::exit_reason::kill);
  }
  auto failed = std::ranges::find(children, &what, &child::get);
  self->delayed_send(self, *delay, restart_due{*failed, ++failure_count});
}

void supervisor_state::restart(const restart_due& due) {
  if (options.restart.together) {
    if (due.failure != failure_count) return;
    may_begin = true;
    return restart_all();
  }
  // It may have been stopped meanwhile, or have ended with its supervisor.
  if (auto what = due.child.lock(); what && what->is == child_phase::down) begin_anew(*what);
}

// Siblings begin anew when the backoff is over and the last of them has ended.
void supervisor_state::restart_all() {
  auto is_ending = [](const child& one) { return one->is == child_phase::ending; };
  if (!may_begin || std::ranges::any_of(children, is_ending)) return;
  for (const auto& one : std::vector(children)) {
    if (one->is == child_phase::down) begin_anew(*one);
    if (one->is == child_phase::down) return; // it has failed again, and all wait for it
  }
}

void supervised_child::begin() {
  actor = make({restarts, why, state});
  if (!actor)
    throw_failure(errc::invalid_argument, "the function that makes {} returned no actor", name);
}

void supervisor_state::begin_anew(supervised_child& what) {
  ++what.restarts;
  try {
    what.begin();
  } catch (...) {
    return fail(what, reason_of(std::current_exception()));
  }
  what.is = child_phase::running;
  self->monitor(what.actor);
  what.handle().bind(what.actor);
}

void supervisor_state::give_up(const supervised_child& what) {
  error why{
    errc::unavailable,
    fmt::format("supervisor '{}' gives up: {} has failed {} times within {:.1f} s, at last: {}",
                called, what.name, options.restart.restarts + 1, seconds(options.restart.within),
                what.why.message),
    what.why.throw_site};
  end_all(why, to_caf(why));
  self->quit(to_caf(why));
  options.on_warning(why.message);
  options.on_give_up(why);
}

void supervisor_state::end_all(const error& why, const caf::error& reason) {
  for (const auto& one : std::exchange(children, {})) {
    one->is = child_phase::stopped;
    if (one->actor) self->send_exit(one->actor, caf::exit_reason::user_shutdown);
    one->handle().end(why, reason);
  }
}

supervisor_actor::behavior_type supervise(supervisor_pointer self, troupe::world* world,
                                          const std::string& name, supervisor_options options) {
  auto& state = self->state;
  state.self = self;
  state.world = world;
  state.called = name;
  state.options.restart = options.restart;
  state.options.on_warning = [tell = std::move(options.on_warning)](const std::string& line) {
    if (!tell) std::fprintf(stderr, "%s\n", line.c_str());
    if (tell) call_users_code("on_warning of a supervisor", [&] { tell(line); });
  };
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
    [self](const supervise_child& what) { self->state.add(what.child); },
    [self](const stop_child& what) {
      if (auto child = what.child.lock()) self->state.stop(*child);
    },
    [self](const restart_due& what) { self->state.restart(what); },
  };
}

supervisor::supervisor(troupe::world& world, std::string name, supervisor_options options)
  : world_(world), actor_(world.system().spawn(supervise, &world, name, std::move(options))) {
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
    = [to = actor_, what = std::weak_ptr{child}] { caf::anon_send(to, stop_child{what}); };
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
