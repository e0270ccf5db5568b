// SPDX-License-Identifier: Apache-2.0
// Collectives of devices that are parts of the processor, and how often they were asked for.
#pragma once

#include "actors/gpu/cpu_collectives.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace troupe::test {

/// As `cpu_collectives`.
class counted_collectives final : public collective_library {
public:
  std::atomic<uint64_t> calls{0};  ///< Calls of all participants.
  std::atomic<uint64_t> arrays{0}; ///< In these calls.
  std::atomic<uint64_t> aborts{0}; ///< Participants that were told to give up.

  [[nodiscard]] std::string_view name() const override { return library_.name(); }

  [[nodiscard]] expected<collective_id> make_id() override { return library_.make_id(); }

  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id& group, uint32_t rank, uint32_t size, compute_device& device) override {
    auto joined = library_.join(group, rank, size, device);
    if (!joined) return joined;
    return std::make_unique<participant>(*this, std::move(*joined));
  }

private:
  class participant final : public collective_participant {
  public:
    participant(counted_collectives& counts, std::unique_ptr<collective_participant> of)
      : counts_(counts), of_(std::move(of)) {}

    [[nodiscard]] expected<bool> is_ready() override { return of_->is_ready(); }

    [[nodiscard]] expected<void> ask(std::span<const device_collective> what,
                                     compute_stream& on) override {
      ++counts_.calls;
      counts_.arrays += what.size();
      return of_->ask(what, on);
    }

    void abort() override {
      ++counts_.aborts;
      of_->abort();
    }

  private:
    counted_collectives& counts_;
    std::unique_ptr<collective_participant> of_;
  };

  cpu_collectives library_;
};

} // namespace troupe::test
