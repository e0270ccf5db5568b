// SPDX-License-Identifier: Apache-2.0
// Asks devices for sums, and waits for devices.
#include "strategies/reduce/adding_devices.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

#include <chrono>
#include <future>

namespace troupe {

bool adding_devices::adds(std::span<const tensor> components, std::string_view operation) const {
  const auto& first = components.front();
  auto is_added = first.type() == dtype::f32 || first.type() == dtype::f64;
  if (devices_.empty() || !is_added || first.element_count() == 0) return false;
  if (components.size() < devices_.size())
    throw_failure(
      errc::invalid_argument,
      "{} was made for {} devices, and {} values are to be reduced; make it for the devices of "
      "the strategy",
      operation, devices_.size(), components.size());
  return true;
}

tensor adding_devices::add(size_t device, std::span<const tensor> values) const {
  auto there = mapped(
    values, [&](const auto& value) { return answer_of(device, stream(device).to_device(value)); });
  return there.size() == 1 ? there.front() : answer_of(device, stream(device).sum(there));
}

tensor adding_devices::add_own(size_t device, std::span<const tensor> components) const {
  std::vector<tensor> own;
  for (size_t i = device; i < components.size(); i += count())
    own.push_back(components[i]);
  return add(device, own);
}

void adding_devices::wait_for(size_t device) const {
  using clock = std::chrono::steady_clock;
  auto& waited_for = *devices_[device];
  auto done = std::make_shared<std::promise<void>>();
  auto is_done = done->get_future();
  value_or_throw(waited_for.notify(0, [done] { done->set_value(); }));
  for (auto until = clock::now() + deadline_; clock::now() < until;) {
    if (is_done.wait_for(poll_interval) == std::future_status::ready) return;
    if (auto lost = waited_for.loss())
      throw_failure(errc::unavailable, "{} is lost: {}", waited_for.name(), lost->message);
  }
  throw_failure(errc::deadline_exceeded, "{} has not done a reduction in {:.1f} s",
                waited_for.name(), seconds(deadline_));
}

} // namespace troupe
