// SPDX-License-Identifier: Apache-2.0
// Goal: a module of PyTorch trains under every strategy as libtorch alone would train it.
// Method: small modules; a loop of libtorch as the oracle; bits compared between worlds; refusals
// one by one.
#include "kernels/math/matmul.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/torch/torch_model.hpp"
#include "strategies/torch/torch_products.hpp"
#include "strategies/torch/torch_tensors.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"
#include "tests/strategies/small_job.hpp"
#include "tests/strategies/torch/torch_and_doctest.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace torch_model_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Two layers with dropout between them, and a bias that is not trained.
struct net : torch::nn::Module {
  explicit net(double rate = 0) : rate(rate) {
    shift = register_parameter("shift", at::full({3}, 0.25), false);
  }

  at::Tensor forward(const at::Tensor& input) {
    auto hidden = at::tanh(first->forward(input) + shift);
    return last->forward(at::dropout(hidden, rate, is_training()));
  }

  double rate;
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 3));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(3, 1));
  at::Tensor shift;
};

std::function<std::shared_ptr<net>()> nets(double rate = 0) {
  return [rate] { return std::make_shared<net>(rate); };
}

/// Points of the square, by the name of their draws.
at::Tensor points(const random_key& key) {
  tensor result{dtype::f32, {5, 2}};
  random_stream stream{key};
  for (auto& value : result.mutable_values<float>())
    value = static_cast<float>(2 * stream.uniform() - 1);
  return to_torch(result);
}

at::Tensor loss_at(net& own, const at::Tensor& inputs) {
  auto wanted = inputs.select(1, 0) - inputs.select(1, 1) / 2;
  return (own.forward(inputs).squeeze(1) - wanted).square().mean();
}

at::Tensor loss_of(net& own, const random_key& batch) {
  return loss_at(own, points(batch));
}

constexpr sync_options all_of_four{
  .replicas_to_aggregate = 4, .total_num_replicas = 4, .policy = sync_policy::latest_token};

std::vector<numbers> values_of(strategy& strategy) {
  return mapped(strategy.variables(),
                [&](const auto& each) { return numbers_of(strategy.read(each)); });
}

/// The values after so many steps of a job that needs all of its four replicas.
std::vector<numbers> trained_in_a_job(world in, double rate, uint64_t steps) {
  parameter_server_strategy strategy{in, {.replicas = 4}};
  torch_model<net> model{strategy, nets(rate)};
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.5}, all_of_four};
  auto step = torch_step(model, model.loss(loss_of), optimizer, 5);
  auto report = train(strategy, optimizer, step, {.steps = steps});
  CHECK_MESSAGE(!report.failure, (report.failure ? report.failure->message : ""));
  return values_of(strategy);
}

/// The values that replicas train by meeting; the loss is a mean, so gradients are averaged.
std::vector<numbers> trained_together(strategy& strategy, double rate, uint64_t steps,
                                      std::optional<size_t> bytes_per_bucket = {}) {
  torch_model<net> model{strategy, nets(rate)};
  optimizer optimizer{rules::sgd{.learning_rate = 0.5}, {.aggregation = reduce_op::mean}};
  auto loss = model.loss(loss_of);
  auto step = bytes_per_bucket
                ? torch_step(model, loss, optimizer, 5,
                             gradient_buckets{strategy, model.trained(), *bytes_per_bucket})
                : torch_step(model, loss, optimizer, 5);
  auto report = train(strategy, step, {.steps = steps});
  CHECK_MESSAGE(!report.failure, (report.failure ? report.failure->message : ""));
  return values_of(strategy);
}

void check_close(const std::vector<numbers>& ours, const std::vector<numbers>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i)
    for (size_t j = 0; j < ours[i].size(); ++j)
      CHECK(ours[i][j] == doctest::Approx(theirs[i][j]).epsilon(1e-5));
}

/// One module with all libtorch has: the same batches, one behind the other.
std::vector<numbers> trained_by_libtorch(uint64_t seed, uint64_t steps) {
  std::shared_ptr<net> own;
  {
    // Made as the variables' module is, so that both begin with the same weights.
    auto in = world::virtual_time({.seed = seed});
    one_device_strategy strategy{in};
    torch_model<net> model{strategy, nets()};
    own = std::make_shared<net>();
    at::NoGradGuard undifferentiated;
    for (size_t i = 0; i < model.variables().size(); ++i)
      own->parameters()[i].copy_(to_torch(strategy.read(model.variables()[i])));
  }
  for (uint64_t step = 0; step < steps; ++step) {
    own->zero_grad();
    auto sum = at::zeros({});
    for (uint32_t replica = 0; replica < 4; ++replica)
      sum = sum + loss_at(*own, points({seed, "batch", replica, step}));
    (sum / 4).backward();
    at::NoGradGuard undifferentiated;
    for (auto& each : own->parameters())
      if (each.requires_grad()) each.sub_(0.5 * each.grad());
  }
  return mapped(own->parameters(), [](const auto& each) { return numbers_of(from_torch(each)); });
}

/// Why a step of one replica is refused, or the making of its variables.
template <class Module>
error refusal_with(const std::function<std::shared_ptr<Module>()>& make,
                   const std::function<at::Tensor(Module&)>& loss) {
  auto in = world::virtual_time();
  one_device_strategy strategy{in};
  return refusal_of([&] {
    torch_model<Module> model{strategy, make};
    auto computing = [model, given = model.loss([loss](Module& own, const random_key&) {
      return loss(own);
    })](replica_context& context) -> task<void> {
      auto running = model.compute_gradients(context, given);
      co_await running;
    };
    strategy.run(computing);
  });
}

/// A module of a few parameters, as a function registers them.
struct loose : torch::nn::Module {
  explicit loose(const std::function<void(loose&)>& with) { with(*this); }

  using torch::nn::Module::register_buffer;
  using torch::nn::Module::register_parameter;
};

error refusal_of_parameters(const std::function<void(loose&)>& with) {
  return refusal_with<loose>([with] { return std::make_shared<loose>(with); },
                             [](loose& own) { return own.parameters()[0].sum(); });
}

error refusal_of_loss(const std::function<at::Tensor(net&)>& loss) {
  return refusal_with<net>(nets(), loss);
}

} // namespace

TEST_SUITE("strategies/torch/torch_model") {
  TEST_CASE("a variable has the name, shape and initial value of a parameter") {
    auto in = world::virtual_time({.seed = 3});
    parameter_server_strategy strategy{in};
    torch_model<net> model{strategy, nets()};
    std::vector<std::string> names;
    for (const auto& each : model.variables())
      names.push_back(each.name() + " " + to_string(each.extents()));
    CHECK(names
          == std::vector<std::string>{"shift [3]", "first.weight [3, 2]", "first.bias [3]",
                                      "last.weight [1, 3]", "last.bias [1]"});
    CHECK(model.trained().size() == 4);
    CHECK(model.trained().front() == model.variables()[1]);
    CHECK(numbers_of(strategy.read(model.variables()[0])) == numbers{0.25, 0.25, 0.25});
    for (auto weight : numbers_of(strategy.read(model.variables()[1])))
      CHECK(std::abs(weight) <= 1 / std::sqrt(2.0));
  }

  TEST_CASE("initial values depend on the seed alone") {
    auto with_seed = [](uint64_t seed) {
      auto in = world::virtual_time({.seed = seed});
      one_device_strategy strategy{in};
      torch_model<net> model{strategy, nets()};
      return values_of(strategy);
    };
    auto first = with_seed(1);
    at::rand({7}); // moves the generator of the process
    CHECK(with_seed(1) == first);
    CHECK(with_seed(2) != first);
  }

  TEST_CASE("a job learns what libtorch alone learns from the same batches") {
    auto ours = trained_in_a_job(world::virtual_time({.seed = 7}), 0, 20);
    check_close(ours, trained_by_libtorch(7, 20));
  }

  TEST_CASE("with dropout, every world and every strategy comes to the same bits") {
    auto job = trained_in_a_job(world::virtual_time({.seed = 7}), 0.3, 12);
    CHECK(trained_in_a_job(world::threads({.seed = 7, .threads = 4}), 0.3, 12) == job);
    CHECK(trained_in_a_job(world::threads({.seed = 7, .threads = 1}), 0.3, 12) == job);
    CHECK(trained_in_a_job(world::virtual_time({.seed = 7}), 0, 12) != job);
    for (auto threads : {false, true}) {
      auto in = threads ? world::threads({.seed = 7}) : world::virtual_time({.seed = 7});
      mirrored_strategy strategy{in, {.devices = cpu_devices(4)}};
      CHECK(trained_together(strategy, 0.3, 12) == job);
    }
  }

  TEST_CASE("under every strategy, a module learns") {
    for_every_strategy([](strategy& strategy) {
      torch_model<net> model{strategy, nets()};
      optimizer adam{rules::adam{.learning_rate = 0.02}, {.aggregation = reduce_op::mean}};
      auto step = torch_step(model, model.loss(loss_of), adam, 5);
      double last = 1;
      auto report = train(strategy, step, {.steps = 400, .on_step = [&](const step_record& record) {
                                             last = record.accepted.front().loss;
                                           }});
      CHECK_MESSAGE(!report.failure, (report.failure ? report.failure->message : ""));
      CHECK(last < 0.05); // of some 0.4 at the beginning
    });
  }

  TEST_CASE("a job whose losses are sums comes to the same, and reports their means") {
    auto outcome = [](bool are_sums) {
      auto in = world::virtual_time();
      parameter_server_strategy strategy{in, {.replicas = 4}};
      torch_model<net> model{strategy, nets()};
      auto options = all_of_four;
      options.losses_are_sums = are_sums;
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.5}, options};
      auto loss = [are_sums](net& own, const random_key& batch) {
        return loss_of(own, batch) * (are_sums ? 5 : 1);
      };
      auto reported = numbers{};
      auto note
        = [&](const step_record& record) { reported.push_back(record.accepted.front().loss); };
      auto step = torch_step(model, model.loss(loss), optimizer, 5);
      auto report = train(strategy, optimizer, step, {.steps = 3, .on_step = note});
      CHECK_FALSE(report.failure);
      auto values = values_of(strategy);
      values.push_back(reported);
      return values;
    };
    check_close(outcome(true), outcome(false));
  }

  TEST_CASE("processes that meet in buckets come to what one process comes to") {
    std::vector<numbers> wanted;
    for (auto bytes :
         {std::optional<size_t>{}, std::optional<size_t>{0}, std::optional<size_t>{9999}})
      for (uint32_t processes : {1U, 2U, 4U}) {
        std::mutex mutex;
        std::vector<std::vector<numbers>> learned;
        auto thrown = play(processes, [&](played_worker& worker) {
          multi_worker_mirrored_strategy strategy{worker.world, worker.options(4 / processes)};
          auto values = trained_together(strategy, 0.3, 6, bytes);
          std::scoped_lock lock{mutex};
          learned.push_back(std::move(values));
        });
        for (const auto& why : thrown)
          CHECK_MESSAGE(why.code == errc::none, why.message);
        REQUIRE(learned.size() == processes);
        if (wanted.empty()) wanted = learned.front();
        for (const auto& each : learned)
          check_close(each, wanted);
      }
  }

  TEST_CASE(
    "parameters are views of variables' memory, and gradients stay where libtorch left them") {
    auto in = world::virtual_time();
    one_device_strategy strategy{in};
    torch_model<net> model{strategy, nets()};
    std::vector<const void*> seen, left, handed;
    std::vector<at::Tensor> parameters;
    auto loss = model.loss([&](net& own, const random_key& batch) {
      parameters = own.parameters();
      for (auto& each : own.parameters())
        seen.push_back(each.data_ptr());
      for (auto& each : own.parameters())
        if (each.requires_grad())
          each.register_hook(
            [&](const at::Tensor& gradient) { left.push_back(gradient.data_ptr()); });
      return loss_of(own, batch);
    });
    auto compute = [&](replica_context& context) -> task<void> {
      auto take = [&](const variable&, const gradient& final) {
        handed.push_back(std::get<tensor>(final).data());
      };
      auto computing = model.compute_gradients(context, loss, gradient_taker{take});
      co_await computing;
    };
    strategy.run(compute);
    REQUIRE(seen.size() == model.variables().size());
    for (size_t i = 0; i < seen.size(); ++i)
      CHECK(strategy.read(model.variables()[i]).data() == seen[i]);
    for (size_t i = 0; i < seen.size(); ++i)
      CHECK(parameters[i].data_ptr() != seen[i]); // no longer than the computation
    CHECK(handed == left);
  }

  TEST_CASE("libtorch computes on one thread for each replica") {
    at::set_num_threads(4);
    auto in = world::threads({.threads = 2});
    mirrored_strategy strategy{in, {.devices = cpu_devices(2)}};
    torch_model<net> model{strategy, nets()};
    auto loss = model.loss([](net& own, const random_key& batch) {
      CHECK(at::get_num_threads() == 1);
      return loss_of(own, batch);
    });
    optimizer sgd{rules::sgd{.learning_rate = 0.5}};
    static_cast<void>(train(strategy, torch_step(model, loss, sgd, 5), {.steps = 3}));
  }

  TEST_CASE("a sparse gradient is handed over as rows, a parameter without one as zeros") {
    struct table : torch::nn::Module {
      torch::nn::Embedding rows = register_module(
        "rows", torch::nn::Embedding(torch::nn::EmbeddingOptions(6, 2).sparse(true)));
      at::Tensor unused = register_parameter("unused", at::ones({2}, at::kDouble));
    };

    auto in = world::virtual_time();
    one_device_strategy strategy{in};
    torch_model<table> model{strategy, [] { return std::make_shared<table>(); }};
    auto loss = model.loss([](table& own, const random_key&) {
      return own.rows->forward(at::tensor({4, 1, 4}, at::kLong)).sum() * 2;
    });
    computed_gradients found;
    auto compute = [&](replica_context& context) -> task<void> {
      auto computing = model.compute_gradients(context, loss);
      found = co_await computing;
    };
    strategy.run(compute);
    REQUIRE(found.gradients_and_variables.size() == 2);
    CHECK(found.gradients_and_variables[0].variable.name() == "unused");
    CHECK(numbers_of(std::get<tensor>(found.gradients_and_variables[0].gradient)) == numbers{0, 0});
    const auto& rows = std::get<indexed_slices>(found.gradients_and_variables[1].gradient);
    CHECK(numbers_of(rows.indices) == numbers{4, 1, 4});
    CHECK(numbers_of(rows.values) == numbers{2, 2, 2, 2, 2, 2});
    CHECK(rows.dense_extents == shape{6, 2});
  }

  TEST_CASE("an evaluation sees the values that it is given, without dropout and gradients") {
    auto in = world::virtual_time();
    one_device_strategy strategy{in};
    torch_model<net> model{strategy, nets(0.9)};
    auto values = mapped(model.variables(), [&](const auto& each) { return strategy.read(each); });
    auto measured = [&] {
      return model.evaluate(values, [](net& own) {
        CHECK(!own.is_training());
        auto loss = loss_of(own, {5, "held out"});
        CHECK(!loss.requires_grad());
        return loss.item().toDouble();
      });
    };
    auto first = measured();
    CHECK(measured() == first);
    values.back() = array({1}, {100});
    CHECK(measured() > 1000);
    values.back() = array({2}, {100, 100});
    CHECK_THROWS_AS(measured(), failure);
    values.pop_back();
    CHECK_THROWS_AS(measured(), failure);
  }

  TEST_CASE("a job goes on from a checkpoint, which has the names of the parameters") {
    scratch_folder folder;
    std::vector<numbers> saved;
    {
      auto in = world::virtual_time({.seed = 1});
      one_device_strategy strategy{in};
      saved = trained_together(strategy, 0, 3);
      save_checkpoint(strategy, folder.path(), 3);
    }
    auto in = world::virtual_time({.seed = 2});
    one_device_strategy strategy{in};
    torch_model<net> model{strategy, nets()};
    CHECK(values_of(strategy) != saved);
    CHECK(restore_checkpoint(strategy, folder.path()) == 3);
    CHECK(values_of(strategy) == saved);
    for (const auto& each : take_snapshot(strategy, 3).variables)
      CHECK(std::make_shared<net>()->named_parameters().contains(each.name));
  }

  TEST_CASE("parameters that variables cannot hold are refused by name") {
    auto refusal = refusal_of_parameters(
      [](loose& own) { own.register_parameter("narrow", at::zeros({2}, at::kHalf)); });
    CHECK(refusal.code == errc::type_mismatch);
    CHECK(refusal.message == "parameter 'narrow': it is f16; variables are f32, f64, i32 or i64");

    refusal = refusal_of_parameters(
      [](loose& own) { own.register_parameter("flags", at::zeros({2}, at::kBool), false); });
    CHECK(refusal.code == errc::type_mismatch);
    CHECK(refusal.message
          == "parameter 'flags': an array of libtorch has elements of type Bool; there are f32, "
             "f64, f16, bf16, i32 and i64");

    refusal = refusal_of_parameters([](loose& own) {
      own.register_parameter("turned", at::zeros({2, 3}).t());
    });
    CHECK(refusal.code == errc::invalid_argument);
    CHECK(refusal.message
          == "parameter 'turned': its elements have gaps between them; make it contiguous()");

    refusal = refusal_of_parameters([](loose& own) {
      own.register_parameter("scaled", 0.02 * at::ones({2, 3}).set_requires_grad(true));
    });
    CHECK(refusal.code == errc::invalid_argument);
    CHECK(refusal.message
          == "parameter 'scaled': it is computed from another tensor; register its detach()");

    refusal = refusal_of_parameters([](loose& own) {
      auto both = own.register_parameter("embedding", at::zeros({2, 3}));
      own.register_parameter("output", both);
    });
    CHECK(refusal.code == errc::invalid_argument);
    CHECK(refusal.message.find("parameters 'embedding' and 'output' share their elements") == 0);

    CHECK(refusal_of_parameters([](loose&) {}).code == errc::invalid_argument);
    CHECK(refusal_with<loose>([] { return nullptr; }, {}).code == errc::invalid_argument);
  }

  TEST_CASE("modules that differ between replicas are refused, with the first difference") {
    auto in = world::virtual_time();
    mirrored_strategy strategy{in, {.devices = cpu_devices(2)}};
    auto made = std::make_shared<int>(0);
    torch_model<loose> model{strategy, [made] {
                               auto rows = std::min(++*made, 2); // not the first one
                               return std::make_shared<loose>([rows](loose& own) {
                                 own.register_parameter("weights", at::zeros({rows, 2}));
                               });
                             }};
    auto step = torch_step(
      model, model.loss([](loose& own, const random_key&) { return own.parameters()[0].sum(); }),
      optimizer{rules::sgd{}}, 1);
    auto report = train(strategy, step, {.steps = 1, .on_failure = [](const error&) {}});
    REQUIRE(report.failure);
    CAPTURE(report.failure->message);
    CHECK(report.failure->message.find("differs from the first that was made: parameter 0 is "
                                       "'weights', f32 [2, 2], not 'weights', f32 [1, 2]")
          != std::string::npos);
  }

  TEST_CASE("modules are made one after the other, though replicas begin together") {
    auto in = world::threads({.seed = 5});
    parameter_server_strategy strategy{in, {.replicas = 4}};
    std::atomic<int> making = 0;
    int made = 0;
    torch_model<net> model{strategy, [&] {
                             CHECK(++making == 1);
                             std::this_thread::yield();
                             ++made;
                             --making;
                             return std::make_shared<net>();
                           }};
    sync_replicas_optimizer optimizer{rules::sgd{}, all_of_four};
    auto report = train(strategy, optimizer, torch_step(model, model.loss(loss_of), optimizer, 5),
                        {.steps = 1});
    CHECK_FALSE(report.failure);
    CHECK(made == 5);
  }

  TEST_CASE("a loss must be a scalar that depends on a parameter") {
    auto refusal = refusal_of_loss([](net& own) { return own.forward(at::ones({8, 2})); });
    CHECK(refusal.code == errc::invalid_argument);
    CHECK(refusal.message
          == "the loss of a module has shape [8, 1], but must be a scalar: return its mean() or "
             "sum()");
    CHECK(refusal_of_loss([](net&) { return at::ones({}); }).message
          == "the loss of a module does not depend on any of its parameters");
    CHECK(refusal_of_loss([](net&) { return at::Tensor{}; }).code == errc::invalid_argument);
  }

  TEST_CASE("an empty function is refused where it is given") {
    auto in = world::virtual_time();
    parameter_server_strategy strategy{in, {.replicas = 1}};
    CHECK(refusal_of([&] { torch_model<net>(strategy, {}); })
          == error{errc::invalid_argument, "the function that makes modules is empty"});
    torch_model<net> model{strategy, nets()};
    CHECK(refusal_of([&] {
            static_cast<void>(torch_step(model, module_loss{}, optimizer{rules::sgd{}}, 1));
          })
          == error{errc::invalid_argument, "torch_step was given an empty function"});
    using typed_loss = std::function<at::Tensor(net&, const random_key&)>;
    CHECK(refusal_of([&] { static_cast<void>(model.loss(typed_loss{})); }).message
          == "a loss was given an empty function");
    CHECK(refusal_of([&] { static_cast<void>(model.torch_modules::evaluate({}, {})); }).message
          == "evaluate was given an empty function");
  }

  TEST_CASE("a refusal by libtorch is told in one line") {
    auto refusal = refusal_of_loss([](net& own) { return own.forward(at::ones({8, 5})); });
    CHECK(refusal.code == errc::user_code);
    CHECK(refusal.message == "libtorch: mat1 and mat2 shapes cannot be multiplied (8x5 and 2x3)");
  }

  TEST_CASE("a module that writes into its parameters or buffers is refused") {
    auto refusal = refusal_of_loss([](net& own) {
      at::NoGradGuard undifferentiated;
      own.last->bias.add_(1);
      at::AutoGradMode differentiated{true};
      return own.last->bias.sum();
    });
    CHECK(refusal.code == errc::failed_precondition);
    CHECK(refusal.message
          == "a module has written into its parameter 'last.bias', which only the optimizer may "
             "change");

    using normalised = torch::nn::BatchNorm1dImpl;
    refusal = refusal_with<normalised>([] { return std::make_shared<normalised>(2); },
                                       [](normalised& own) {
                                         return own.forward(at::rand({4, 2})).square().sum();
                                       });
    CHECK(refusal.code == errc::unimplemented);
    CHECK(refusal.message.find("a module has written into its buffer") == 0);
  }

  TEST_CASE("libtorch's products of f32 are ours, with the results of f64") {
    CHECK(torch_products().starts_with(at::hasMKL() ? "MKL" : cpu::matmul_library()));
    auto stored = [](bool is_transposed, int64_t rows, int64_t columns) {
      auto values = is_transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
      return values.requires_grad_(false);
    };
    for (auto [rows, inner, columns] : {std::array{3, 5, 7}, {64, 128, 96}, {1, 9, 4}, {2, 0, 3}})
      for (auto transpose_a : {false, true})
        for (auto transpose_b : {false, true}) {
          CAPTURE(rows);
          auto a = stored(transpose_a, rows, inner);
          auto b = stored(transpose_b, inner, columns);
          auto c = at::randn({rows, columns});
          auto product
            = [](const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
                return at::addmm(sum, left, right, 0.5, 2);
              };
          auto expected = product(c.to(at::kDouble), a.to(at::kDouble), b.to(at::kDouble));
          CHECK(at::allclose(product(c, a, b).to(at::kDouble), expected, 1e-4, 1e-5));
          CHECK(at::allclose(at::matmul(a, b).to(at::kDouble),
                             at::matmul(a.to(at::kDouble), b.to(at::kDouble)), 1e-4, 1e-5));
        }
    auto parts = at::randn({2, 6, 8}).slice(2, 1, 5); // within wider rows
    CHECK(at::allclose(at::matmul(parts[0], parts[1].t()).to(at::kDouble),
                       at::matmul(parts[0].to(at::kDouble), parts[1].to(at::kDouble).t()), 1e-4,
                       1e-5));
  }

  TEST_CASE("arrays pass between Troupe and libtorch without a copy") {
    auto ours = array({2, 3}, {1, 2, 3, 4, 5, 6});
    auto there = to_torch(ours.transpose());
    CHECK(there.data_ptr() == ours.data());
    CHECK(there.sizes() == at::IntArrayRef{3, 2});
    CHECK(there[2][1].item().toDouble() == 6);
    auto back = from_torch(there);
    CHECK(back.data() == ours.data());
    CHECK(numbers_of(back) == numbers{1, 4, 2, 5, 3, 6});
    ours = {};
    there.reset();
    CHECK(numbers_of(back)
          == numbers{1, 4, 2, 5, 3, 6}); // the elements live as long as any of them

    CHECK(refusal_of([] { static_cast<void>(from_torch(at::zeros({2}, at::kByte))); }).code
          == errc::type_mismatch);
    CHECK(refusal_of([] { static_cast<void>(from_torch(at::eye(2).to_sparse())); }).code
          == errc::unimplemented);
    CHECK(refusal_of([] { static_cast<void>(gradient_from_torch(at::eye(2).to_sparse())); }).code
          == errc::unimplemented);
  }
}

} // namespace torch_model_test
