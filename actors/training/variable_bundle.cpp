// SPDX-License-Identifier: Apache-2.0
// The bundle: one request of the device for all of its variables.
#include "actors/training/variable_bundle.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using bundle_pointer = observed_pointer<bundle_actor, bundle_state>;
using owned_variables = std::vector<std::shared_ptr<owned_variable>>;

// ---- on the stream ----

std::vector<gradient> gradients_of(const apply_bundle& update, size_t variable) {
  std::vector<gradient> gradients;
  gradients.reserve(update.gradients.size());
  for (const auto& pushed : update.gradients) {
    const auto& message = pushed.gradients[variable];
    gradients.push_back(*read_gradient(message.reader().getGradient(), message.owner()));
  }
  return gradients;
}

expected<void> update_all(compute_stream& stream, const owned_variables& variables,
                          const apply_bundle& update) {
  return stream.update_together([&]() -> expected<void> {
    for (size_t i = 0; i < variables.size(); ++i)
      if (auto done = variables[i]->update(gradients_of(update, i), update.divisor); !done)
        return done;
    return {};
  });
}

// @returns What they are, where they lie; nothing, if some have copies that differ.
expected<std::vector<tensor>> values_in_place(const owned_variables& variables) {
  std::vector<tensor> values;
  if (!std::ranges::all_of(variables, [](const auto& one) { return one->is_one_array(); }))
    return values;
  values.reserve(variables.size());
  for (const auto& variable : variables) {
    auto value = variable->value_in_place();
    if (!value) return tl::unexpected<error>(value.error());
    values.push_back(std::move(*value));
  }
  return values;
}

// ---- asking for it ----

void leave_if_done(bundle_pointer self) {
  if (self->state.is_leaving && self->state.at_device == 0) self->quit();
}

/// What the device was told to do.
struct queued_work {
  std::vector<tensor> values; ///< Of the variables after it.
  job_time took{0};           ///< To queue it.
};

// The gradients go when the device has done the work, which refers to them.
// @param answered Called with what was queued, or why it was not.
void ask_device(bundle_pointer self, std::shared_ptr<const apply_bundle> update,
                std::function<void(const caf::expected<queued_work>&)> answered) {
  auto& state = self->state;
  state.values.clear();
  ++state.at_device;
  auto values = std::make_shared<expected<std::vector<tensor>>>();
  device_work work{
    .stream = state.config.stream,
    .what = fmt::format("{} of variables {}", update ? "an update" : "a read", state.config.name),
    .launch =
      [variables = state.config.variables, update = std::move(update),
       values](compute_stream& stream) {
        auto done = update ? update_all(stream, variables, *update) : expected<void>{};
        *values = done.and_then([&variables] { return values_in_place(variables); });
      },
    .is_answered_when_queued = true};
  self
    ->request(state.config.device, caf::infinite, std::move(work)) // it has a deadline of its own
    .then(
      [self, values, answered](const device_work_done& done) {
        --self->state.at_device;
        if (done.thrown) *values = tl::unexpected<error>(reason_of(done.thrown));
        if (*values) {
          // The work, which stays until the device has done it, is to have no share in them.
          queued_work queued{std::move(**values), done.elapsed};
          if (self->state.at_device == 0) self->state.values = queued.values;
          answered(queued);
        } else {
          answered(to_caf(values->error()));
        }
        leave_if_done(self);
      },
      [self, answered](const caf::error& failure) {
        --self->state.at_device;
        self->state.end.explain(failure, answered);
        leave_if_done(self);
      });
}

void answer_readers(bundle_state& state, const caf::expected<queued_work>& read) {
  for (auto& reader : std::exchange(state.readers, {}))
    read ? reader.deliver(bundle_values{read->values}) : reader.deliver(read.error());
}

// ---- what it is asked for ----

caf::result<bundle_values> read(bundle_pointer self) {
  auto& state = self->state;
  if (!state.values.empty() && !state.end.has_come()) return bundle_values{state.values};
  auto reader = self->make_response_promise<bundle_values>();
  state.readers.push_back(reader);
  if (state.readers.size() == 1)
    ask_device(self, nullptr, [self](const caf::expected<queued_work>& done) {
      answer_readers(self->state, done);
    });
  return reader;
}

caf::result<msg<wire::UpdateApplied>> apply(bundle_pointer self, const apply_bundle& update) {
  auto promise = self->make_response_promise<msg<wire::UpdateApplied>>();
  auto answer
    = [self, promise, step = update.step](const caf::expected<queued_work>& done) mutable {
        if (!done)
          promise.deliver(done.error());
        else
          promise.deliver(make_update_applied(
            {.step = step, .applied = self->state.config.world->now(), .took = done->took}));
      };
  ask_device(self, std::make_shared<apply_bundle>(update), answer);
  return promise;
}

} // namespace

bundle_actor::behavior_type variable_bundle(bundle_pointer self, bundle_config config) {
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) { self->state.end.come(down.reason); });
  self->monitor(self->state.config.device);
  self->set_exit_handler([self](const caf::exit_msg&) {
    self->state.is_leaving = true;
    leave_if_done(self);
  });
  return {
    [self](const read_bundle&) { return read(self); },
    [self](const apply_bundle& update) { return apply(self, update); },
    [self](const bundle_changed&) { self->state.values.clear(); },
  };
}

} // namespace troupe
