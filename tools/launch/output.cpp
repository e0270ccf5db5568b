// SPDX-License-Identifier: Apache-2.0
// Leads lines from tasks and launchers to terminal, files and launchers.
#include "tools/launch/output.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace troupe {

launch_output::launch_output(boost::asio::io_context& context, task_terminal& terminal,
                             const launch_options& options)
  : context_(context), terminal_(terminal), options_(options) {}

expected<std::vector<task_outlet>> launch_output::open(std::span<const launch_task> tasks) {
  if (options_.collect_output)
    if (auto listening = collect(*options_.collect_output); !listening)
      return tl::unexpected<error>(listening.error());
  std::vector<task_outlet> outlets;
  for (size_t index = 0; index < tasks.size(); ++index) {
    auto outlet = outlet_of(index, tasks[index]);
    if (!outlet) return tl::unexpected<error>(outlet.error());
    outlets.push_back(std::move(*outlet));
  }
  if (options_.send_output) send(*options_.send_output, tasks[0]);
  return outlets;
}

expected<void> launch_output::collect(const host_port& at) {
  output_collector::events events{
    .number_of = [this](const launch_task& task) { return terminal_.number_of(task); },
    .put = [this](size_t task, int descriptor,
                  std::span<const std::string> lines) { terminal_.put(task, descriptor, lines); },
    .is_full = [this] { return terminal_.is_full(); },
    .tell = [this](const std::string& line) { terminal_.tell(line); },
    .on_over = [this] { terminal_.flush(); }};
  collector_ = std::make_unique<output_collector>(context_, options_.job_id, std::move(events));
  return collector_->listen(at, options_.insecure_network);
}

void launch_output::send(const host_port& collector, const launch_task& task) {
  output_sender::events events{.tell = [this](const std::string& line) { terminal_.tell(line); },
                               .give_back =
                                 [this](int descriptor, const std::string& line) {
                                   terminal_.put(0, descriptor, {&line, 1});
                                 },
                               .on_over = [this] { terminal_.flush(); }};
  sender_ = std::make_unique<output_sender>(
    context_, collector, output_greeting{task, options_.job_id}, std::move(events));
  sender_->start();
}

expected<task_outlet> launch_output::outlet_of(size_t index, const launch_task& task) {
  task_outlet outlet{.put =
                       [this, index](int descriptor, std::span<const std::string> lines) {
                         if (is_sending()) return sender_->put(descriptor, lines);
                         terminal_.put(index, descriptor, lines);
                       },
                     .is_full = [this] { return !is_sending() && terminal_.is_full(); },
                     .tell = [this](const std::string& line) { terminal_.tell(line); }};
  if (options_.log_dir.empty()) return outlet;
  std::filesystem::path folder{options_.log_dir};
  std::error_code refused;
  std::filesystem::create_directories(folder, refused);
  if (refused) {
    return fail(errc::resource, fmt::format("--log-dir: cannot create {}: {}", options_.log_dir,
                                            refused.message()));
  }
  auto log = record_writer::create(folder / task.log_name());
  if (!log) return fail(log.error().code, "--log-dir: " + log.error().message);
  outlet.log = std::move(*log);
  return outlet;
}

void launch_output::resume() {
  if (collector_) collector_->resume();
}

void launch_output::finish(std::chrono::milliseconds send_time) {
  terminal_.flush();
  if (sender_) sender_->finish(send_time);
  if (collector_) collector_->finish(options_.grace);
}

} // namespace troupe
