// SPDX-License-Identifier: Apache-2.0
// A small residual network for images as a module of PyTorch, trained by four replicas of which a
// step needs three. FOLDER has MNIST's four files, as those of drawn_images.py.
//
//   python3 drawn_images.py digits && torch_resnet digits [STEPS]
#include "messages/errors/failure.hpp"
#include "strategies/data/idx_file.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/torch/torch_model.hpp"
#include "strategies/torch/torch_products.hpp"
#include "strategies/torch/torch_tensors.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <torch/nn.h>

using namespace troupe;

namespace {

constexpr int64_t classes = 10, batch_size = 16;

/// 3 x 3. Groups are normalised rather than batches: replicas would not share statistics of those.
struct convolution : torch::nn::Module {
  convolution(int64_t from, int64_t to, int64_t stride)
    : weights(register_module(
      "conv", torch::nn::Conv2d(
                torch::nn::Conv2dOptions(from, to, 3).stride(stride).padding(1).bias(false)))),
      norm(register_module("norm", torch::nn::GroupNorm(torch::nn::GroupNormOptions(4, to)))) {}

  at::Tensor forward(const at::Tensor& images) { return norm->forward(weights->forward(images)); }

  torch::nn::Conv2d weights;
  torch::nn::GroupNorm norm;
};

/// Two convolutions and a way past them, which halves the sides if there is a stride.
struct residual : torch::nn::Module {
  residual(int64_t from, int64_t to, int64_t stride)
    : first(register_module("first", std::make_shared<convolution>(from, to, stride))),
      second(register_module("second", std::make_shared<convolution>(to, to, 1))),
      past(register_module(
        "past",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 1).stride(stride).bias(false)))) {}

  at::Tensor forward(const at::Tensor& images) {
    return (second->forward(first->forward(images).relu()) + past->forward(images)).relu();
  }

  std::shared_ptr<convolution> first, second;
  torch::nn::Conv2d past;
};

struct resnet : torch::nn::Module {
  /// Grey images [count, height, width] -> logits [count, classes]
  at::Tensor forward(const at::Tensor& images) {
    auto h = stem->forward(images.unsqueeze(1)).relu();
    return output->forward(small->forward(large->forward(h)).mean(at::IntArrayRef{2, 3}));
  }

  std::shared_ptr<convolution> stem
    = register_module("stem", std::make_shared<convolution>(1, 8, 1));
  std::shared_ptr<residual> large = register_module("large", std::make_shared<residual>(8, 16, 2));
  std::shared_ptr<residual> small = register_module("small", std::make_shared<residual>(16, 32, 2));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(32, classes));
};

/// All images of a data set, and their labels, in memory.
struct image_set {
  at::Tensor images; ///< [count, height, width], from 0 to 1
  at::Tensor labels; ///< [count]
};

at::Tensor read_all(const std::filesystem::path& file, dtype type) {
  std::vector<at::Tensor> all;
  auto elements = idx_file(file, type).iterate();
  while (auto each = value_or_throw(elements.next()))
    all.push_back(to_torch(each->tensors[0]));
  if (all.empty()) throw failure{{errc::invalid_argument, file.native() + " has no rows"}};
  return at::stack(all);
}

image_set read(const std::filesystem::path& folder, const std::string& part) {
  return {read_all(folder / (part + "-images-idx3-ubyte"), dtype::f32) / 255,
          read_all(folder / (part + "-labels-idx1-ubyte"), dtype::i64)};
}

/// The loss of images drawn from a data set, in nats.
at::Tensor loss_of(resnet& model, const image_set& all, const random_key& key) {
  tensor indices{dtype::i64, {batch_size}};
  random_stream numbers{key};
  for (auto& index : indices.mutable_values<int64_t>())
    index = static_cast<int64_t>(numbers.below(static_cast<uint64_t>(all.labels.size(0))));
  auto chosen = to_torch(indices);
  auto logits = model.forward(all.images.index_select(0, chosen));
  return at::cross_entropy_loss(logits, all.labels.index_select(0, chosen));
}

int train_on(const std::filesystem::path& folder, uint64_t steps) {
  auto training = read(folder, "train");
  auto held_out = read(folder, "t10k");
  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = 4}};
  torch_model<resnet> model{strategy, [] { return std::make_shared<resnet>(); }};
  sync_replicas_optimizer optimizer{
    rules::momentum{.learning_rate = 0.1},
    {.replicas_to_aggregate = 3, .total_num_replicas = 4, .policy = sync_policy::latest_token}};
  auto errors = [&](std::span<const tensor> values) {
    return model.evaluate(values, [&](resnet& own) {
      auto named = own.forward(held_out.images).argmax(1);
      return named.ne(held_out.labels).to(at::kDouble).mean().item().toDouble();
    });
  };
  auto show = [](uint64_t step, double share) {
    std::printf("step %lu: %.1f %% of the held-out images are named wrongly\n",
                static_cast<unsigned long>(step), 100 * share);
  };
  auto loss = [=](resnet& own, const random_key& batch) { return loss_of(own, training, batch); };
  auto report = train(
    strategy, optimizer, torch_step(model, model.loss(loss), optimizer, batch_size),
    {.steps = steps, .evaluation = {.every_steps = 100, .evaluate = errors, .on_result = show}});
  return report.failure ? static_cast<int>(exit_code_of(report)) : 0;
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: torch_resnet FOLDER [STEPS]\n");
    return static_cast<int>(exit_code::usage);
  }
  std::fprintf(stderr, "matrix products by %s\n", torch_products().c_str());
  try {
    return train_on(arguments[1], count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 300);
  } catch (const failure& failed) {
    std::fprintf(stderr, "torch_resnet: %s\n", failed.what());
    return static_cast<int>(exit_code::usage);
  }
}
