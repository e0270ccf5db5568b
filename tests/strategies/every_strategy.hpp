// SPDX-License-Identifier: Apache-2.0
// Tests that must hold whatever the strategy, in both worlds.
#pragma once

#include "strategies/contexts/default_strategy.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/central_storage_strategy.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/kinds/one_device_strategy.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/leaving_replicas.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::test {

/// Calls `body(strategy)` for every strategy that runs replicas, in both worlds.
inline void for_every_strategy(const std::function<void(strategy&)>& body) {
  using maker = std::function<std::unique_ptr<strategy>(world&)>;
  const std::pair<std::string, maker> makers[] = {
    {"default", [](world& in) { return std::make_unique<default_strategy>(in); }},
    {"one device", [](world& in) { return std::make_unique<one_device_strategy>(in); }},
    {"mirrored on 1",
     [](world& in) { return std::make_unique<mirrored_strategy>(in, mirrored_options{}); }},
    {"mirrored on 2",
     [](world& in) {
       return std::make_unique<mirrored_strategy>(in, mirrored_options{cpu_devices(2)});
     }},
    {"mirrored on 5",
     [](world& in) {
       return std::make_unique<mirrored_strategy>(in, mirrored_options{cpu_devices(5)});
     }},
    {"mirrored on 2, variables on a GPU",
     [](world& in) {
       return std::make_unique<mirrored_strategy>(
         in, mirrored_options{.devices = cpu_devices(2),
                              .variable_devices = as_given(make_playing_gpus(1, 1))});
     }},
    {"mirrored on 3, variables on 2 GPUs",
     [](world& in) {
       return std::make_unique<mirrored_strategy>(
         in, mirrored_options{.devices = cpu_devices(3),
                              .variable_devices = as_given(make_playing_gpus(2, 1))});
     }},
    {"multi worker mirrored, alone on 2",
     [](world& in) {
       return std::make_unique<multi_worker_mirrored_strategy>(
         in, multi_worker_mirrored_options{.devices = cpu_devices(2)});
     }},
    {"central storage on 3",
     [](world& in) {
       return std::make_unique<central_storage_strategy>(
         in, central_storage_options{.compute_devices = cpu_devices(3)});
     }},
  };
  for (auto threads : {false, true})
    for (const auto& [name, make] : makers) {
      CAPTURE(name);
      CAPTURE(threads);
      auto in
        = threads ? world::threads({.seed = 1, .threads = 2}) : world::virtual_time({.seed = 1});
      auto made = make(in);
      body(*made);
    }
}

} // namespace troupe::test
