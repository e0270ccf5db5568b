// SPDX-License-Identifier: Apache-2.0
// Goal: a watch takes signals for as long as it is there, and no longer. Method: this process
// raises them.
#include "tests/doctest.hpp"
#include "tools/system/signal_watch.hpp"

#include <optional>
#include <unistd.h>

namespace signal_watch_test {

TEST_SUITE("tools/system/signal_watch") {
  using namespace troupe;

  namespace {

  volatile std::sig_atomic_t taken_before = 0;
  volatile std::sig_atomic_t taken_meanwhile = 0;

  } // namespace

  TEST_CASE("ends with the handlers that the program had before, or has set meanwhile") {
    auto first = std::signal(SIGINT, [](int) { taken_before = taken_before + 1; });
    auto second = std::signal(SIGTERM, SIG_DFL);
    for (int i = 1; i <= 2; ++i) {
      std::optional<signal_watch> watch{std::in_place};
      std::raise(SIGINT);
      while (!watch->token().stop_requested())
        std::this_thread::yield();
      CHECK(watch->signal_number() == SIGINT);
      CHECK(taken_before == i - 1);
      std::signal(SIGTERM, [](int) { taken_meanwhile = taken_meanwhile + 1; });
      watch.reset();
      std::raise(SIGINT);
      std::raise(SIGTERM);
      CHECK(taken_before == i);
      CHECK(taken_meanwhile == i);
    }
    std::signal(SIGINT, first);
    std::signal(SIGTERM, second);
  }

  TEST_CASE("SIGHUP asks for a clean end, unless it was ignored before") {
    auto before = std::signal(SIGHUP, SIG_DFL);
    {
      signal_watch watch;
      std::raise(SIGHUP);
      while (!watch.token().stop_requested())
        std::this_thread::yield();
      CHECK(watch.signal_number() == SIGHUP);
    }
    std::signal(SIGHUP, SIG_IGN);
    {
      signal_watch watch;
      auto is_ignored = std::signal(SIGHUP, SIG_IGN) == SIG_IGN;
      CHECK(is_ignored);
    }
    auto is_ignored = std::signal(SIGHUP, before) == SIG_IGN;
    CHECK(is_ignored);
  }

  TEST_CASE("a limit on file sizes is ignored without a pipe that has no reader") {
    auto on_size = std::signal(SIGXFSZ, SIG_DFL);
    auto on_pipe = std::signal(SIGPIPE, SIG_DFL);
    ignore_size_limit_signal();
    auto size_is_ignored = std::signal(SIGXFSZ, on_size) == SIG_IGN;
    auto pipe_is_not = std::signal(SIGPIPE, on_pipe) == SIG_DFL;
    CHECK(size_is_ignored);
    CHECK(pipe_is_not);
  }

  TEST_CASE("takes signals that the parent of this process has blocked") {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    {
      signal_watch watch;
      ::kill(::getpid(), SIGTERM);
      while (!watch.token().stop_requested())
        std::this_thread::yield();
      CHECK(watch.signal_number() == SIGTERM);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  TEST_CASE("SIGUSR1 is passed over where it would end the process") {
    auto before = std::signal(SIGUSR1, SIG_DFL);
    pass_over_user_signal();
    std::raise(SIGUSR1);
    auto own = [](int) {};
    std::signal(SIGUSR1, own);
    pass_over_user_signal();
    auto is_kept = std::signal(SIGUSR1, before) == static_cast<void (*)(int)>(own);
    CHECK(is_kept);
  }

  TEST_CASE("leaves SIGUSR1 ignored where the program has no handler of it") {
    auto before = std::signal(SIGUSR1, SIG_DFL);
    { signal_watch watch; }
    auto is_ignored = std::signal(SIGUSR1, before) == SIG_IGN;
    CHECK(is_ignored);
  }
}

} // namespace signal_watch_test
