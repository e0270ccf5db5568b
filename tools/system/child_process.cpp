// SPDX-License-Identifier: Apache-2.0
// Starts a child by posix_spawn, and waits for its end.
#include "tools/system/child_process.hpp"

#include "messages/errors/system_reason.hpp"
#include "messages/mapped.hpp"
#include "tools/system/signal_watch.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace troupe {

namespace {

// Attributes and file actions of a child, freed by the destructor.
struct spawn_settings {
  spawn_settings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }

  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;

  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

expected<pid_t> start(const child_command& command) {
  spawn_settings settings;
  posix_spawn_file_actions_addchdir_np(&settings.actions, command.folder.c_str());
  posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // A child that inherits a listening socket keeps its port taken.
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, STDERR_FILENO + 1);
  // This process may have blocked signals for a thread that waits for them; the child blocks none.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  sigset_t ignored_here;
  sigemptyset(&ignored_here);
  for (int number : write_signals)
    sigaddset(&ignored_here, number);
  posix_spawnattr_setsigdefault(&settings.attributes, &ignored_here);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  auto words
    = mapped(command.words, [](const auto& word) { return const_cast<char*>(word.c_str()); });
  words.push_back(nullptr);
  pid_t child = 0;
  const int refused = ::posix_spawnp(&child, words[0], &settings.actions, &settings.attributes,
                                     words.data(), environ);
  if (refused == 0) return child;
  // The call does not say which file is missing.
  auto lacks_null_device = refused == ENOENT && ::access("/dev/null", F_OK) != 0;
  return fail(refused == ENOENT && !lacks_null_device ? errc::not_found : errc::resource,
              fmt::format("cannot start {}: {}{}", command.words[0],
                          lacks_null_device ? "/dev/null: " : "", start_reason(refused)));
}

// Waits for the child's end; kills it when the timeout is over. @returns The status of waitpid.
int wait_for(pid_t child, std::chrono::milliseconds timeout, bool& killed) {
  constexpr std::chrono::milliseconds pause{5};
  int status = 0;
  for (auto left = timeout; left > pause.zero(); left -= pause) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno == ECHILD) return 0; // our parent has children end unseen
    std::this_thread::sleep_for(pause);
  }
  killed = true;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return status;
}

} // namespace

expected<void> run(const child_command& command) {
  const auto child = start(command);
  if (!child) return tl::unexpected(child.error());
  bool killed = false;
  const int status = wait_for(*child, command.timeout, killed);
  const auto& program = command.words[0];
  if (killed)
    return fail(errc::deadline_exceeded, fmt::format("{} was stopped: it took more than {} s",
                                                     program, command.timeout.count() / 1000));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(errc::resource, WIFEXITED(status)
                                ? fmt::format("{} failed with {}", program, WEXITSTATUS(status))
                                : fmt::format("{} died of signal {}", program, WTERMSIG(status)));
}

} // namespace troupe
