// SPDX-License-Identifier: Apache-2.0
// Goal: a variable answers a reader on its device as it answers one on the host. Method: a device
// that is a part of the CPU; the rest of the variable is seen through its owner.
#include "actors/gpu/cpu_device.hpp"
#include "actors/training/owned_variable.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

#include <memory>

namespace owned_variable_test {

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors/training/owned_variable") {
  TEST_CASE(
    "a reader on the variable's device learns of a copy that there is not, as on the host") {
    auto gpu = std::make_shared<cpu_device>(0, cpu_device_options{.plays_gpu = true});
    owned_variable variable{
      {.variable = {"w", dtype::f32, {1}}, .initial = array({1}, {1}), .places = {{.owned = gpu}}}};
    for (auto reader : {gpu->where(), device{}}) {
      CHECK(variable.read(make_read_variable(whole_variable, reader)));
      auto refused = variable.read(make_read_variable(7, reader));
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::out_of_range);
      CHECK(refused.error().message == "variable 'w' has 1 copies, and no copy 7");
    }
  }
}

} // namespace owned_variable_test
