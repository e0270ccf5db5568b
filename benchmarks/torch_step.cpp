// SPDX-License-Identifier: Apache-2.0
// A data-parallel step of a GPT over bytes that libtorch computes; peers/torch_transformer.py is
// the same model by PyTorch.
//
// torch_step REPLICAS WINDOWS STEPS   prints the seconds of each step, as `time_steps` says
#include "benchmarks/timed_steps.hpp"
#include "strategies/torch/torch_model.hpp"
#include "strategies/torch/torch_tensors.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <torch/nn/module.h>
#include <torch/types.h>

using namespace troupe;

namespace {

constexpr int64_t context_length = 64, width = 128, heads = 4, layers = 4, bytes = 256;

/// The parameters of peers/torch_transformer.py, in their order.
struct transformer : torch::nn::Module {
  transformer() {
    add(0.02 * at::randn({bytes, width}));
    add(0.02 * at::randn({context_length, width}));
    for (int64_t layer = 0; layer < layers; ++layer) {
      add_norm();
      add_linear(width, 3 * width);
      add_linear(width, width);
      add_norm();
      add_linear(width, 4 * width);
      add_linear(4 * width, width);
    }
    add_norm();
  }

  /// The mean over all windows [windows, context_length + 1] and positions.
  at::Tensor loss_of(const at::Tensor& windows) {
    next_ = all_.begin();
    const auto& table = next();
    auto h = at::embedding(table, windows.slice(1, 0, context_length)) + next();
    const auto sizes = h.sizes().vec();
    h = h.flatten(0, 1);
    for (int64_t layer = 0; layer < layers; ++layer) {
      auto packed = linear(norm(h)).view({sizes[0], sizes[1], 3, heads, width / heads});
      auto attended = attend(packed.permute({2, 0, 3, 1, 4}).unbind());
      h = h + linear(attended.transpose(1, 2).reshape(h.sizes()));
      h = h + linear(at::gelu(linear(norm(h)), "tanh"));
    }
    return at::cross_entropy_loss(norm(h).matmul(table.t()), windows.slice(1, 1).flatten());
  }

private:
  void add(const at::Tensor& value) {
    all_.push_back(register_parameter(std::to_string(all_.size()), value));
  }

  void add_norm() {
    add(at::ones({width}));
    add(at::zeros({width}));
  }

  void add_linear(int64_t inputs, int64_t outputs) {
    add(0.02 * at::randn({inputs, outputs}));
    add(at::zeros({outputs}));
  }

  const at::Tensor& next() { return *next_++; }

  at::Tensor norm(const at::Tensor& x) {
    const auto &gain = next(), &bias = next();
    return at::layer_norm(x, {width}, gain, bias);
  }

  at::Tensor linear(const at::Tensor& x) {
    const auto &weights = next(), &bias = next();
    return at::addmm(bias, x, weights);
  }

  static at::Tensor attend(const std::vector<at::Tensor>& parts) {
    auto scores = parts[0].matmul(parts[1].transpose(2, 3)) / std::sqrt(double(width / heads));
    auto later = at::ones({context_length, context_length}, at::kBool).triu(1);
    return scores.masked_fill(later, -INFINITY).softmax(-1).matmul(parts[2]);
  }

  std::vector<at::Tensor> all_;
  std::vector<at::Tensor>::const_iterator next_; ///< The next parameter that `loss_of` takes.
};

std::string text() {
  std::ifstream file{"/usr/share/common-licenses/GPL-3"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// [count, context_length + 1]
at::Tensor windows_of(const std::string& text, int64_t count, const random_key& key) {
  tensor result{dtype::i64, {count, context_length + 1}};
  random_stream places{key};
  auto values = result.mutable_values<int64_t>();
  for (size_t window = 0; window < static_cast<size_t>(count); ++window) {
    auto from = places.below(text.size() - context_length);
    for (size_t i = 0; i <= context_length; ++i)
      values[window * (context_length + 1) + i] = static_cast<unsigned char>(text[from + i]);
  }
  return to_torch(result);
}

step_function make_step(strategy& strategy, int64_t windows) {
  torch_model<transformer> model{strategy, [] { return std::make_shared<transformer>(); }};
  optimizer adam{rules::adam{.learning_rate = 0.001}, {.aggregation = reduce_op::mean}};
  auto loss = [windows, text = text()](transformer& replica_model, const random_key& batch) {
    return replica_model.loss_of(windows_of(text, windows, batch));
  };
  return torch_step(model, model.loss(loss), adam, static_cast<uint32_t>(windows),
                    gradient_buckets{strategy, model.trained()});
}

} // namespace

int main(int count, char** arguments) {
  return time_steps(count, arguments, make_step);
}
