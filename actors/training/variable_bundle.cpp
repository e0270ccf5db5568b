// SPDX-License-Identifier: Apache-2.0
// The bundle's requests to its device, each for all of its variables.
#include "actors/training/variable_bundle.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/errors/failure.hpp"
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

// Has all variables use the optimizer that an update names.
expected<void> use_optimizer_of(const apply_bundle& update, const owned_variables& variables) {
  if (update.optimizer.is_empty()) return {};
  for (const auto& variable : variables)
    if (auto ready = variable->use_named(update.optimizer.reader()); !ready) return ready;
  return {};
}

/// The gradients of an update, by variable, where the variables lie.
using placed_gradients = std::vector<std::vector<gradient>>;

expected<placed_gradients> place_gradients(const owned_variables& variables,
                                           const apply_bundle& update) {
  if (auto ready = use_optimizer_of(update, variables); !ready)
    return tl::unexpected<error>(ready.error());
  placed_gradients all;
  for (size_t i = 0; i < variables.size(); ++i) {
    std::vector<gradient> gradients;
    for (const auto& push : update.gradients) {
      const auto& message = push.gradients[i];
      gradients.push_back(*read_gradient(message.reader().getGradient(), message.owner()));
    }
    auto placed = variables[i]->placed(std::move(gradients));
    if (!placed) return tl::unexpected<error>(placed.error());
    all.push_back(std::move(*placed));
  }
  return all;
}

expected<void> update_all(compute_stream& stream, const owned_variables& variables,
                          const placed_gradients& gradients, uint32_t divisor, double scale) {
  return stream.update_together([&]() -> expected<void> {
    for (size_t i = 0; i < variables.size(); ++i)
      if (auto done = variables[i]->update({gradients[i], divisor, scale}); !done) return done;
    return {};
  });
}

expected<std::vector<double>> squares_of(compute_stream& stream, const owned_variables& variables,
                                         const placed_gradients& gradients, uint32_t divisor) {
  std::vector<measured_mean> means;
  for (size_t i = 0; i < variables.size(); ++i)
    means.push_back(variables[i]->measured({gradients[i], divisor}));
  return stream.squared_norms(means);
}

// @returns The variables' values, where they lie; nothing, if some have copies that differ.
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

// @param purpose The words for the work in errors: "an update".
// @param answered Called with how long it took to queue the work, or why it was not queued.
void ask_device(bundle_pointer self, std::string_view purpose,
                std::function<expected<void>(compute_stream&)> launch,
                std::function<void(const caf::expected<job_time>&)> answered) {
  auto& state = self->state;
  ++state.at_device;
  auto queued = std::make_shared<expected<void>>();
  device_work work{.stream = state.config.stream,
                   .purpose = fmt::format("{} of variables {}", purpose, state.config.name),
                   .launch = [launch = std::move(launch),
                              queued](compute_stream& stream) { *queued = launch(stream); },
                   .is_answered_when_queued = true};
  self
    ->request(state.config.device, caf::infinite, std::move(work)) // it has a deadline of its own
    .then(
      [self, queued, answered](const device_work_done& done) {
        --self->state.at_device;
        if (done.thrown) *queued = tl::unexpected<error>(reason_of(done.thrown));
        if (*queued)
          answered(done.elapsed);
        else
          answered(to_caf(queued->error()));
        leave_if_done(self);
      },
      [self, answered](const caf::error& failure) {
        --self->state.at_device;
        if (self->state.is_leaving)
          answered(failure); // the bundle ends before the device's end, which would tell more
        else
          self->state.end.explain(failure, answered);
        leave_if_done(self);
      });
}

/// Work that the device has queued.
struct queued_work {
  std::vector<tensor> values; ///< The variables' values after the work.
  job_time took{0};           ///< The time it took to queue the work.
};

// Has the device do some work, and asks for the variables' values after it.
// @param work Changes the variables; empty: they are only read. Objects that it owns live until the
// device has done it.
void ask_for_values(bundle_pointer self, std::function<expected<void>(compute_stream&)> work,
                    std::function<void(const caf::expected<queued_work>&)> answered) {
  self->state.values.clear();
  auto values = std::make_shared<std::vector<tensor>>();
  const auto* purpose = work ? "an update" : "a read";
  auto launch = [variables = self->state.config.variables, work = std::move(work),
                 values](compute_stream& stream) -> expected<void> {
    auto done = work ? work(stream) : expected<void>{};
    if (!done) return done;
    return values_in_place(variables).map([&](auto in_place) { *values = std::move(in_place); });
  };
  ask_device(self, purpose, launch, [self, values, answered](const caf::expected<job_time>& took) {
    if (!took) return answered(took.error());
    // The work lives until the device has done it, and is to hold no share in the values.
    queued_work queued{std::move(*values), *took};
    if (self->state.at_device == 0) self->state.values = queued.values;
    answered(queued);
  });
}

void answer_readers(bundle_state& state, const caf::expected<queued_work>& read) {
  for (auto& reader : std::exchange(state.readers, {}))
    read ? reader.deliver(bundle_values{read->values}) : reader.deliver(read.error());
}

// ---- answering requests ----

caf::result<bundle_values> read(bundle_pointer self) {
  auto& state = self->state;
  if (!state.values.empty() && !state.end.has_come()) return bundle_values{state.values};
  auto reader = self->make_response_promise<bundle_values>();
  state.readers.push_back(reader);
  if (state.readers.size() == 1)
    ask_for_values(self, nullptr, [self](const caf::expected<queued_work>& done) {
      answer_readers(self->state, done);
    });
  return reader;
}

caf::result<msg<wire::UpdateApplied>>
make_update(bundle_pointer self, uint64_t step,
            std::function<expected<void>(compute_stream&)> work) {
  auto promise = self->make_response_promise<msg<wire::UpdateApplied>>();
  auto answer = [self, promise, step](const caf::expected<queued_work>& done) mutable {
    if (!done)
      promise.deliver(done.error());
    else
      promise.deliver(make_update_applied(
        {.step = step, .applied = self->state.config.world->now(), .took = done->took}));
  };
  ask_for_values(self, std::move(work), answer);
  return promise;
}

caf::result<msg<wire::UpdateApplied>> hold(bundle_pointer self, const apply_bundle& update) {
  auto promise = self->make_response_promise<msg<wire::UpdateApplied>>();
  auto held = std::make_shared<held_bundle>(update);
  auto squares = std::make_shared<std::vector<double>>();
  auto launch = [variables = self->state.config.variables, held,
                 squares](compute_stream& stream) -> expected<void> {
    auto placed = place_gradients(variables, held->update);
    if (!placed) return tl::unexpected<error>(placed.error());
    held->placed = std::move(*placed);
    return squares_of(stream, variables, held->placed, held->update.divisor).map([&](auto norms) {
      *squares = std::move(norms);
    });
  };
  auto answer = [self, promise, held, squares](const caf::expected<job_time>& measured) mutable {
    if (!measured) {
      promise.deliver(measured.error());
      return;
    }
    self->state.held = held;
    promise.deliver(make_update_applied({.step = held->update.step,
                                         .applied = self->state.config.world->now(),
                                         .took = *measured,
                                         .squared_norms = *squares}));
  };
  ask_device(self, "the norm", launch, answer);
  return promise;
}

caf::result<msg<wire::UpdateApplied>> apply(bundle_pointer self, const apply_bundle& update) {
  if (update.hold) return hold(self, update);
  auto work = [variables = self->state.config.variables,
               update = std::make_shared<apply_bundle>(update)](compute_stream& stream) {
    return place_gradients(variables, *update).and_then([&](const placed_gradients& gradients) {
      return update_all(stream, variables, gradients, update->divisor, 1);
    });
  };
  return make_update(self, update.step, work);
}

caf::result<msg<wire::UpdateApplied>> release(bundle_pointer self, double scale) {
  auto held = std::exchange(self->state.held, nullptr);
  if (!held)
    return to_caf({errc::failed_precondition,
                   fmt::format("variables {} hold no update", self->state.config.name)});
  auto work = [variables = self->state.config.variables, held, scale](compute_stream& stream) {
    return use_optimizer_of(held->update, variables).and_then([&] {
      return update_all(stream, variables, held->placed, held->update.divisor, scale);
    });
  };
  return make_update(self, held->update.step, work);
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
    [self](const msg<wire::ReleaseUpdate>& request) {
      return release(self, request.reader().getScale());
    },
    [self](const bundle_changed&) { self->state.values.clear(); },
  };
}

} // namespace troupe
