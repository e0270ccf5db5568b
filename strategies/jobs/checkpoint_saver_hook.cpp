// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints beside the training, on a thread of the world's.
#include "strategies/jobs/checkpoint_saver_hook.hpp"

#include "actors/checkpoint/job_file.hpp"
#include "actors/world/world.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

// Takes a checkpoint's name out of an error: without it a full disk gives each checkpoint the same.
std::string without_name(std::string message, const std::filesystem::path& checkpoint) {
  auto name = checkpoint.filename().native();
  for (auto at = message.find(name); at != std::string::npos; at = message.find(name))
    message.erase(at, name.size());
  return message;
}

} // namespace

checkpoint_saver_hook::checkpoint_saver_hook(const std::filesystem::path& folder,
                                             checkpoint_options options)
  : options_(std::move(options)), directory_(value_or_throw(checkpoint_directory::open(folder))) {
  require(options_.every_steps > 0 || options_.every > job_time{0},
          "a checkpoint hook that never saves: set every_steps or every");
  require(options_.keep > 0, "keep is 0; keep at least 1 checkpoint");
  options_.on_warning
    = line_teller("on_warning of a checkpoint hook", std::move(options_.on_warning));
}

void checkpoint_saver_hook::begin(session_plan& plan) {
  world_ = &plan.world;
  last_wanted_ = plan.world.now();
  plan.takes_snapshots = true;
}

bool checkpoint_saver_hook::wants_snapshot(uint64_t step, job_time now, bool last) {
  auto by_count = options_.every_steps > 0 && step % options_.every_steps == 0;
  auto by_time = options_.every > job_time{0} && now - last_wanted_ >= options_.every;
  if (!by_count && !by_time && !last) return false;
  last_wanted_ = now;
  return true;
}

void checkpoint_saver_hook::after_snapshot(const job_snapshot& snapshot) {
  {
    std::lock_guard guard{mutex_};
    if (pending_)
      options_.on_warning(
        fmt::format("the checkpoint of step {} is skipped: the disk is still busy with an "
                    "earlier one",
                    pending_->step));
    pending_ = snapshot;
    if (std::exchange(writes_, true)) return;
  }
  try {
    world_->submit_io([this] { write_pending(); });
  } catch (...) {
    std::lock_guard guard{mutex_};
    pending_.reset();
    writes_ = false;
    fail_at(snapshot.step, reason_of(std::current_exception()));
  }
}

void checkpoint_saver_hook::write_pending() {
  while (true) {
    std::optional<job_snapshot> next;
    {
      std::lock_guard guard{mutex_};
      next = std::exchange(pending_, std::nullopt);
      writes_ = next.has_value();
      if (!writes_) {
        written_.notify_all(); // with the lock: nothing of this object is touched afterwards
        return;
      }
    }
    auto written = write(*next);
    auto kept = written ? directory_.keep(options_.keep) : expected<void>{};
    std::lock_guard guard{mutex_};
    failure_.reset();
    if (written) {
      saved_ = next->step;
      tell(kept ? "" : kept.error().message, [&] {
        return "a checkpoint that is not needed any more stays: " + kept.error().message;
      });
      continue;
    }
    fail_at(next->step, std::move(written.error()));
  }
}

void checkpoint_saver_hook::fail_at(uint64_t step, error reason) {
  failure_ = std::move(reason);
  tell(without_name(failure_->message, directory_.path_of(step)), [&] {
    return fmt::format("no checkpoint of step {}, nor of those that follow until that changes: {}",
                       step, failure_->message);
  });
}

template <class Line>
void checkpoint_saver_hook::tell(std::string trouble, const Line& line) {
  auto before = std::exchange(told_, std::move(trouble));
  if (!told_.empty() && told_ != before) options_.on_warning(line());
}

expected<void> checkpoint_saver_hook::write(const job_snapshot& snapshot) {
  try {
    auto content = to_content(snapshot, options_.notes);
    return directory_.write(snapshot.step, content.tensors, content.metadata);
  } catch (const std::exception& failed) { // names that are no UTF-8, no memory
    return fail(errc::resource, failed.what());
  }
}

void checkpoint_saver_hook::end(const job_report&) {
  std::unique_lock lock{mutex_};
  written_.wait(lock, [this] { return !writes_; });
  if (failure_) throw failure{*failure_};
}

std::optional<uint64_t> checkpoint_saver_hook::saved_step() const {
  std::lock_guard guard{mutex_};
  return saved_;
}

std::optional<found_checkpoint>
find_checkpoint(const std::filesystem::path& folder,
                const std::function<void(const std::string&)>& on_warning,
                std::optional<uint64_t> end) {
  auto directory = checkpoint_directory::look_at(folder); // its writer may be at work
  if (!value_or_throw(directory.is_there())) return std::nullopt;
  auto newest = value_or_throw(directory.newest_valid(end));
  std::ranges::for_each(newest.warnings, line_teller("on_warning of find_checkpoint", on_warning));
  if (!newest.found && newest.warnings.empty()) return std::nullopt;
  if (!newest.found)
    throw_failure(errc::malformed, "no checkpoint in {} is whole: {}", folder.string(),
                  newest.warnings.front());
  auto snapshot = to_snapshot(newest.found->content);
  if (!snapshot)
    throw_failure(snapshot.error().code, "{}: {}", directory.path_of(newest.found->step).string(),
                  snapshot.error().message);
  return found_checkpoint{std::move(*snapshot), std::move(newest.found->content.metadata)};
}

} // namespace troupe
