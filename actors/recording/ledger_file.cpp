// SPDX-License-Identifier: Apache-2.0
// The lines of ledger.csv.
#include "actors/recording/ledger_file.hpp"

#include "actors/recording/csv.hpp"
#include "actors/recording/step_figures.hpp"

namespace troupe {

namespace {

// The three fields that only an accepted contribution has.
struct wait_fields {
  std::string waited_for;
  std::string waited_for_seconds;
  std::string idle_seconds;
};

wait_fields waits_of(const step_record& step, const contribution& accepted) {
  const auto* last = completing_contribution(step);
  wait_fields fields;
  if (last != &accepted) {
    fields.waited_for = std::to_string(last->replica);
    fields.waited_for_seconds = csv::seconds(waited_for_completion(step, accepted));
  }
  fields.idle_seconds = csv::seconds(idle_until_end(step, accepted));
  return fields;
}

std::string ledger_line(uint64_t step, const contribution& one, std::string_view verdict,
                        const wait_fields& waits) {
  return csv::line({std::to_string(step), std::to_string(one.replica), verdict,
                    std::to_string(one.local_step), std::to_string(one.lag),
                    csv::seconds(one.arrived), csv::seconds(one.compute), csv::seconds(one.waited),
                    waits.waited_for, waits.waited_for_seconds, waits.idle_seconds,
                    csv::field(one.loss), std::to_string(one.examples)});
}

} // namespace

expected<ledger_file> ledger_file::create(std::filesystem::path path) {
  auto lines = record_writer::create(std::move(path));
  if (!lines) return tl::unexpected(lines.error());
  ledger_file file{std::move(*lines)};
  if (auto done = file.lines_.append(header); !done) return tl::unexpected(done.error());
  if (auto done = file.flush(); !done) return tl::unexpected(done.error());
  return file;
}

expected<void> ledger_file::append(const step_record& step) {
  std::string lines;
  for (const auto& one : step.accepted)
    lines += ledger_line(step.step, one, "accepted", waits_of(step, one));
  for (const auto& one : step.stale)
    lines += ledger_line(step.step, one, "stale", {});
  for (const auto& one : step.cancelled)
    lines += ledger_line(step.step, one, "cancelled", {});
  return lines_.append(lines);
}

} // namespace troupe
