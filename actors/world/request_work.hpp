// SPDX-License-Identifier: Apache-2.0
// Work for a device, which may end before it answers.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "messages/errors/failure.hpp"

#include <caf/sec.hpp>

#include <exception>
#include <utility>

namespace troupe {

/// Has a device do work. The device's actor keeps the deadline; if it is gone, the reason of its
/// end is the error.
/// @param done `(const device_work_done&)`.
/// @param failed `(std::exception_ptr)`, a `failure`; may be called on any thread.
template <class Self, class Done, class Failed>
void request_work(Self self, const gpu_actor& device, device_work work, Done done, Failed failed) {
  auto fail_by = [failed](const caf::error& reason) {
    failed(std::make_exception_ptr(failure{from_caf(reason)}));
  };
  self
    ->request(device, caf::infinite, std::move(work)) // the device keeps a deadline
    .then(std::move(done), [device, fail_by](const caf::error& reason) {
      if (reason != caf::sec::request_receiver_down) return fail_by(reason);
      device->attach_functor(
        [fail_by, bounced = reason](const caf::error& end) { fail_by(end ? end : bounced); });
    });
}

} // namespace troupe
