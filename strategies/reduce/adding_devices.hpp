// SPDX-License-Identifier: Apache-2.0
// The devices of one process that add up the values of its replicas.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/errors/failure.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// The time between two looks at devices that are waited for.
inline constexpr std::chrono::milliseconds poll_interval{10};

/// The common part of reductions by devices. With n devices, component i belongs to device i mod n.
/// The first stream of each device is for reductions alone.
///
/// Thread: one at a time.
class adding_devices {
public:
  /// @param deadline The time that one wait may take.
  adding_devices(std::vector<std::shared_ptr<compute_device>> devices, job_time deadline)
    : devices_(std::move(devices)), deadline_(deadline) {}

  [[nodiscard]] size_t count() const { return devices_.size(); }

  [[nodiscard]] compute_device& operator[](size_t device) const { return *devices_[device]; }

  /// The stream of a device that reductions use.
  [[nodiscard]] compute_stream& stream(size_t device) const { return devices_[device]->stream(0); }

  /// Whether devices add such components: f32 and f64, if there is a device and something to add.
  /// @param operation The name of the operation, for the error. Errors: throws `failure` with
  /// invalid_argument for fewer components than devices.
  [[nodiscard]] bool adds(std::span<const tensor> components, std::string_view operation) const;

  /// v0 + v1 + ... on a device, wherever they lie. @param values At least one.
  /// Errors: throws `failure` as `compute_stream::sum`.
  [[nodiscard]] tensor add(size_t device, std::span<const tensor> values) const;

  /// The sum of the components that belong to a device, on that device.
  /// Errors: throws `failure` as `compute_stream::sum`. @pre There is at least one.
  [[nodiscard]] tensor add_own(size_t device, std::span<const tensor> components) const;

  /// The result of a request to a device. A refusal is cleared from the device's stream first, so
  /// that the next request does not fail. Errors: throws `failure` with the error of `result`.
  template <class T>
  T answer_of(size_t device, expected<T> result) const {
    if (!result) static_cast<void>(devices_[device]->notify(0, [] {}));
    return value_or_throw(std::move(result));
  }

  [[nodiscard]] job_time deadline() const { return deadline_; } ///< The time of one wait.

  /// Waits on the calling thread until a device has done all that its stream was asked for.
  /// Errors: throws `failure`: deadline_exceeded, and unavailable if it is lost, naming it.
  void wait_for(size_t device) const;

private:
  std::vector<std::shared_ptr<compute_device>> devices_;
  job_time deadline_;
};

} // namespace troupe
