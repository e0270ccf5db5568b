// SPDX-License-Identifier: Apache-2.0
// Goal: a model learns as well from products of rounded operands, and with f16 no gradient is lost
// and none is handed on that is not finite. Method: loss curves of small models beside those of
// full precision; work with gradients that are finite up to some loss scale.
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tools/small_language.hpp"
#include "tools/language/language_step.hpp"
#include "tools/model/training_step.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace training_step_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const language_model_config perceptron{.context = 4,
                                       .embedding_size = 8,
                                       .hidden_sizes = {32},
                                       .embedding_dropout = 0,
                                       .hidden_dropout = 0};
const language_model_config transformer{.kind = model_kind::transformer,
                                        .context = 8,
                                        .hidden_dropout = 0,
                                        .layers = 2,
                                        .heads = 2,
                                        .width = 16};

/// The losses of 100 steps of two replicas, all of which a step needs.
std::vector<double> losses_of(const language_model_config& model, product_precision precision) {
  auto world = world::virtual_time({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = 2}};
  std::vector<variable> variables;
  for (const auto& [name, value] : initial_values(variables_of(model), 1))
    variables.push_back(strategy.make_variable(name, value));
  const auto rate = model.kind == model_kind::transformer ? 0.003 : 0.01;
  sync_replicas_optimizer optimizer{rules::adam{.learning_rate = rate},
                                    {2, 2, sync_policy::latest_token}};
  std::vector<double> losses;
  training_options options{.steps = 100};
  options.on_step = [&](const step_record& step) {
    losses.push_back((step.accepted[0].loss + step.accepted[1].loss) / 2);
  };
  auto work = language_step({model, 16, small_text});
  auto report
    = train(strategy, optimizer, training_step(work, 16, optimizer, variables, precision), options);
  REQUIRE_MESSAGE(!report.failure, (report.failure ? report.failure->message : ""));
  return losses;
}

/// The course of a job of one replica.
struct scaled_course {
  std::vector<double> scales{}; ///< Loss scales that its work was given, in order.
  job_report report{};
  float value = 0; ///< One more for each gradient.
};

/// @param largest With a larger scale, gradients are infinite. @param folder For its checkpoints.
scaled_course run_scaled(double largest, uint64_t steps, const std::filesystem::path& folder,
                         bool resumes = false) {
  scaled_course seen;
  auto world = world::virtual_time();
  parameter_server_strategy strategy{world, {.replicas = 1}};
  auto weights = strategy.make_variable("weights", zeros({1}));
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1},
                                    {1, 1, sync_policy::latest_token}};
  auto work = [&](compute_stream&, std::span<const tensor>, const batch_draws&,
                  const differentiation& how) -> expected<step_on_stream> {
    seen.scales.push_back(how.loss_scale.value());
    auto is_finite = seen.scales.back() <= largest;
    auto non_finite = zeros({}, dtype::f64);
    non_finite.mutable_values<double>()[0] = is_finite ? 0 : 1;
    auto gradient = is_finite ? -1 : std::numeric_limits<float>::infinity();
    return step_on_stream{make_tensor({}, {1}), {make_tensor({1}, {gradient})}, non_finite};
  };
  training_options options{.steps = steps};
  options.on_failure = [](const error&) {};
  options.hooks.push_back(
    std::make_shared<checkpoint_saver_hook>(folder, checkpoint_options{.every_steps = steps}));
  if (resumes) options.resume = find_checkpoint(folder)->snapshot;
  seen.report
    = train(strategy, optimizer,
            training_step(work, 1, optimizer, {weights}, product_precision::f16), options);
  seen.value = strategy.read(weights).values<float>()[0];
  return seen;
}

} // namespace

TEST_SUITE("tools/model/training_step") {
  TEST_CASE("a model learns as well in less precision") {
    for (const auto& model : {perceptron, transformer}) {
      auto full = losses_of(model, product_precision::full);
      REQUIRE(full.size() == 100);
      CHECK(full.back() < 0.6 * full.front());
      for (auto [precision, bound] : {std::pair{product_precision::tf32, 0.01},
                                      {product_precision::bf16, 0.03},
                                      {product_precision::f16, 0.01}}) {
        CAPTURE(to_string(precision));
        CAPTURE(describe(model));
        auto losses = losses_of(model, precision);
        REQUIRE(losses.size() == 100);
        double farthest = 0;
        for (size_t i = 0; i < losses.size(); ++i)
          farthest = std::max(farthest, std::abs(losses[i] - full[i]));
        CHECK(farthest < bound);
        CHECK(losses != full);
      }
    }
  }

  TEST_CASE("with f16 a batch is computed again until its gradients are finite, then handed on") {
    scratch_folder folder;
    auto first = run_scaled(512, 3, folder.path());
    REQUIRE_FALSE(first.report.failure);
    CHECK(first.scales == std::vector<double>{32768, 16384, 8192, 4096, 2048, 1024, 512, 512, 512});
    CHECK(first.value == 3);
    auto second = run_scaled(256, 2, folder.path(), true); // with the scale of the checkpoint
    REQUIRE_FALSE(second.report.failure);
    CHECK(second.scales == std::vector<double>{512, 256, 256});
    CHECK(second.value == 5);
  }

  TEST_CASE(
    "with f16 a gradient that no scale makes finite ends the replica, and the line says so") {
    scratch_folder folder;
    auto seen = run_scaled(0, 3, folder.path());
    REQUIRE(seen.report.failure);
    CHECK_MESSAGE(
      seen.report.failure->message.find(
        "products of f16: gradients are not finite even without a loss scale; take bf16")
        != std::string::npos,
      seen.report.failure->message);
    CHECK(seen.scales.size() == 16); // 2^15, ..., 1
    CHECK(seen.value == 0);
  }
}

} // namespace training_step_test
