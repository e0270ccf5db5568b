// SPDX-License-Identifier: Apache-2.0
// The work of a device: which piece begins next, and which one takes too long.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Work waits for what was asked of its stream before, and for nothing else. All that waits is
/// launched by one thread, piece after piece, and then the next may be launched while the device
/// still works on it: a device that had to wait for the host after each piece would stand still
/// half of the time.
///
///     add -> waiting -- begin_waiting --> launching -- launched --> running -- complete --> gone
///
/// Time counts from the moment when nothing of its stream was before it: work must not be blamed
/// for what it waited for.
class device_ledger {
public:
  /// Adds work for a stream. @returns Its ticket. @param purpose For errors. @param timeout From
  /// when nothing of the stream is before it; positive.
  uint64_t add(uint32_t stream, std::string purpose, job_time timeout, job_time now);

  /// All work of a stream that waits, in order, unless another of it is being launched.
  [[nodiscard]] std::vector<uint64_t> begin_waiting(uint32_t stream);

  /// The device has been told all of a piece of work.
  void launched(uint64_t ticket);

  /// The device has done the work, or will not. An unknown ticket is passed over.
  void complete(uint64_t ticket, job_time now);

  /// Work that is past its timeout.
  struct overdue_work {
    std::string purpose;
    job_time timeout{0};
  };

  [[nodiscard]] std::optional<overdue_work> overdue(job_time now) const;

  /// When there might be one; nothing while there is no work.
  [[nodiscard]] std::optional<job_time> next_due() const;

  [[nodiscard]] bool is_empty() const { return works_.empty(); }

private:
  enum class phase : uint8_t { waiting, launching, running };

  struct work {
    uint32_t stream = 0;
    phase at = phase::waiting;
    std::string purpose; ///< For errors.
    job_time timeout{0};
    std::optional<job_time> since; ///< When nothing was before it any more.
  };

  [[nodiscard]] std::map<uint64_t, work>::iterator first_of(uint32_t stream);

  uint64_t tickets_ = 0;
  std::map<uint64_t, work> works_; ///< By ticket, which is the order in which they came.
};

} // namespace troupe
