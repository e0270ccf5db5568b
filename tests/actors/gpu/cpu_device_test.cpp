// SPDX-License-Identifier: Apache-2.0
// Goal: a part of the processor is a device as a GPU is one: memory of its own, streams, an end.
// Method: values are copied there and back, and looked for where they must not be.
#include "actors/gpu/cpu_device.hpp"
#include "tests/doctest.hpp"

#include <functional>
#include <vector>

namespace cpu_device_test {

using namespace troupe;

namespace {

tensor copied(compute_stream& stream, const tensor& value) {
  auto there = stream.to_device(value);
  REQUIRE(there);
  return *there;
}

std::vector<float> floats(const tensor& of) {
  auto values = of.values<float>();
  return {values.begin(), values.end()};
}

} // namespace

TEST_SUITE("actors/gpu/cpu_device") {
  TEST_CASE("a value on the device has memory of its own, and comes back as it was") {
    cpu_device device{0};
    auto host = make_tensor({2}, {1, 2});
    auto there = copied(device.stream(0), host);
    host.mutable_values<float>()[0] = 9;
    auto back = device.stream(0).to_host(there);
    REQUIRE(back);
    CHECK(floats(*back) == std::vector<float>{1, 2});
    CHECK(back->data() != there.data());
    CHECK(device.bytes_in_use() > 0);
  }

  TEST_CASE("a value that is there is not copied again, nor is a view of one") {
    cpu_device device{0};
    auto there = copied(device.stream(0), make_tensor({2}, {1, 2}));
    CHECK(copied(device.stream(0), there).data() == there.data());
    CHECK(copied(device.stream(0), there.slice(1, 2)).data() == there.slice(1, 2).data());
    CHECK(device.uploads() == 1);
  }

  TEST_CASE("rows that do not lie one after the other arrive in order") {
    cpu_device device{0};
    auto there = copied(device.stream(0), make_tensor({2, 2}, {1, 2, 3, 4}).transpose());
    CHECK(floats(there) == std::vector<float>{1, 3, 2, 4});
  }

  TEST_CASE("a tensor that does not fit is refused, in a line that says how full the memory is") {
    cpu_device device{1, {.bytes_max = 64}}; // a block is of 64 bytes at least
    auto held = copied(device.stream(0), make_tensor({2}, {1, 2}));
    auto refused = device.stream(0).to_device(make_tensor({1}, {3}));
    REQUIRE(!refused);
    CHECK(refused.error()
          == error{errc::resource, "cpu:1 has no room for 4 bytes: 64 of 64 are in use"});
  }

  TEST_CASE("memory is free when no handle to the value is left") {
    cpu_device device{0};
    { auto there = copied(device.stream(0), make_tensor({2}, {1, 2})); }
    CHECK(device.bytes_in_use() == 0);
  }

  TEST_CASE("a variable is copied once for each version") {
    cpu_device device{0};
    auto& stream = device.stream(0);
    std::vector<tensor> variables{make_tensor({1}, {1}), make_tensor({1}, {2})};
    auto first = stream.resident(variables);
    auto again = stream.resident(variables);
    REQUIRE(again);
    CHECK(device.uploads() == 2);
    CHECK((*again)[0].data() == (*first)[0].data());
    variables[1] = make_tensor({1}, {3});
    auto changed = stream.resident(variables);
    CHECK(device.uploads() == 3);
    CHECK(floats((*changed)[1]) == std::vector<float>{3});
  }

  TEST_CASE("memory of the last version cannot pass for that of a new one") {
    cpu_device device{0};
    std::vector<tensor> variables{make_tensor({1}, {1})};
    REQUIRE(device.stream(0).resident(variables));
    CHECK_FALSE(variables[0].is_unique()); // so its owner writes the next version elsewhere
  }

  TEST_CASE("the host's own stream copies nothing") {
    auto value = make_tensor({1}, {1});
    CHECK(host_stream().to_device(value)->data() == value.data());
    CHECK(host_stream().to_host(value)->data() == value.data());
    CHECK(host_stream().where() == device{});
  }

  TEST_CASE("published work of a stream is done before later work of other streams") {
    cpu_device holding{0, {.plays_gpu = true}};
    cpu_device computing{holding, 1};
    std::function<void()> go_on;
    auto source = copied(holding.stream(0), make_tensor({1}, {1}));
    auto read = [&] { return *computing.stream(0).to_host(source); };
    holding.stream(0).hold([&](std::function<void()> let_go) { go_on = std::move(let_go); });
    REQUIRE(holding.stream(0).copy_to_device(make_tensor({1}, {2}), source));
    CHECK(floats(read()) == std::vector<float>{1});
    holding.publish(0);
    auto seen = read();
    auto is_done = false;
    REQUIRE(computing.notify(0, [&] { is_done = true; }));
    CHECK_FALSE(is_done);
    go_on();
    CHECK(is_done);
    CHECK(floats(seen) == std::vector<float>{2});
    CHECK(floats(read()) == std::vector<float>{2});
  }

  TEST_CASE("a device that is lost stays so, and reports no work as done") {
    cpu_device device{0};
    CHECK(!device.loss());
    device.lose({errc::unavailable, "it fell off the bus"});
    device.lose({errc::unavailable, "later"});
    CHECK(device.loss()->message == "it fell off the bus");
    auto is_told = false;
    CHECK(!device.notify(0, [&] { is_told = true; }));
    CHECK_FALSE(is_told);
  }
}

} // namespace cpu_device_test
