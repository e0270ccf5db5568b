// SPDX-License-Identifier: Apache-2.0
// A world that has no thread for what it is given.
#pragma once

#include "actors/world/world.hpp"
#include "messages/errors/throw_failure.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include <memory>
#include <utility>

namespace troupe::test {

/// A virtual world that refuses all work, as a threads world does that can make no thread. It does
/// not say that it computes in place, so its actors wait for a message.
struct refusing_world {
  explicit refusing_world(troupe::world& shared) : shared(shared) {}

  troupe::world& shared;
  bool refuses = true;
  troupe::world world{std::make_unique<implementation>(*this)};

private:
  class implementation final : public troupe::world::implementation {
  public:
    explicit implementation(refusing_world& owner) : owner_(owner) {}

    caf::actor_system& system() override { return shared().system(); }

    [[nodiscard]] job_time now() const override { return shared().now(); }

    void set_clock(job_time time) override { shared().set_clock(time); }

    void submit(std::function<void()> work) override {
      if (owner_.refuses) throw_failure(errc::resource, "no thread");
      shared().submit(std::move(work));
    }

    void submit_io(std::function<void()> work) override { submit(std::move(work)); }

    void call(std::function<void()> action) override { shared().call(std::move(action)); }

    void send_last(const caf::actor& receiver, caf::message message) override {
      shared().send_last(receiver, std::move(message));
    }

    expected<void> run_until(std::future<void>& done, job_time timeout) override {
      return shared().run_until(done, timeout);
    }

    bool make_event() override { return shared().make_event(); }

  private:
    [[nodiscard]] troupe::world& shared() const { return owner_.shared; }

    refusing_world& owner_;
  };
};

} // namespace troupe::test
