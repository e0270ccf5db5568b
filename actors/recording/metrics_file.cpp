// SPDX-License-Identifier: Apache-2.0
// The lines of metrics.csv.
#include "actors/recording/metrics_file.hpp"

#include "actors/recording/csv.hpp"
#include "actors/recording/step_figures.hpp"

namespace troupe {

expected<metrics_file> metrics_file::create(std::filesystem::path path) {
  return record_writer::create(std::move(path), header).map([](record_writer lines) {
    return metrics_file{std::move(lines)};
  });
}

expected<void> metrics_file::append(const step_record& step) {
  return lines_.append(
    csv::line({std::to_string(step.step), csv::seconds(step.ended), csv::field(mean_loss(step)),
               csv::field(examples_per_second(step)), std::to_string(step.accepted.size()),
               std::to_string(step.stale.size()), std::to_string(step.cancelled.size()),
               std::to_string(step.live), std::to_string(step.needed),
               csv::seconds(step_duration(step)), csv::seconds(step.apply)}));
}

} // namespace troupe
