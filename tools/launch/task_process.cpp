// SPDX-License-Identifier: Apache-2.0
// Starts a process by fork and exec: posix_spawn, and so Boost.Process's portable part, cannot make
// a child end with its parent.
#include "tools/launch/task_process.hpp"

#include "messages/errors/system_reason.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/system/signal_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// A pipe with ends that no other child inherits. It closes the ends that were not taken out.
class pipe_pair {
public:
  pipe_pair() { is_open_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }

  pipe_pair(const pipe_pair&) = delete;
  pipe_pair& operator=(const pipe_pair&) = delete;

  ~pipe_pair() {
    close_writing();
    if (ends_[0] >= 0) ::close(ends_[0]);
  }

  [[nodiscard]] bool is_open() const { return is_open_; }

  [[nodiscard]] int reading() const { return ends_[0]; }

  [[nodiscard]] int writing() const { return ends_[1]; }

  [[nodiscard]] int take_reading() { return std::exchange(ends_[0], -1); }

  void close_writing() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }

private:
  std::array<int, 2> ends_{-1, -1};
  bool is_open_ = false;
};

/// The needs of the child, made before the fork: between fork and exec it must not allocate.
struct child_plan {
  std::vector<char*> words;
  std::vector<char*> environment;
  pid_t parent = 0;
  int output = -1;
  int errors = -1;
  int report = -1; ///< The child writes a `start_problem` here if it cannot become the program.
};

/// Why the child cannot become the program.
struct start_problem {
  int number = 0;              ///< As of `errno`; 0: there is none.
  bool is_about_input = false; ///< It is the null device that cannot be opened.
};

std::vector<char*> pointers(std::span<const std::string> texts) {
  auto result = mapped(texts, [](const auto& text) { return const_cast<char*>(text.c_str()); });
  result.push_back(nullptr);
  return result;
}

// The launcher's handlers write into its pipes, which the child still shares. A signal that was
// ignored before the launcher began (SIGHUP under nohup) stays ignored in the child; the launcher
// ignores `write_signals` for its own sake.
void forget_signal_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction before {};

    if (::sigaction(number, nullptr, &before) != 0) continue;
    auto is_kept = before.sa_handler == SIG_IGN && std::ranges::count(write_signals, number) == 0;
    if (!is_kept) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_program(const child_plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(1); // it has ended already
  auto nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto is_ready = nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0
                  && ::dup2(plan.output, STDOUT_FILENO) >= 0
                  && ::dup2(plan.errors, STDERR_FILENO) >= 0;
  start_problem problem{.number = errno, .is_about_input = nothing < 0};
  forget_signal_handlers();
  if (is_ready) {
    ::execvpe(plan.words[0], plan.words.data(), plan.environment.data());
    problem = {.number = errno};
  }
  static_cast<void>(!::write(plan.report, &problem, sizeof problem));
  ::_exit(127);
}

/// Blocks all signals for this thread during its lifetime.
class without_signals {
public:
  without_signals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  without_signals(const without_signals&) = delete;
  without_signals& operator=(const without_signals&) = delete;

  ~without_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
};

tl::unexpected<error> cannot_start(const std::string& program, start_problem problem) {
  auto is_missing = problem.number == ENOENT && !problem.is_about_input;
  return fail(is_missing ? errc::not_found : errc::resource,
              fmt::format("cannot start {}: {}{}", program,
                          problem.is_about_input ? "/dev/null: " : "",
                          start_reason(problem.number)));
}

// The problem that the child has reported; none: exec has closed the pipe.
start_problem problem_of(int report) {
  start_problem problem;
  ssize_t count = 0;
  do
    count = ::read(report, &problem, sizeof problem);
  while (count < 0 && errno == EINTR);
  return count == sizeof problem ? problem : start_problem{};
}

} // namespace

expected<task_process> start_task(std::span<const std::string> words,
                                  std::span<const std::string> environment) {
  pipe_pair output;
  pipe_pair errors;
  pipe_pair report;
  if (!output.is_open() || !errors.is_open() || !report.is_open())
    return cannot_start(words[0], {.number = errno});
  child_plan plan{pointers(words),  pointers(environment), ::getpid(),
                  output.writing(), errors.writing(),      report.writing()};
  pid_t child = 0;
  {
    without_signals guard;
    child = ::fork();
    if (child == 0) become_program(plan);
  }
  if (child < 0) return cannot_start(words[0], {.number = errno});
  report.close_writing();
  if (auto problem = problem_of(report.reading()); problem.number != 0) {
    ::waitpid(child, nullptr, 0);
    return cannot_start(words[0], problem);
  }
  return task_process{child, output.take_reading(), errors.take_reading()};
}

bool task_end::is_misuse() const {
  return signal == 0 && exit_code == static_cast<int>(troupe::exit_code::usage);
}

bool task_end::misses_others() const {
  return signal == 0
         && (exit_code == static_cast<int>(troupe::exit_code::no_cluster)
             || exit_code == static_cast<int>(troupe::exit_code::lost_peer));
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string to_string(task_end end) {
  if (end.signal == 0) return fmt::format("exit code {}", end.exit_code);
  return fmt::format("signal {} ({})", end.signal, signal_name(end.signal));
}

} // namespace troupe
