// SPDX-License-Identifier: Apache-2.0
// Spawns a coordinator and its workers, and talks to them.
#include "strategies/coordinator/closure_service.hpp"

#include "actors/coordinator/closure_worker.hpp"
#include "actors/interfaces/caf_compat.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/world/completion.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/strategy.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace troupe {

namespace {

std::string name_of_worker(uint32_t index) {
  return fmt::format("worker {}", index);
}

// A call by name, in the contexts of user code.
task<std::vector<closure_value>> call(activity& activity, msg<wire::RunClosure> message,
                                      closure_context::place place,
                                      std::shared_ptr<const closure_registry> registry,
                                      std::shared_ptr<worker_room> room) {
  context_stack stack;
  activity.set_surroundings(&stack);
  stack.push({context_kind::closure, place.owner});
  place.closure = message.reader().getClosure();
  std::vector<closure_value> results;
  std::exception_ptr thrown;
  try {
    closure_context context{activity, place};
    room->keep(message.reader().getInstances());
    auto function = registry->find(message.reader().getFunction());
    auto calling = function(context, std::move(message), *room);
    results = co_await calling;
  } catch (...) {
    thrown = std::current_exception();
  }
  activity.set_surroundings(nullptr);
  if (thrown) std::rethrow_exception(thrown);
  co_return results;
}

// The most leaves of arguments that any worker is sent for a closure.
size_t leaf_count(const std::vector<closure_argument>& arguments) {
  size_t count = 0;
  for (const auto& argument : arguments) {
    if (const auto* same = std::get_if<std::vector<closure_value>>(&argument)) {
      count += same->size();
      continue;
    }
    size_t most = 0;
    for (const auto& leaves : std::get<std::vector<std::vector<closure_value>>>(argument))
      most = std::max(most, leaves.size());
    count += most;
  }
  return count;
}

// Waits for an answer; that of a wait that ends without one is the wait's error.
template <class T>
T wait_for(const completion<T>& answer, const closure_waiter& waiter, world& world,
           job_time timeout = world::for_ever) {
  auto waited = waiter.wait(world, answer.known(), timeout);
  if (!waited) answer(tl::unexpected<error>(waited.error())); // unless it was told just now
  return value_or_throw(answer.wait(world));
}

// The end of the job may be the reason why an owner is gone: word of it comes within this time.
constexpr job_time word_timeout = std::chrono::seconds{1};

struct bystander_state {
  static inline const char* name = "bystander";
  std::optional<error> lost; ///< Why an owner is gone.
};

// Waits for the end of the job in a process that does not lead. All calls would fail here that need
// an owner which this process alone has lost: it ends, and a new start has new links.
caf::behavior bystander(caf::stateful_actor<bystander_state>* self,
                        const coordinator_actor& coordinator, uint32_t here,
                        const std::vector<variable_owner_actor>& owners,
                        const completion<void>& ended) {
  self->set_down_handler([self](const caf::down_msg& down) {
    if (!is_lost_node(down.reason) || self->state.lost) return;
    self->state.lost = from_caf(down.reason);
    self->delayed_send(self, word_timeout, give_up{});
  });
  for (const auto& owner : owners)
    self->monitor(owner);
  self
    ->request(coordinator, caf::infinite, make_await_service_end(here)) // a lost node answers
    .then([ended](const msg<wire::ServiceEnded>&) { ended({}); },
          [ended](const caf::error& reason) { ended(tl::unexpected<error>(from_caf(reason))); });
  return {[self, ended](give_up) { ended(tl::unexpected<error>(*self->state.lost)); }};
}

} // namespace

closure_service::closure_service(troupe::strategy& strategy, coordinator_options options)
  : strategy_(strategy), world_(strategy.world()), placement_(strategy.layout().placement),
    options_(std::move(options)), leads_(placement_ == nullptr || placement_->leads()) {
  require(options_.queue_capacity > 0, "queue_capacity is 0; a closure needs a place to wait in");
  if (options_.stall_deadline <= job_time{0})
    throw_failure(errc::invalid_argument, "stall_deadline is {} s; it must be positive",
                  seconds(options_.stall_deadline));
  waiter_ = std::make_shared<closure_waiter>(gauge_, options_.stall_deadline, options_.on_waiting);
  require(options_.start_delay >= job_time{0} && options_.start_delay_max >= job_time{0},
          "start_delay and start_delay_max must not be negative");
  workers_ = strategy.num_replicas_in_sync();
  if (placement_ != nullptr) workers_ = placement_->worker_count().value_or(workers_);
  if (workers_ == 0)
    throw_failure(errc::failed_precondition,
                  "the cluster has no worker, so no process would run closures; add workers");
  static_cast<void>(stands_here("coordinator"));
  for (uint32_t i = 0; i < workers_; ++i)
    if (stands_here(name_of_worker(i))) workers_here_.push_back(i);
  if (!leads_) return;
  auto others = placement_ == nullptr ? 0 : static_cast<uint32_t>(placement_->others().size());
  coordinator_ = world_.system().spawn(coordinator,
                                       coordinator_config{workers_, others, options_.queue_capacity,
                                                          gauge_, instances_, options_.on_warning});
  world_.introduce(coordinator_.id(), "coordinator");
  if (placement_ != nullptr) {
    placement_->put("coordinator", coordinator_);
    placement_->begin();
  }
  tell_directory(strategy_, coordinator_);
  if (strategy_.layout().owner_copies > 1)
    placement_->on_owners_return(
      [&strategy = strategy_](uint32_t process) { bring_back(strategy, process); });
  spawn_workers();
}

closure_service::~closure_service() {
  if (!leads_) return;
  if (placement_ != nullptr) placement_->on_owners_return({});
  auto ended = end_of(coordinator_);
  caf::anon_send(coordinator_, end_service{});
  if (!ended.comes(world_, options_.end_timeout)) {
    world_.call([coordinator = coordinator_] { caf::anon_send(coordinator, give_up{}); });
    static_cast<void>(ended.comes(world_, options_.end_timeout));
  }
  end_workers();
}

bool closure_service::stands_here(const std::string& name) {
  return placement_ == nullptr || value_or_throw(placement_->enter(name));
}

job_time closure_service::start_delay_of(uint32_t worker) const {
  auto [delay, longest] = std::pair{options_.start_delay, options_.start_delay_max};
  return delay > job_time{0} && worker > longest / delay ? longest : worker * delay;
}

void closure_service::spawn_workers() {
  for (auto index : workers_here_) {
    closure_worker_config config{.index = index,
                                 .coordinator = coordinator_,
                                 .world = &world_,
                                 .start_delay = start_delay_of(index)};
    auto room = std::make_shared<worker_room>(registry_, input_context{workers_, index, 1});
    closure_context::place place{.worker = index, .workers = workers_, .owner = &strategy_};
    config.call
      = [place, room, registry = registry_](activity& activity, msg<wire::RunClosure> message) {
          return troupe::call(activity, std::move(message), place, registry, room);
        };
    spawned_.push_back(world_.system().spawn(closure_worker, std::move(config)));
    world_.introduce(spawned_.back().id(), name_of_worker(index));
  }
}

// After this no function of a user runs here any more, unless it does not stop in time.
void closure_service::end_workers() {
  for (const auto& worker : spawned_)
    caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  for (const auto& worker : std::exchange(spawned_, {})) {
    if (end_of(worker).comes(world_, options_.end_timeout)) continue;
    end_actor(world_, worker, caf::exit_reason::kill, options_.end_timeout);
  }
}

void closure_service::check_call(std::string_view call) const {
  check_may_wait(call);
  if (!leads_)
    throw_failure(
      errc::wrong_context,
      "{} was called in a process that only works for the coordinator; call serve there", call);
}

void closure_service::check_own(const closure_service* owner, std::string_view name) const {
  if (owner != this)
    throw_failure(errc::invalid_argument,
                  "{} belongs to another coordinator; make it with the one that schedules", name);
}

// Closures use the variables that there are when they are scheduled. The owners that a process
// knows may be caches of its own.
void closure_service::watch_owners() {
  for (auto& owner : owners("coordinator"))
    caf::anon_send(coordinator_, rely_on{std::move(owner)});
}

closure_service::owner_list closure_service::owners(const std::string& viewer) {
  owner_list all;
  if (placement_ == nullptr || strategy_.layout().owner_copies > 1) return all;
  for (const auto& variable : strategy_.variables().subspan(watched_)) {
    auto found = placement_->find<variable_owner_actor>(viewer, "owner " + variable.name());
    if (auto owner = value_or_throw(std::move(found))) all.push_back(std::move(owner));
  }
  watched_ = strategy_.variables().size();
  return all;
}

// Mostly this is but a message; at a full queue, or after an error, the caller waits.
void closure_service::schedule(const std::string& function, std::vector<closure_argument> arguments,
                               std::shared_ptr<closure_outcome> outcome) {
  if (auto count = leaf_count(arguments); count > limits::list_elements_max)
    throw_failure(errc::limit_exceeded, "'{}' takes {} values; at most {} can travel", function,
                  count, limits::list_elements_max);
  schedule_closure closure{
    function,
    std::move(arguments),
    [outcome](expected<std::vector<closure_value>> result) { outcome->settle(std::move(result)); },
    {}};
  outcome->wait_by(waiter_);
  watch_owners();
  auto has_room = gauge_->taken.fetch_add(1) < options_.queue_capacity;
  if (has_room && !gauge_->has_failed) return caf::anon_send(coordinator_, std::move(closure));
  --gauge_->taken;
  completion<void> admission;
  closure.admitted = admission;
  caf::anon_send(coordinator_, std::move(closure));
  wait_for(admission, *waiter_, world_);
}

bool closure_service::ask(bool until_all_are_done, job_time timeout) {
  completion<bool> are_done;
  caf::anon_send(coordinator_, await_closures{until_all_are_done, are_done});
  return wait_for(are_done, *waiter_, world_, timeout);
}

void closure_service::join(job_time timeout) {
  static_cast<void>(ask(true, timeout));
}

bool closure_service::done() {
  return ask(false, world::for_ever);
}

void closure_service::serve(const std::stop_token& stop) {
  if (leads_)
    throw_failure(
      errc::wrong_context,
      "serve was called in the process that leads; it has workers of its own, and schedules");
  completion<void> ended;
  std::stop_callback on_stop{stop, [this, ended] {
                               placement_->give_up(error{errc::cancelled, "asked to stop"});
                               ended({});
                             }};
  if (stop.stop_requested()) return;
  coordinator_ = value_or_throw(placement_->find<coordinator_actor>("member", "coordinator"));
  auto waiting
    = world_.system().spawn(bystander, coordinator_, placement_->here(),
                            workers_here_.empty() ? owner_list{} : owners("member"), ended);
  spawn_workers();
  offer_all_again(strategy_, false);
  auto outcome = ended.wait(world_);
  end_workers();
  caf::anon_send_exit(waiting, caf::exit_reason::kill);
  value_or_throw(std::move(outcome));
}

} // namespace troupe
