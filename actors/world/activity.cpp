// SPDX-License-Identifier: Apache-2.0
// Work beside the computing of an activity, its end before time, and its state for checkpoints.
#include "actors/world/activity.hpp"

#include "actors/world/endless_work.hpp"
#include "actors/world/request_work.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace troupe {

void activity::begin_offload_to(const processor& where, std::string purpose,
                                std::function<void(compute_stream&)> work) {
  device_work request{
    .stream = where.stream, .purpose = std::move(purpose), .launch = std::move(work)};
  request_work(
    self_, where.device, std::move(request),
    [this](const device_work_done& done) {
      on(wake{nullptr, done.thrown});
    },
    [self = caf::actor_cast<replica_actor>(self_)](std::exception_ptr thrown) {
      caf::anon_send(self, wake{nullptr, std::move(thrown)});
    });
}

void activity::begin_offload(std::function<void()> work) {
  submitting_for actor{self_->id()};
  auto run = [work = std::move(work), self = caf::actor_cast<replica_actor>(self_)] {
    wake done;
    try {
      work();
    } catch (...) {
      done.thrown = std::current_exception();
    }
    caf::anon_send(self, std::move(done));
  };
  try {
    world_.submit(std::move(run));
  } catch (...) {
    self_->send(self_, wake{nullptr, std::current_exception()});
  }
}

void activity::on(wake woken) {
  if (!sleeper_) return; // of a run that was given up
  *woken_ = std::move(woken);
  resume(std::exchange(sleeper_, nullptr));
}

void*& activity::current_surroundings() {
  thread_local void* current = nullptr;
  return current;
}

void activity::cancel_before(uint64_t step) {
  needed_from_ = std::max(needed_from_, step);
  if (!is_cancelled()) return;
  if (auto action = std::exchange(when_cancelled_, nullptr)) action();
  computing_.cancel();
}

void activity::when_cancelled(std::function<void()> action) {
  if (action && is_cancelled()) return action();
  when_cancelled_ = std::move(action);
}

void activity::keep(const std::string& name, tensor value) {
  kept_[name] = std::move(value);
}

std::optional<tensor> activity::kept(const std::string& name) const {
  auto found = kept_.find(name);
  return found == kept_.end() ? std::nullopt : std::optional{found->second};
}

replica_progress activity::progress() const {
  replica_progress progress{.local_step = local_step_, .iteration = iteration_};
  computing_.write_progress(progress);
  for (const auto& [name, value] : kept_)
    progress.kept.push_back({name, value});
  return progress;
}

void activity::restore(const replica_progress& saved) {
  computing_.restore(saved);
  local_step_ = saved.local_step;
  iteration_ = saved.iteration;
  for (const auto& [name, value] : saved.kept)
    kept_[name] = value;
}

} // namespace troupe
