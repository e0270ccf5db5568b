// SPDX-License-Identifier: Apache-2.0
// ledger.csv: the verdict on every gradient, and which replica waited for which.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {

/// Users of backup replicas ask which replicas' gradients are dropped, how late, and which replica
/// the others wait for. With one line per gradient a spreadsheet answers, or a line of awk:
///
///     dropped gradients, by replica:    $3 == "stale" { n[$2]++ }
///     how many steps late, at worst:    $3 == "stale" && $5 > worst { worst = $5 }
///     seconds of waiting, by pair:      NR > 1 && $9 != "" { seconds[$2 " for " $9] += $10 }
///
/// |    | column             | meaning                                                          |
/// |----|--------------------|------------------------------------------------------------------|
/// |  1 | step               | global step after the update that the line belongs to            |
/// |  2 | replica            | the gradient's replica                                           |
/// |  3 | verdict            | accepted, stale (dropped on arrival) or cancelled (told to stop) |
/// |  4 | local_step         | global step that the gradient was computed for                   |
/// |  5 | staleness          | steps that it came too late; accepted: 0, unless asynchronous    |
/// |  6 | arrived_seconds    | when it came in, since the job began                             |
/// |  7 | compute_seconds    | what the replica spent on it                                     |
/// |  8 | token_wait_seconds | how long the replica had waited for the token that began it      |
/// |  9 | waited_for         | the replica of the gradient that completed the step              |
/// | 10 | waited_for_seconds | from own arrival until that gradient came                        |
/// | 11 | idle_seconds       | from own arrival to the end of the step, the update included     |
/// | 12 | loss               | mean over the replica's batch                                    |
/// | 13 | examples           | in the replica's batch                                           |
///
/// A gradient that one variable took and another dropped is stale, although parts of it are in the
/// update. Its line belongs to the step in which its last part was taken or dropped.
/// A gradient that was done when its replica was told to stop comes nevertheless, and has two
/// lines: cancelled, and stale in that step or a later one.
/// Columns 9 to 11 are filled for accepted gradients only, 9 and 10 not for the completing one.
/// Lines of one step stand together: accepted in order of arrival, then stale, then cancelled.
class ledger_file {
public:
  /// The first line of the file.
  static constexpr std::string_view header
    = "step,replica,verdict,local_step,staleness,arrived_seconds,compute_seconds,"
      "token_wait_seconds,waited_for,waited_for_seconds,idle_seconds,loss,examples\n";

  /// Creates the file with its header. Errors: `resource`.
  /// @param bytes_max The most bytes of the file: the first step that would make it larger is left
  /// out, and so are all later ones.
  [[nodiscard]] static expected<ledger_file> create(std::filesystem::path path,
                                                    uint64_t bytes_max = UINT64_MAX);

  /// Adds a line for each contribution of `step`.
  /// Errors: `resource`, or `limit_exceeded` for a file that is as large as it may be; for ever
  /// after the first.
  [[nodiscard]] expected<void> append(const step_record& step);

  /// Brings all lines to the file. Errors: as `append`.
  [[nodiscard]] expected<void> flush() { return lines_.flush(); }

private:
  ledger_file(record_writer lines, uint64_t bytes_max)
    : lines_(std::move(lines)),
      bytes_left_(bytes_max - std::min<uint64_t>(bytes_max, header.size())) {}

  record_writer lines_;
  uint64_t bytes_left_;
  uint64_t last_step_ = 0;
  bool is_full_ = false;
};

/// The fate of a gradient.
enum class gradient_verdict : uint8_t { accepted, stale, cancelled };

/// A line of the ledger, read back.
struct ledger_line {
  uint64_t step = 0; ///< Global step after the update that the line belongs to.
  gradient_verdict verdict = gradient_verdict::accepted;
  contribution gradient;
  job_time idle{0}; ///< From its arrival to the end of the step; accepted ones only.
};

/// Reads a line of `ledger_file`, without its line end. Columns 9 and 10 are not read: they follow
/// from the lines of a step together.
/// @returns Nothing if a field is not what it must be.
[[nodiscard]] std::optional<ledger_line> read_ledger_line(std::string_view text);

} // namespace troupe
