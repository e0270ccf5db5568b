// SPDX-License-Identifier: Apache-2.0
// Goal: a job ends in time when its GPU breaks in the middle of training, and says what happened.
// Method: an emulated GPU that is broken after some steps, under replicas of the language model.
#include "actors/gpu/cuda_device.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/language/language_step.hpp"

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("tools/gpu_loss") {
  TEST_CASE("a job whose only GPU breaks ends, and names it in CUDA's words") {
    auto gpu = open_cuda_device(0, 2);
    REQUIRE(gpu);
    job_report report;
    {
      auto world = world::threads({.seed = 7, .threads = 2});
      parameter_server_strategy strategy{world, {.replicas = 2, .compute_devices = {*gpu}}};
      const auto model = small_model();
      for (const auto& [name, value] : initial_values(variables_of(model), 7))
        strategy.make_variable(name, value);
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.1},
                                        {2, 2, sync_policy::latest_token}};
      std::vector<variable> variables{strategy.variables().begin(), strategy.variables().end()};
      training_options options{.steps = 1000, .deadline = 60s};
      options.on_step = [](const step_record& step) {
        if (step.step == 5) emulated::break_device(cudaErrorIllegalAddress);
      };
      report = train(strategy, optimizer,
                     training_step(language_step({model, 8, small_text}), 8, optimizer, variables),
                     options);
    }
    emulated::break_device(cudaSuccess);
    REQUIRE(report.failure);
    CHECK(report.failure->code == errc::unavailable);
    CHECK(report.step >= 5);
    CHECK(report.step < 1000);
    CHECK_MESSAGE(report.failure->message.find("gpu:0 (") != std::string::npos,
                  report.failure->message);
    CHECK_MESSAGE(report.failure->message.find("is lost") != std::string::npos,
                  report.failure->message);
  }
}
