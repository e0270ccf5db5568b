// SPDX-License-Identifier: Apache-2.0
// The task observer: questions to processes, and their answers.
#include "actors/training/task_observer.hpp"

#include "messages/observing_message.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

using task_observer_pointer = observed_pointer<task_observer_actor, task_observer_state>;

void on_report(task_observer_pointer self, uint32_t number, const task_reporter_actor& who,
               const msg<wire::TaskReport>& report) {
  auto& state = self->state;
  auto found = state.tasks.find(number);
  if (found == state.tasks.end() || found->second.who != who) return; // of an earlier life
  found->second.is_asked = false;
  state.config.view->fold(number, read_task_report(report.reader()), state.config.world->now());
}

void on_refusal(task_observer_state& state, uint32_t number, const task_reporter_actor& who) {
  auto found = state.tasks.find(number);
  if (found != state.tasks.end() && found->second.who == who) found->second.is_asked = false;
}

// A question that was refused is asked again.
void ask(task_observer_pointer self, uint32_t number, task_observer_state::task& task) {
  if (std::exchange(task.is_asked, true)) return;
  constexpr auto timeout = caf::infinite; // the node answers for a process that is gone
  self->request(task.who, timeout, make_read_task(1))
    .then(
      [self, number, who = task.who](const msg<wire::TaskReport>& report) {
        on_report(self, number, who, report);
      },
      [self, number, who = task.who](const caf::error&) { on_refusal(self->state, number, who); });
}

void look(task_observer_pointer self) {
  for (auto& [number, task] : self->state.tasks)
    ask(self, number, task);
  self->delayed_send(self, self->state.config.period, watch_tick{});
}

void on_here(task_observer_pointer self, const observe_task& entered) {
  auto& state = self->state;
  self->monitor(entered.who);
  state.config.view->enter(entered.number);
  auto& task = state.tasks[entered.number] = {.who = entered.who};
  ask(self, entered.number, task);
}

void on_down(task_observer_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto is_gone = [&down](const auto& one) { return down.source == one.second.who; };
  auto gone = std::ranges::find_if(state.tasks, is_gone);
  if (gone == state.tasks.end()) return;
  state.config.view->lose(gone->first);
  state.tasks.erase(gone);
}

// ---- flight records ----

void end_one(task_observer_pointer self) {
  auto& state = self->state;
  if (--state.awaited == 0)
    state.config.on_records(std::exchange(state.collected, flight_records{}));
}

void ask_for_record(task_observer_pointer self, const std::string& name,
                    const task_reporter_actor& who) {
  self->request(who, self->state.config.record_deadline, make_read_task(observation::messages_kept))
    .then(
      [self, name](const msg<wire::TaskReport>& report) {
        auto now = self->state.config.world->now();
        auto record = sight_of(read_task_report(report.reader()), name, now);
        self->state.collected.tasks.push_back(std::move(record));
        end_one(self);
      },
      [self, name](const caf::error&) {
        self->state.collected.silent.push_back(name);
        end_one(self);
      });
}

void collect(task_observer_pointer self, const collect_flight_records& wanted) {
  auto& state = self->state;
  if (state.awaited > 0) return;
  state.collected.reason = wanted.reason;
  state.awaited = 1; // itself, until all are asked
  for (auto& sight : state.config.view->look()) {
    if (!sight.is_lost) continue;
    state.collected.silent.push_back(sight.task);
    state.collected.tasks.push_back(std::move(sight));
  }
  for (const auto& [number, task] : state.tasks) {
    ++state.awaited;
    ask_for_record(self, state.config.view->name_of(number), task.who);
  }
  end_one(self);
}

} // namespace

task_observer_actor::behavior_type task_observer(task_observer_pointer self,
                                                 task_observer_config config) {
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  look(self);
  return {
    [self](const observe_task& entered) { on_here(self, entered); },
    [self](const collect_flight_records& wanted) { collect(self, wanted); },
    [self](watch_tick) { look(self); },
  };
}

} // namespace troupe
