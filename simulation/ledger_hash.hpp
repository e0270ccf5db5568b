// SPDX-License-Identifier: Apache-2.0
// The hash of a run's ledger, which tells whether two runs were the same.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>

namespace troupe {

/// Takes in the step records of a run, in order. Runs of equal hashes were surely the same to the
/// nanosecond: which replica gave what when, and what became of it.
class ledger_hash {
public:
  /// Takes in one step: its times and, in order, every contribution.
  void add(const step_record& step);

  /// Takes in a number.
  void add(uint64_t number);

  [[nodiscard]] uint64_t value() const { return value_; }

private:
  void add(const contribution& gradient);

  uint64_t value_ = 0;
};

} // namespace troupe
