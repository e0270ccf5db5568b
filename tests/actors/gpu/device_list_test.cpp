// SPDX-License-Identifier: Apache-2.0
// Goal: devices are known by the names that people give them, and one that is not there is said to
// be so. Method: names, and what becomes of them.
#include "actors/gpu/device_list.hpp"
#include "tests/doctest.hpp"

#include <string>

namespace device_list_test {

using namespace troupe;

namespace {

using devices = std::vector<device>;

devices read(std::string_view names) {
  auto result = read_devices(names);
  REQUIRE_MESSAGE(result, (result ? std::string{} : result.error().message));
  return *result;
}

device gpu_of(int index) {
  return {device_kind::cuda, index};
}

} // namespace

TEST_SUITE("actors/gpu/device_list") {
  TEST_CASE("the processor is no list of devices") {
    CHECK(read("cpu").empty());
    CHECK(open_devices({}, 4)->empty());
  }

  TEST_CASE("GPUs are named one by one, in either spelling") {
    CHECK(read("gpu:0") == devices{gpu_of(0)});
    CHECK(read("gpu:3,GPU:1") == devices{gpu_of(3), gpu_of(1)});
    CHECK(read("/device:GPU:2") == devices{gpu_of(2)});
  }

  TEST_CASE("a name of no device is refused by name") {
    for (const auto* name : {"", "gpu", "gpu:", "gpu:x", "gpu:-1", "gpu:1x", "tpu:0", "gpu:0,cpu",
                             "gpu:0,", "gpu:99999999999", "cuda:0", "cpu:0"})
      CHECK_MESSAGE(read_devices(name).error().code == errc::invalid_argument, name);
    CHECK(read_devices("gpu:0,tpu:1").error().message
          == "'tpu:1' is no device: give cpu, or GPUs as in gpu:0,gpu:1");
  }

  TEST_CASE("a device has one name, however it is written") {
    for (const auto* name : {"gpu:3", "GPU:3", "/device:GPU:3"})
      CHECK(to_string(read_device(name).value()) == "gpu:3");
    CHECK(to_string(read_device("/device:CPU:1").value()) == "cpu:1");
    CHECK(read_device("cuda:0").error() == error{errc::invalid_argument, "'cuda:0' is no device"});
  }

  TEST_CASE("a GPU that is named twice is refused: sharing needs no second name") {
    CHECK(read_devices("gpu:1,gpu:1").error()
          == error{errc::invalid_argument,
                   "gpu:1 is named twice: name it once, and replicas share it"});
  }

  TEST_CASE("a GPU that no machine has is not there, and the line says why") {
    auto named = gpu_of(1000);
    auto refused = open_devices({&named, 1}, 1);
    REQUIRE(!refused);
    auto why = refused.error().code;
    CHECK((why == errc::unimplemented || why == errc::unavailable || why == errc::not_found
           || why == errc::resource));
    CHECK(refused.error().message.find("GPU") != std::string::npos);
  }
}

} // namespace device_list_test
