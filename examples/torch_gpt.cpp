// SPDX-License-Identifier: Apache-2.0
// A small GPT over bytes as a module of PyTorch, trained by four replicas of which a step needs
// three: libtorch computes losses and gradients, Troupe does the rest.
//
//   torch_gpt FILE [STEPS]
#include "messages/errors/failure.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/torch/torch_model.hpp"
#include "strategies/torch/torch_products.hpp"
#include "strategies/torch/torch_tensors.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <torch/nn.h>
#include <utility>

using namespace troupe;

namespace {

constexpr int64_t context_length = 32, width = 48, heads = 4, layers = 2, windows = 8;
constexpr size_t bytes_min = 10 * (context_length + 1); // a tenth is held out

/// Attention and a feed-forward network, each behind a normalisation and with a way past it.
struct block : torch::nn::Module {
  at::Tensor forward(at::Tensor h) {
    auto sizes = h.sizes().vec(); // [windows, positions, width]
    auto parts = pack->forward(norm1->forward(h)).chunk(3, 2);
    for (auto& part : parts)
      part = part.view({sizes[0], sizes[1], heads, width / heads}).transpose(1, 2);
    auto scores = parts[0].matmul(parts[1].transpose(2, 3)) / std::sqrt(double(width / heads));
    auto later = at::ones({sizes[1], sizes[1]}, at::kBool).triu(1);
    auto weights = scores.masked_fill(later, -INFINITY).softmax(-1);
    auto attended = weights.matmul(parts[2]).transpose(1, 2).reshape(sizes);
    h = h + dropout->forward(project->forward(attended));
    return h + dropout->forward(narrow->forward(at::gelu(widen->forward(norm2->forward(h)))));
  }

  torch::nn::LayerNorm norm1 = norm("norm1"), norm2 = norm("norm2");
  torch::nn::Linear pack = linear("pack", width, 3 * width);
  torch::nn::Linear project = linear("project", width, width);
  torch::nn::Linear widen = linear("widen", width, 4 * width);
  torch::nn::Linear narrow = linear("narrow", 4 * width, width);
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.1));

private:
  torch::nn::LayerNorm norm(const std::string& name) {
    return register_module(name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  }

  torch::nn::Linear linear(const std::string& name, int64_t from, int64_t to) {
    return register_module(name, torch::nn::Linear(from, to));
  }
};

struct gpt : torch::nn::Module {
  gpt() {
    for (int64_t i = 0; i < layers; ++i)
      blocks->push_back(std::make_shared<block>());
  }

  /// Bytes [windows, positions] -> logits of the bytes after them [windows, positions, 256]
  at::Tensor forward(const at::Tensor& bytes) {
    auto h = embedding->forward(bytes) + positions.slice(0, 0, bytes.size(1));
    for (const auto& each : *blocks)
      h = each->as<block>()->forward(h);
    return output->forward(norm->forward(h));
  }

  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(256, width));
  at::Tensor positions = register_parameter("positions", 0.02 * at::randn({context_length, width}));
  torch::nn::ModuleList blocks = register_module("blocks", torch::nn::ModuleList());
  torch::nn::LayerNorm norm
    = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(width, 256));
};

/// The loss of windows drawn from a text, in nats.
at::Tensor loss_of(gpt& model, const std::string& text, const random_key& key) {
  tensor bytes{dtype::i64, {windows, context_length + 1}};
  random_stream places{key};
  auto values = bytes.mutable_values<int64_t>();
  for (size_t i = 0; i < windows; ++i) {
    auto from = places.below(text.size() - context_length);
    for (size_t j = 0; j <= context_length; ++j)
      values[i * (context_length + 1) + j] = static_cast<unsigned char>(text[from + j]);
  }
  auto all = to_torch(bytes);
  auto logits = model.forward(all.slice(1, 0, context_length));
  return at::cross_entropy_loss(logits.flatten(0, 1), all.slice(1, 1).flatten());
}

int train_on(std::string text, uint64_t steps) {
  auto held_out = text.substr(text.size() - text.size() / 10);
  text.resize(text.size() - held_out.size());

  auto world = world::threads({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = 4}};
  torch_model<gpt> model{strategy, [] { return std::make_shared<gpt>(); }};
  sync_replicas_optimizer optimizer{
    rules::adam{.learning_rate = 0.003},
    {.replicas_to_aggregate = 3, .total_num_replicas = 4, .policy = sync_policy::latest_token}};
  auto bits = [&](std::span<const tensor> values) {
    return model.evaluate(values, [&](gpt& own) {
      return loss_of(own, held_out, {1, "held out"}).item().toDouble() / std::log(2);
    });
  };
  auto show = [](uint64_t step, double value) {
    std::printf("step %lu: %.2f bits/byte of held-out text\n", static_cast<unsigned long>(step),
                value);
  };
  auto loss
    = model.loss([text](gpt& own, const random_key& batch) { return loss_of(own, text, batch); });
  auto report = train(
    strategy, optimizer, torch_step(model, loss, optimizer, windows),
    {.steps = steps, .evaluation = {.every_steps = 100, .evaluate = bits, .on_result = show}});
  return report.failure ? static_cast<int>(exit_code_of(report)) : 0;
}

} // namespace

int main(int count, char** arguments) {
  std::ostringstream read;
  if (count > 1) read << std::ifstream{arguments[1]}.rdbuf();
  auto text = read.str();
  if (text.size() < bytes_min) {
    std::fprintf(stderr, "usage: torch_gpt FILE [STEPS]; the file has at least %lu bytes\n",
                 static_cast<unsigned long>(bytes_min));
    return static_cast<int>(exit_code::usage);
  }
  std::fprintf(stderr, "matrix products by %s\n", torch_products().c_str());
  try {
    return train_on(std::move(text), count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 300);
  } catch (const failure& failed) {
    std::fprintf(stderr, "torch_gpt: %s\n", failed.what());
    return static_cast<int>(exit_code::usage);
  }
}
