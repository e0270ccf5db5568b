// SPDX-License-Identifier: Apache-2.0
// Goal: a device does what it is asked in order, says when it is done, and a waiting caller hears
// of the device's end. Method: a device made of the processor, in virtual time, with streams that
// are done when the test says so.
#include "actors/gpu/cpu_device.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/world/ask.hpp"
#include "tests/actors/hosted_coroutine.hpp"
#include "tests/actors/refusing_world.hpp"

#include <future>
#include <optional>
#include <stdexcept>
#include <vector>

namespace gpu_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using answers = answer<device_work_done>;

/// A gpu actor on a stage, and a user that asks it for work.
struct staged_gpu : deterministic_world {
  explicit staged_gpu(bool holds_back = false, uint32_t streams = 1) {
    cpu_device_options options{.streams = streams};
    if (holds_back)
      options.ready = [this](std::function<void()> done) { held_back.push_back(std::move(done)); };
    device = std::make_shared<cpu_device>(0, options);
    actor = spawn(gpu, gpu_config{device, 8s, &world});
  }

  ~staged_gpu() { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  answers ask(std::function<void(compute_stream&)> launch, uint32_t stream = 0,
              job_time timeout = job_time{0}) {
    auto asked
      = user.ask<device_work_done>(actor, device_work{stream, "work", std::move(launch), timeout});
    settle();
    return asked;
  }

  /// The same, but answered when its work is queued.
  answers queue(std::function<void(compute_stream&)> launch) {
    auto asked = put(std::move(launch));
    settle();
    return asked;
  }

  /// Work that is asked for when the stage settles, with all that is put before and after it.
  answers put(std::function<void(compute_stream&)> launch, bool is_answered_when_queued = true) {
    return user.ask<device_work_done>(
      actor, device_work{.purpose = "work",
                         .launch = std::move(launch),
                         .is_answered_when_queued = is_answered_when_queued});
  }

  /// Work that writes down its name.
  answers note(const std::string& name, uint32_t stream = 0) {
    return ask([this, name](compute_stream&) { begun.push_back(name); }, stream);
  }

  void send_away() {
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    settle();
  }

  /// The stream that was asked first to say when it is done, is.
  void finish_one() {
    REQUIRE(!held_back.empty());
    auto done = std::move(held_back.front());
    held_back.erase(held_back.begin());
    done();
    settle();
  }

  std::vector<std::string> begun;
  std::vector<std::function<void()>> held_back;
  std::shared_ptr<cpu_device> device;
  gpu_actor actor;
  puppet user{world};
};

/// Sees the end of a gpu, and why it came.
class witness {
public:
  explicit witness(staged_gpu& stage)
    : actor_(stage.spawn(
      [seen = seen_, watched = stage.actor](caf::event_based_actor* self) -> caf::behavior {
        self->monitor(watched);
        self->set_down_handler(
          [seen](const caf::down_msg& down) { *seen = from_caf(down.reason); });
        return {[](const script&) {}};
      })) {
    stage.settle();
  }

  ~witness() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  /// The reason; nothing while the gpu is there.
  [[nodiscard]] const std::optional<error>& seen() const { return *seen_; }

private:
  std::shared_ptr<std::optional<error>> seen_ = std::make_shared<std::optional<error>>();
  caf::actor actor_;
};

/// Why a replica leaves that computes on the gpu; none if it comes to its end.
error reason_of_a_replica(staged_gpu& stage) {
  puppet chief{stage.world};
  auto body = [](activity& activity) -> task<void> {
    auto computing = activity.compute_on_device([](std::stop_token, compute_stream&) {});
    auto outcome = co_await computing;
    if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  };
  stage.spawn(replica, replica_config{.index = 3,
                                      .chief = chief.as<chief_actor>(),
                                      .world = &stage.world,
                                      .processor = processor{stage.actor, 0},
                                      .body = body});
  stage.settle();
  auto said = chief.heard<wire::Farewell>();
  REQUIRE(said.size() == 1);
  auto text = said[0].reader().getReason();
  return {read_errc(said[0].reader().getCode()), std::string{text.begin(), text.size()}};
}

using names = std::vector<std::string>;

} // namespace

TEST_SUITE("actors/gpu/gpu") {
  TEST_CASE("work is done on the device, and its asker told") {
    staged_gpu stage;
    float seen = 0;
    auto asked = stage.ask([&](compute_stream& on) {
      auto there = on.to_device(make_tensor({1}, {3}));
      seen = there->values<float>()[0];
    });
    CHECK(asked.value().thrown == nullptr);
    CHECK(seen == 3);
    CHECK(stage.device->uploads() == 1);
  }

  TEST_CASE("work of a stream begins in order, and may be asked for while other work is done") {
    staged_gpu stage{true};
    auto first = stage.note("first");
    auto second = stage.note("second");
    CHECK(stage.begun == names{"first", "second"});
    CHECK_FALSE(first.has_come());
    stage.finish_one();
    CHECK(first.has_come());
    CHECK_FALSE(second.has_come());
    stage.finish_one();
    CHECK(second.has_come());
  }

  TEST_CASE("a stream that is done answers, whatever others do") {
    staged_gpu stage{true, 2};
    auto slow = stage.note("slow", 0);
    auto quick = stage.note("quick", 1);
    std::swap(stage.held_back[0], stage.held_back[1]);
    stage.finish_one();
    CHECK(quick.has_come());
    CHECK_FALSE(slow.has_come());
    stage.finish_one();
    CHECK(slow.has_come());
  }

  TEST_CASE("time that work takes is told") {
    staged_gpu stage{true};
    auto asked = stage.note("work");
    stage.pass(3s);
    stage.finish_one();
    CHECK(asked.value().elapsed == 3s);
  }

  TEST_CASE("an exception of work goes to its asker, and the device goes on") {
    staged_gpu stage;
    auto asked = stage.ask([](compute_stream&) { throw std::runtime_error{"of the user"}; });
    CHECK_THROWS_WITH(std::rethrow_exception(asked.value().thrown), "of the user");
    CHECK(stage.note("next").has_come());
  }

  TEST_CASE("objects that work refers to live until the device has done it") {
    staged_gpu stage{true};
    auto value = std::make_shared<int>(1);
    stage.ask([value](compute_stream&) {});
    CHECK(value.use_count() > 1);
    stage.finish_one();
    CHECK(value.use_count() == 1);
  }

  TEST_CASE("an asker that need not wait is answered when its work is queued") {
    staged_gpu stage{true};
    auto value = std::make_shared<int>(1);
    auto asked = stage.queue([value](compute_stream&) {});
    CHECK(asked.value().thrown == nullptr);
    CHECK(value.use_count() > 1); // the device may still read it
    auto alive = stage.actors_alive();
    stage.send_away();
    CHECK(stage.actors_alive() == alive);
    stage.finish_one();
    CHECK(value.use_count() == 1);
    CHECK(stage.actors_alive() == alive - 1);
  }

  TEST_CASE("the device is asked once for the end of several pieces of work that were answered") {
    staged_gpu stage{true};
    auto nothing = [](compute_stream&) {};
    auto launched_alone = stage.put(nothing);
    std::vector<answers> queued;
    for (int i = 0; i < 3; ++i)
      queued.push_back(stage.put(nothing));
    auto waits = stage.put(nothing, false);
    auto after = stage.put(nothing);
    stage.settle();
    for (const auto& one : queued)
      CHECK(one.has_come());
    CHECK(launched_alone.has_come());
    CHECK(after.has_come());
    CHECK(stage.held_back.size() == 4);
    auto alive = stage.actors_alive();
    stage.send_away();
    for (int i = 0; i < 3; ++i)
      stage.finish_one();
    CHECK(waits.has_come());
    CHECK(stage.actors_alive() == alive);
    stage.finish_one();
    CHECK(stage.actors_alive() == alive - 1);
  }

  TEST_CASE("an exception of one piece of several is told to its asker alone") {
    staged_gpu stage;
    std::vector<answers> queued;
    for (int i = 0; i < 4; ++i)
      queued.push_back(stage.put([i](compute_stream&) {
        if (i == 2) throw std::runtime_error{"of the user"};
      }));
    stage.settle();
    for (size_t i = 0; i < 4; ++i)
      CHECK((queued[i].value().thrown != nullptr) == (i == 2));
  }

  TEST_CASE("such an asker is told what the launch threw, and that the device refused it") {
    staged_gpu stage;
    auto thrown = stage.queue([](compute_stream&) { throw std::runtime_error{"of the user"}; });
    CHECK_THROWS_WITH(std::rethrow_exception(thrown.value().thrown), "of the user");
    auto refused = stage.queue([&](compute_stream&) {
      stage.device->lose({errc::unavailable, "CUDA error 700"});
    });
    CHECK(refused.error() == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
  }

  TEST_CASE("work that was answered when it was queued is watched until its end") {
    for (bool is_lost : {false, true}) {
      staged_gpu stage{true};
      witness watcher{stage};
      auto asked = stage.queue([](compute_stream&) {});
      CHECK(asked.has_come());
      if (is_lost) stage.device->lose({errc::unavailable, "CUDA error 700"});
      stage.pass(8s);
      REQUIRE(watcher.seen());
      CHECK(watcher.seen()->message
            == (is_lost ? "cpu:0 is lost: CUDA error 700"
                        : "cpu:0 has not done work in 8.0 s, and nothing can stop it"));
      CHECK(reason_of_a_replica(stage) == *watcher.seen());
    }
  }

  TEST_CASE("a stream that is not there is refused") {
    staged_gpu stage;
    auto asked = stage.note("work", 1);
    CHECK(asked.error()
          == error{errc::invalid_argument, "work: cpu:0 has 1 streams, and no stream 1"});
  }

  TEST_CASE("all waiting requests hear at the next look that the device is lost") {
    staged_gpu stage{true, 2};
    auto first = stage.note("first", 0);
    auto second = stage.note("second", 1);
    stage.device->lose({errc::unavailable, "CUDA error 700"});
    stage.pass(2s);
    error lost{errc::unavailable, "cpu:0 is lost: CUDA error 700"};
    CHECK(first.error() == lost);
    CHECK(second.error() == lost);
    CHECK(stage.begun == names{"first", "second"});
  }

  TEST_CASE("a device that is lost is asked for nothing, and says so at once") {
    staged_gpu stage;
    stage.device->lose({errc::unavailable, "CUDA error 700"});
    auto asked = stage.note("work");
    CHECK(asked.error() == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
    CHECK(stage.begun.empty());
  }

  TEST_CASE("work that is not done in time ends all, and all waiting requests hear which it was") {
    staged_gpu stage{true, 2};
    auto patient = stage.note("patient", 1);
    auto slow = stage.ask([](compute_stream&) {}, 0, 2s);
    stage.pass(1900ms);
    CHECK_FALSE(slow.has_come());
    stage.pass(1200ms);
    error late{errc::deadline_exceeded,
               "cpu:0 has not done work in 2.0 s, and nothing can stop it"};
    CHECK(slow.error() == late);
    CHECK(patient.error() == late);
    CHECK(reason_of_a_replica(stage) == late);
  }

  TEST_CASE("work that waits for its turn is not late") {
    staged_gpu stage{true};
    auto first = stage.ask([](compute_stream&) {}, 0, 7s);
    auto second = stage.ask([](compute_stream&) {}, 0, 2s);
    stage.pass(6s);
    stage.finish_one();
    stage.pass(1s);
    stage.finish_one();
    CHECK(first.has_come());
    CHECK(second.value().thrown == nullptr);
  }

  TEST_CASE("a gpu that is told to leave stays until its device has done what it was asked for") {
    staged_gpu stage{true};
    auto asked = stage.note("work");
    auto alive = stage.actors_alive();
    stage.send_away();
    CHECK(stage.actors_alive() == alive);
    stage.finish_one();
    CHECK(asked.has_come());
    CHECK(stage.actors_alive() == alive - 1);
  }

  TEST_CASE("a gpu whose device is lost ends with the loss, when all waiting requests are told") {
    staged_gpu stage{true};
    witness watcher{stage};
    auto asked = stage.note("work");
    stage.device->lose({errc::unavailable, "CUDA error 700"});
    CHECK_FALSE(watcher.seen());
    stage.pass(2s);
    REQUIRE(watcher.seen());
    CHECK(*watcher.seen() == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
    CHECK(asked.error() == *watcher.seen());
  }

  TEST_CASE("a gpu whose device is lost stays as long as it is told something") {
    auto world = world::threads({.threads = 2});
    auto device = std::make_shared<cpu_device>(0, cpu_device_options{.streams = 2});
    auto actor = world.system().spawn(gpu, gpu_config{device, 60s, &world});
    std::promise<void> begun, may_end, has_left;
    actor->attach_functor([&] { has_left.set_value(); });
    device_work slow{.purpose = "slow"};
    slow.launch = [&](compute_stream&) {
      begun.set_value();
      may_end.get_future().wait();
    };
    caf::anon_send(actor, slow);
    begun.get_future().wait();
    device->lose({errc::unavailable, "CUDA error 700"});
    auto refused = ask<device_work_done>(world, actor, device_work{1, "more", {}, {}});
    CHECK(refused.error() == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
    auto left = has_left.get_future();
    CHECK(left.wait_for(0s) != std::future_status::ready);
    may_end.set_value();
    left.wait();
  }

  TEST_CASE("a request to a gpu that has ended gets the reason of its end, every time") {
    staged_gpu stage;
    stage.device->lose({errc::unavailable, "CUDA error 700"});
    stage.note("work");
    for (int i = 0; i < 2; ++i)
      CHECK(reason_of_a_replica(stage)
            == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
  }

  TEST_CASE("a gpu that has no thread to launch work with ends, and all askers hear why") {
    staged_gpu stage;
    refusing_world refusing{stage.world};
    auto actor = stage.spawn(gpu, gpu_config{stage.device, 8s, &refusing.world});
    for (int i = 0; i < 2; ++i) {
      auto asked = stage.user.ask<device_work_done>(
        actor, device_work{.purpose = "work", .launch = [](compute_stream&) {}});
      stage.settle();
      CHECK(asked.error()
            == error{errc::resource, stage.device->name() + " is given up: no thread"});
    }
  }

  TEST_CASE("a request to a gpu that was sent away hears that it is gone") {
    staged_gpu stage;
    stage.send_away();
    CHECK(reason_of_a_replica(stage).code == errc::unavailable);
  }

  TEST_CASE("a gpu that waits to leave ends when its device is lost, or does not end its work") {
    for (bool is_lost : {false, true}) {
      staged_gpu stage{true};
      witness watcher{stage};
      auto asked = stage.note("work");
      stage.send_away();
      if (is_lost) stage.device->lose({errc::unavailable, "CUDA error 700"});
      stage.pass(10s);
      REQUIRE(watcher.seen());
      CHECK(watcher.seen()->code == (is_lost ? errc::unavailable : errc::deadline_exceeded));
      CHECK(asked.error() == *watcher.seen());
    }
  }

  TEST_CASE("a gpu whose device is well ends without a reason") {
    staged_gpu stage;
    witness watcher{stage};
    stage.note("work");
    stage.send_away();
    REQUIRE(watcher.seen());
    CHECK(watcher.seen()->code == errc::none);
  }

  TEST_CASE("a replica computes on its device, and waits for it without holding a thread") {
    staged_gpu stage{true};
    std::vector<work_outcome> seen;
    auto body = [&](activity& activity) -> task<void> {
      auto computing = activity.compute_on_device([&](std::stop_token, compute_stream& on) {
        stage.begun.emplace_back(&on == &stage.device->stream(0) ? "there" : "elsewhere");
      });
      seen.push_back(co_await computing);
    };
    auto host = stage.spawn(
      replica,
      replica_config{.world = &stage.world, .processor = processor{stage.actor, 0}, .body = body});
    stage.settle();
    CHECK(stage.begun == names{"there"});
    CHECK(seen.empty());
    stage.finish_one();
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].thrown == nullptr);
  }

  TEST_CASE("a replica whose device is lost leaves, and says why") {
    staged_gpu stage;
    CHECK(reason_of_a_replica(stage).code == errc::none);
    stage.device->lose({errc::unavailable, "CUDA error 700"});
    CHECK(reason_of_a_replica(stage) == error{errc::unavailable, "cpu:0 is lost: CUDA error 700"});
  }

  TEST_CASE("a replica without a device computes on the host's stream, in the same way") {
    bool is_host = false;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      auto computing = activity.compute_on_device(
        [&](std::stop_token, compute_stream& on) { is_host = &on == &host_stream(); });
      auto outcome = co_await computing;
      static_cast<void>(outcome);
    }};
    CHECK(is_host);
    CHECK(stage.has_left());
  }
}

} // namespace gpu_test
