// SPDX-License-Identifier: Apache-2.0
// Calls of hooks, and what becomes of the exceptions that they throw.
#include "strategies/jobs/hook_list.hpp"

#include "messages/errors/failure.hpp"
#include "messages/errors/printable.hpp"
#include "messages/errors/throw_site.hpp"

#include <exception>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace troupe {

void hook_list::call(const char* name, const void* callee, const std::function<void()>& function) {
  if (has_failed(callee)) return;
  auto thrown_by = [&](std::string message) {
    if (!remember(callee, name, {errc::user_code, std::move(message)})) return;
    auto site = throw_site_of(std::current_exception()); // takes long the first time
    std::lock_guard guard{mutex_};
    failure_->throw_site = std::move(site);
  };
  try {
    function();
  } catch (const troupe::failure&) {
    static_cast<void>(remember(callee, name, reason_of(std::current_exception())));
  } catch (const std::exception& failed) {
    thrown_by(printable_line(failed.what()));
  } catch (...) {
    thrown_by(fmt::format("{} threw something that is no std::exception", name));
  }
}

template <class Function>
void hook_list::tell_each(const Function& tell) {
  for (const auto& hook : hooks_)
    call("a hook", hook.get(), [&] { tell(*hook); });
}

void hook_list::begin(session_plan& plan) {
  for (const auto& hook : hooks_)
    hook->begin(plan);
}

void hook_list::after_create_session() {
  tell_each([&](session_hook& hook) { hook.after_create_session(control_); });
}

void hook_list::on_open_step(const open_step& step) {
  tell_each([&](session_hook& hook) { hook.on_open_step(step); });
}

void hook_list::after_step(const step_record& step) {
  tell_each([&](session_hook& hook) { hook.after_step(control_, step); });
}

bool hook_list::wants_snapshot(uint64_t step, job_time now, bool last) {
  bool wanted = false; // each is asked, since it may count
  tell_each([&](session_hook& hook) { wanted |= hook.wants_snapshot(step, now, last); });
  return wanted;
}

void hook_list::after_snapshot(const job_snapshot& snapshot) {
  tell_each([&](session_hook& hook) { hook.after_snapshot(snapshot); });
}

void hook_list::on_trouble(const std::string& trouble) {
  tell_each([&](session_hook& hook) { hook.on_trouble(trouble); });
}

void hook_list::on_flight_records(const flight_records& records) {
  tell_each([&](session_hook& hook) { hook.on_flight_records(records); });
}

void hook_list::end(const job_report& report) {
  for (const auto& hook : hooks_)
    call("a hook", nullptr, [&] { hook->end(report); }); // those that have failed, too
}

std::optional<error> hook_list::failure() const {
  std::lock_guard guard{mutex_};
  return failure_;
}

bool hook_list::has_failed(const void* callee) const {
  std::lock_guard guard{mutex_};
  return failed_.contains(callee);
}

bool hook_list::remember(const void* callee, const char* name, error reason) {
  {
    std::lock_guard guard{mutex_};
    if (callee != nullptr) failed_.insert(callee);
    if (failure_) return false;
    failure_ = reason;
  }
  control_.request_stop(fmt::format("{} failed: {}", name, reason.message));
  return true;
}

} // namespace troupe
