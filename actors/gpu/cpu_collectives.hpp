// SPDX-License-Identifier: Apache-2.0
// Collectives between cpu_devices of one process.
#pragma once

#include "actors/gpu/collective_library.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace troupe {

/// Does with `cpu_device`s what NCCL does with GPUs, and is as strict: a stream stays held until
/// all participants have asked for the same collective, and for ever if one of them does not. Sums
/// are added up in the order of ranks.
///
/// Thread: any.
class cpu_collectives final : public collective_library {
public:
  [[nodiscard]] std::string_view name() const override { return "CPU"; }

  [[nodiscard]] expected<collective_id> make_id() override;

  /// Errors: invalid_argument if the group is of another size, or has that rank already.
  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id& group, uint32_t rank, uint32_t size, compute_device& device) override;

private:
  class group;
  class participant;

  std::mutex mutex_;
  uint64_t ids_ = 0;
  std::map<collective_id, std::weak_ptr<group>> groups_;
};

} // namespace troupe
