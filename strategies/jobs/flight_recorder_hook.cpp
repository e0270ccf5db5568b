// SPDX-License-Identifier: Apache-2.0
// Writes flight records: of trouble, on request, and those that other processes send.
#include "strategies/jobs/flight_recorder_hook.hpp"

#include "actors/observing/flight_lines.hpp"
#include "actors/observing/flight_record.hpp"
#include "actors/recording/output_file.hpp"
#include "actors/world/world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <system_error>

namespace troupe {

namespace {

std::filesystem::path folder_beside(const std::filesystem::path& file) {
  return file.parent_path() / "flight";
}

expected<void> save(const std::filesystem::path& folder, const flight_records& records) {
  expected<void> saved;
  auto write = [&](const std::string& task, const std::string& lines) {
    if (saved) saved = replace_file(folder / flight_file_name(task), lines);
  };
  for (const auto& task : records.silent)
    write(task, silent_flight_line(task, records.reason));
  for (const auto& task : records.tasks)
    write(task.task, flight_lines(task, records.reason));
  return saved;
}

} // namespace

void flight_recorder_hook::say(const std::string& line) const {
  if (say_) say_(line);
}

void flight_recorder_hook::record(const std::string& reason) {
  std::lock_guard guard{mutex_};
  if (observed_ == nullptr) return;
  auto saved = save_flight_record(*observed_, reason, path_);
  say(saved ? fmt::format("what every actor did last stands in {}", path_.string())
            : saved.error().message);
  if (collect_) begin_collection(reason);
}

// This process's part is written now, while its actors are as they were.
void flight_recorder_hook::begin_collection(const std::string& reason) {
  auto folder = folder_beside(path_);
  std::error_code failed;
  std::filesystem::create_directory(folder, failed);
  auto here = look_here(*observed_, tasks_->here(), observation::messages_kept);
  auto saved = replace_file(folder / flight_file_name(here.task), flight_lines(here, reason));
  if (!saved) return say(saved.error().message);
  collect_(reason);
}

void flight_recorder_hook::on_flight_records(const flight_records& records) {
  auto folder = folder_beside(path_);
  auto saved = save(folder, records);
  if (!saved) return say(saved.error().message);
  auto missing = records.silent.empty()
                   ? std::string{}
                   : fmt::format("; {} did not answer", fmt::join(records.silent, ", "));
  say(fmt::format("the last messages of all tasks stand in {}{}", folder.string(), missing));
}

void flight_recorder_hook::begin(session_plan& plan) {
  world_ = &plan.world;
  tasks_ = plan.tasks;
  collect_ = plan.collect_flight_records;
}

// Only now is it sure that `end` will come.
void flight_recorder_hook::after_create_session(const session_control&) {
  std::lock_guard guard{mutex_};
  observed_ = &world_->observatory();
  crashes_.emplace(*observed_, path_);
}

void flight_recorder_hook::on_trouble(const std::string& trouble) {
  record(trouble);
}

void flight_recorder_hook::end(const job_report&) {
  std::lock_guard guard{mutex_};
  crashes_.reset();
  observed_ = nullptr;
}

} // namespace troupe
