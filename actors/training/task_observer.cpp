// SPDX-License-Identifier: Apache-2.0
// The task observer's questions to processes, and their answers.
#include "actors/training/task_observer.hpp"

#include "messages/observing_message.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

using task_observer_pointer = observed_pointer<task_observer_actor, task_observer_state>;

// A question has been answered or refused.
// @returns False if its process is lost, or has begun another life since it was asked.
bool end_question(task_observer_state& state, uint32_t number,
                  const task_reporter_actor& reporter) {
  auto found = state.tasks.find(number);
  if (found == state.tasks.end() || found->second.reporter != reporter) return false;
  found->second.is_asked = false;
  return true;
}

void on_report(task_observer_pointer self, uint32_t number, const task_reporter_actor& reporter,
               const msg<wire::TaskReport>& report) {
  auto& state = self->state;
  if (end_question(state, number, reporter))
    state.config.view->fold(number, read_task_report(report.reader()), state.config.world->now());
}

// A process that refuses a question is asked again.
void ask(task_observer_pointer self, uint32_t number, task_observer_state::task& task) {
  if (std::exchange(task.is_asked, true)) return;
  constexpr auto timeout = caf::infinite; // the node answers for a process that is gone
  self->request(task.reporter, timeout, make_read_task(1))
    .then([self, number, reporter = task.reporter](
            const msg<wire::TaskReport>& report) { on_report(self, number, reporter, report); },
          [self, number, reporter = task.reporter](const caf::error&) {
            end_question(self->state, number, reporter);
          });
}

void look(task_observer_pointer self) {
  for (auto& [number, task] : self->state.tasks)
    ask(self, number, task);
  self->delayed_send(self, self->state.config.period, watch_tick{});
}

void on_here(task_observer_pointer self, const observe_task& entered) {
  auto& state = self->state;
  self->monitor(entered.reporter);
  state.config.view->enter(entered.number);
  auto& task = state.tasks[entered.number] = {.reporter = entered.reporter};
  ask(self, entered.number, task);
}

void on_down(task_observer_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto is_gone = [&down](const auto& item) { return down.source == item.second.reporter; };
  auto gone = std::ranges::find_if(state.tasks, is_gone);
  if (gone == state.tasks.end()) return;
  state.config.view->lose(gone->first);
  state.tasks.erase(gone);
}

// ---- flight records ----

void count_answer(task_observer_pointer self) {
  auto& state = self->state;
  if (--state.awaited == 0)
    state.config.on_records(std::exchange(state.collected, flight_records{}));
}

void ask_for_record(task_observer_pointer self, const std::string& name,
                    const task_reporter_actor& reporter) {
  self
    ->request(reporter, self->state.config.record_deadline,
              make_read_task(observation::messages_kept))
    .then(
      [self, name](const msg<wire::TaskReport>& report) {
        auto now = self->state.config.world->now();
        auto record = sight_of(read_task_report(report.reader()), name, now);
        self->state.collected.tasks.push_back(std::move(record));
        count_answer(self);
      },
      [self, name](const caf::error&) {
        self->state.collected.silent.push_back(name);
        count_answer(self);
      });
}

void collect(task_observer_pointer self, const collect_flight_records& request) {
  auto& state = self->state;
  if (state.awaited > 0) return;
  state.collected.reason = request.reason;
  state.awaited = 1; // the collection itself, until all are asked
  for (auto& sight : state.config.view->look()) {
    if (!sight.is_lost) continue;
    state.collected.silent.push_back(sight.task);
    state.collected.tasks.push_back(std::move(sight));
  }
  for (const auto& [number, task] : state.tasks) {
    ++state.awaited;
    ask_for_record(self, state.config.view->name_of(number), task.reporter);
  }
  count_answer(self);
}

} // namespace

task_observer_actor::behavior_type task_observer(task_observer_pointer self,
                                                 task_observer_config config) {
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  look(self);
  return {
    [self](const observe_task& entered) { on_here(self, entered); },
    [self](const collect_flight_records& request) { collect(self, request); },
    [self](watch_tick) { look(self); },
  };
}

} // namespace troupe
