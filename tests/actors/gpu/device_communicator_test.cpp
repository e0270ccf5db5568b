// SPDX-License-Identifier: Apache-2.0
// Goal: processes with devices get what a plain loop makes of their arrays, and when one of them is
// gone, late or different the others are free again, with a reason. Method: groups in a virtual
// world, with devices that are parts of the processor and compute what they are asked.
#include "actors/gpu/cpu_device.hpp"
#include "actors/gpu/device_communicator.hpp"
#include "actors/gpu/gpu.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/actors/gpu/counted_collectives.hpp"

namespace device_communicator_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using answers = std::vector<answer<collective_result>>;

/// As `communicator_group`, with a device for each process.
struct device_group : communicator_group {
  explicit device_group(uint32_t size, const cpu_device_options& of_last = {})
    : communicator_group(size) {
    auto id = *library->make_id();
    for (uint32_t rank = 0; rank < size; ++rank) {
      devices.push_back(std::make_shared<cpu_device>(
        static_cast<int>(rank), rank + 1 == size ? of_last : cpu_device_options{}));
      gpus.push_back(spawn(gpu, gpu_config{devices.back(), deadline, &world}));
      device_communicator_config config{.rank = rank,
                                        .size = size,
                                        .process = fmt::format("worker:{}", rank),
                                        .host = members[rank],
                                        .library = library,
                                        .gpu = gpus.back(),
                                        .device = devices.back(),
                                        .deadline = deadline,
                                        .world = &world};
      if (rank == 0) config.id = id;
      with_devices.push_back(spawn(device_communicator, std::move(config)));
    }
    settle();
  }

  ~device_group() {
    for (auto& one : with_devices)
      caf::anon_send_exit(one, caf::exit_reason::kill);
    for (auto& one : gpus)
      caf::anon_send_exit(one, caf::exit_reason::kill);
  }

  [[nodiscard]] answer<collective_result> call(uint32_t rank, collective_call what) {
    what.on_devices = true;
    auto result = callers[rank].ask<collective_result>(with_devices[rank], std::move(what));
    settle();
    return result;
  }

  [[nodiscard]] answers call_all(const std::function<collective_call(uint32_t)>& what) {
    answers result;
    for (uint32_t rank = 0; rank < with_devices.size(); ++rank)
      result.push_back(call(rank, what(rank)));
    pass(100ms);
    return result;
  }

  std::shared_ptr<counted_collectives> library = std::make_shared<counted_collectives>();
  std::vector<std::shared_ptr<cpu_device>> devices;
  std::vector<gpu_actor> gpus;
  std::vector<communicator_actor> with_devices;
};

/// A communicator that answers when the test says so, with what it was given.
struct played_host {
  struct question {
    caf::typed_response_promise<collective_result> answer;
    collective_result with;
  };

  std::shared_ptr<std::vector<question>> questions = std::make_shared<std::vector<question>>();

  [[nodiscard]] communicator_actor spawn(world& world) const {
    return world.system().spawn(
      [asked = questions](communicator_actor::pointer self) -> communicator_actor::behavior_type {
        return {
          [self, asked](const collective_call& call) {
            auto promise = self->make_response_promise<collective_result>();
            tensor value = call.contributions.empty() ? tensor{} : call.contributions.front();
            asked->push_back({promise, {value}});
            return promise;
          },
          [](const meet_peers&) {},
          [](const msg<wire::CollectivePart>&) {},
          [](const msg<wire::CollectiveFailed>&) {},
          [](const group_broken&) {},
          [self](await_breakdown) { return self->make_response_promise<group_broken>(); },
          [](watch_tick) {},
        };
      });
  }
};

collective_call sum_of(std::string name, std::vector<tensor> values) {
  return {.kind = collective_kind::all_reduce,
          .name = std::move(name),
          .contributions = std::move(values)};
}

collective_call small_sum(const std::string& name) {
  return sum_of(name, {make_tensor({2}, {1, 2})});
}

} // namespace

TEST_SUITE("actors/gpu/device_communicator") {
  TEST_CASE("a sum over processes with several replicas each is made by the devices") {
    device_group group{3};
    std::vector<tensor> own_sums;
    std::vector<std::vector<tensor>> values(3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      values[rank] = {sample(dtype::f32, {103}, 2 * rank), sample(dtype::f32, {103}, 2 * rank + 1)};
      own_sums.push_back(folded(values[rank]));
    }
    auto said = group.call_all([&](uint32_t rank) { return sum_of("a", values[rank]); });
    for (const auto& one : said)
      CHECK(is_same(one.value().value, folded(own_sums)));
    for (const auto& device : group.devices)
      CHECK(device->uploads() == 2);
  }

  TEST_CASE("rows are shared out, and a value is spread") {
    device_group group{2};
    std::vector<tensor> values{sample(dtype::f32, {4, 3}, 0), sample(dtype::f32, {4, 3}, 1)};
    auto rows = group.call_all([&](uint32_t rank) {
      return collective_call{
        .kind = collective_kind::reduce_scatter, .name = "rows", .contributions = {values[rank]}};
    });
    for (int64_t rank = 0; rank < 2; ++rank)
      CHECK(is_same(rows[static_cast<size_t>(rank)].value().value,
                    folded(values).slice(2 * rank, 2 * rank + 2)));
    auto spread = group.call_all([&](uint32_t rank) {
      return collective_call{.kind = collective_kind::broadcast,
                             .name = "value",
                             .contributions = {values[rank]},
                             .root = 1};
    });
    for (const auto& one : spread)
      CHECK(is_same(one.value().value, values[1]));
  }

  TEST_CASE("calls that are made one after the other are not mixed up") {
    device_group group{2};
    std::vector<answers> said(2);
    for (uint32_t rank = 0; rank < 2; ++rank)
      for (uint32_t i = 0; i < 5; ++i)
        said[rank].push_back(group.call(
          rank, sum_of(fmt::format("sum {}", i), {sample(dtype::f32, {9}, 2 * i + rank)})));
    group.pass(100ms);
    for (uint32_t i = 0; i < 5; ++i)
      for (uint32_t rank = 0; rank < 2; ++rank)
        CHECK(is_same(said[rank][i].value().value, folded({sample(dtype::f32, {9}, 2 * i),
                                                           sample(dtype::f32, {9}, 2 * i + 1)})));
  }

  TEST_CASE("a call that is agreed on before an earlier one waits for its turn") {
    deterministic_world stage;
    played_host host;
    auto device = std::make_shared<cpu_device>(0);
    auto library = std::make_shared<cpu_collectives>();
    auto owner = stage.spawn(gpu, gpu_config{device, 60s, &stage.world});
    device_communicator_config config{.process = "worker:0",
                                      .host = host.spawn(stage.world),
                                      .library = library,
                                      .id = *library->make_id(),
                                      .gpu = owner,
                                      .device = device,
                                      .world = &stage.world};
    auto actor = stage.spawn(device_communicator, config);
    puppet user{stage.world};
    stage.settle();
    auto agree_on = [&](size_t question) {
      auto& one = host.questions->at(question);
      one.answer.deliver(one.with);
      stage.pass(100ms);
    };
    agree_on(0); // the group's id
    std::vector<answer<collective_result>> said;
    for (const auto* name : {"first", "second"}) {
      auto call = small_sum(name);
      call.on_devices = true;
      said.push_back(user.ask<collective_result>(actor, call));
      stage.settle();
    }
    agree_on(2);
    CHECK_FALSE(said[1].has_come());
    agree_on(1);
    CHECK(said[0].has_come());
    CHECK(said[1].has_come());
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("calls that are to be made together are one call of each device") {
    device_group group{2};
    std::vector<answers> said(2);
    for (uint32_t rank = 0; rank < 2; ++rank)
      for (uint32_t i = 0; i < 4; ++i) {
        auto one = sum_of(fmt::format("sum {}", i), {sample(dtype::f32, {9 + i}, 2 * i + rank)});
        if (i == 2) one.contributions = {zeros({0})}; // is made by messages
        if (i == 0) one.followers = 3;
        said[rank].push_back(group.call(rank, one));
      }
    group.pass(100ms);
    for (uint32_t i : {0U, 1U, 3U})
      for (uint32_t rank = 0; rank < 2; ++rank)
        CHECK(is_same(
          said[rank][i].value().value,
          folded({sample(dtype::f32, {9 + i}, 2 * i), sample(dtype::f32, {9 + i}, 2 * i + 1)})));
    CHECK(said[0][2].value().value.element_count() == 0);
    CHECK(group.library->calls == 2);
    CHECK(group.library->arrays == 2 * 3);
    static_cast<void>(group.call_all([](uint32_t) { return small_sum("next"); }));
    CHECK(group.library->calls == 4);
  }

  TEST_CASE("processes that make other calls together are told so, before a device is asked") {
    device_group group{2};
    std::vector<answers> said(2);
    for (uint32_t rank = 0; rank < 2; ++rank)
      for (const auto* name : {"a", "b"}) {
        auto one = small_sum(name);
        if (rank == 0 && one.name == "a") one.followers = 1;
        said[rank].push_back(group.call(rank, one));
      }
    group.pass(100ms);
    for (const auto& of_process : said)
      for (const auto& one : of_process)
        CHECK(one.error().code == errc::invalid_argument);
    CHECK(group.library->calls == 0);
  }

  TEST_CASE("calls that are to be made with others that never come end at the deadline") {
    device_group group{1};
    auto one = small_sum("a");
    one.followers = 2;
    auto said = group.call(0, one);
    group.pass(59s);
    CHECK_FALSE(said.has_come());
    group.pass(20s);
    CHECK(said.error().code == errc::deadline_exceeded);
    CHECK(said.error().message.find("2 calls that are to be made with it") != std::string::npos);
  }

  TEST_CASE("calls that are not for devices are made by messages, between calls that are") {
    device_group group{2};
    auto gathered = group.call_all([&](uint32_t rank) {
      return collective_call{.kind = collective_kind::all_gather,
                             .name = "rows",
                             .contributions = {sample(dtype::f32, {1 + rank, 2}, rank),
                                               sample(dtype::f32, {1, 2}, rank)}};
    });
    for (const auto& one : gathered)
      CHECK(one.value().value.extents() == shape{5, 2});
    auto sums = group.call_all([](uint32_t) { return small_sum("after"); });
    for (const auto& one : sums)
      CHECK(one.value().value.values<float>()[0] == 2);
    CHECK(group.devices[0]->uploads() == 1);
  }

  TEST_CASE("devices gather rows if that is asked for, of as many from each process") {
    device_group group{2};
    auto gather = [&](uint32_t odd_rows) {
      return group.call_all([=](uint32_t rank) {
        return collective_call{.kind = collective_kind::all_gather,
                               .name = "rows",
                               .contributions
                               = {sample(dtype::i32, {2 + rank * odd_rows, 3}, rank)}};
      });
    };
    for (const auto& one : gather(0)) {
      const auto& rows = one.value().value;
      CHECK(rows.extents() == shape{4, 3});
      for (int64_t rank : {0, 1})
        CHECK(is_same(rows.slice(2 * rank, 2 * rank + 2),
                      sample(dtype::i32, {2, 3}, static_cast<uint32_t>(rank))));
    }
    CHECK(group.devices[0]->uploads() == 1);
    for (const auto& one : gather(1))
      CHECK(one.error().code == errc::invalid_argument);
    CHECK(group.devices[0]->uploads() == 1);
  }

  TEST_CASE("devices make sums, values that are spread, and rows that can be shared evenly") {
    auto is_theirs = [](collective_kind kind, std::vector<tensor> values, bool asked = true) {
      collective_call call{.kind = kind, .contributions = std::move(values), .on_devices = asked};
      return is_for_devices(call, 2);
    };
    using enum collective_kind;
    auto even = make_tensor({2}, {1, 2});
    auto odd = make_tensor({3}, {1, 2, 3});
    CHECK(is_theirs(all_reduce, {even, even}));
    CHECK(is_theirs(broadcast, {odd}));
    CHECK(is_theirs(reduce_scatter, {even}));
    CHECK_FALSE(is_theirs(reduce_scatter, {odd}));
    CHECK_FALSE(is_theirs(reduce_scatter, {zeros({})}));
    CHECK(is_theirs(all_gather, {odd}));
    CHECK_FALSE(is_theirs(all_gather, {odd, odd}));
    CHECK_FALSE(is_theirs(all_gather, {zeros({})}));
    CHECK_FALSE(is_theirs(barrier, {}));
    CHECK_FALSE(is_theirs(all_reduce, {even, odd})); // to be refused, as by messages
    CHECK_FALSE(is_theirs(all_reduce, {zeros({0})}));
    CHECK_FALSE(is_theirs(all_reduce, {even}, false));
  }

  TEST_CASE("processes that mean other things are told so, before a device is asked") {
    device_group group{2};
    auto said = group.call_all([](uint32_t rank) {
      return sum_of("a", {rank == 0 ? make_tensor({2}, {1, 2}) : make_tensor({3}, {1, 2, 3})});
    });
    for (const auto& one : said)
      CHECK(one.error().code == errc::invalid_argument);
    CHECK(said[0].error().message.find("[2]") != std::string::npos);
    CHECK(group.devices[0]->uploads() == 0);
  }

  TEST_CASE("a process that does not come is named, at the deadline") {
    device_group group{3};
    answers said;
    for (uint32_t rank : {0U, 1U})
      said.push_back(group.call(rank, small_sum("a")));
    group.pass(59s);
    CHECK_FALSE(said[0].has_come());
    group.pass(20s);
    for (const auto& one : said) {
      CHECK(one.error().code == errc::deadline_exceeded);
      CHECK(one.error().message.find("worker:2") != std::string::npos);
    }
  }

  TEST_CASE("a process that is lost frees the devices that wait for its own, and is named") {
    device_group group{3};
    auto& lost = group.with_devices[2];
    answers said;
    // All agree, but the device of the last one does not come to it.
    group.devices[2]->stream(0).hold([](std::function<void()>) {});
    said = group.call_all([](uint32_t) { return small_sum("a"); });
    for (const auto& one : said)
      CHECK_FALSE(one.has_come());
    caf::anon_send_exit(group.members[2], caf::exit_reason::kill);
    caf::anon_send_exit(lost, caf::exit_reason::kill);
    group.pass(1s);
    for (uint32_t rank : {0U, 1U}) {
      CHECK(said[rank].error().code == errc::unavailable);
      CHECK(said[rank].error().message.find("worker:2 is gone") != std::string::npos);
      bool is_free = false;
      REQUIRE(group.devices[rank]->notify(0, [&] { is_free = true; }));
      CHECK(is_free);
      CHECK(group.call(rank, small_sum("next")).error().code == errc::unavailable);
    }
  }

  TEST_CASE("a device that does not come to a collective ends it for all, at the deadline") {
    device_group group{2};
    group.devices[1]->stream(0).hold([](std::function<void()>) {});
    auto said = group.call_all([](uint32_t) { return small_sum("a"); });
    group.pass(80s);
    for (const auto& one : said) {
      CHECK(one.error().code == errc::deadline_exceeded);
      CHECK(one.error().message.find("all_reduce on devices of 'a'") != std::string::npos);
    }
  }

  TEST_CASE("a device that is lost ends the calls of all processes, and its process is named") {
    device_group group{2};
    group.devices[1]->lose({errc::unavailable, "CUDA error 700"});
    auto said = group.call_all([](uint32_t) { return small_sum("a"); });
    group.pass(10s);
    for (const auto& one : said)
      CHECK(one.error() == error{errc::unavailable, "worker:1: cpu:1 is lost: CUDA error 700"});
    for (uint32_t rank : {0U, 1U})
      CHECK(group.call(rank, small_sum("next")).error() == said[rank].error());
  }

  TEST_CASE("a process that leaves takes its communicator and its gpu along") {
    device_group group{1};
    auto alive = group.actors_alive();
    caf::anon_send_exit(group.with_devices[0], caf::exit_reason::user_shutdown);
    group.settle();
    CHECK(group.actors_alive() == alive - 3);
  }

  TEST_CASE(
    "a process that leaves after its part of a call takes no peer along that is still at it") {
    bool is_late = false;
    std::vector<std::function<void()>> late;
    device_group group{2, {.ready = [&](std::function<void()> done) {
                         is_late ? late.push_back(std::move(done)) : done();
                       }}};
    is_late = true;
    auto said = group.call_all([](uint32_t) { return small_sum("a"); });
    REQUIRE(said[0].has_come());
    REQUIRE_FALSE(said[1].has_come());
    caf::anon_send_exit(group.with_devices[0], caf::exit_reason::user_shutdown);
    group.settle();
    for (const auto& tell : late)
      tell();
    group.settle();
    REQUIRE(said[1].has_come());
    CHECK(said[1].value().value.values<float>()[1] == 4);
    CHECK(group.call(1, small_sum("b")).error().message == "worker:0 has left the group");
  }

  TEST_CASE("a process that leaves gives its device's part up in the middle of a call alone") {
    for (bool is_under_way : {false, true}) {
      device_group group{1};
      if (is_under_way) group.devices[0]->stream(0).hold([](std::function<void()>) {});
      auto said = group.call(0, small_sum("a"));
      REQUIRE(said.has_come() != is_under_way);
      caf::anon_send_exit(group.with_devices[0], caf::exit_reason::user_shutdown);
      group.settle();
      CHECK(group.library->aborts == (is_under_way ? 1 : 0));
      if (is_under_way) CHECK(said.error().message == "worker:0 has left the group");
    }
  }
}

} // namespace device_communicator_test
