// SPDX-License-Identifier: Apache-2.0
// Goal: the tape's values and derivatives are those of libtorch's autograd, operation by operation.
// Method: the same drawn inputs to both; the loss weighs each element of the result differently.
#include "kernels/tape/tape.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/torch/torch_tensors.hpp"
#include "tests/strategies/torch/torch_and_doctest.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tape_against_autograd_test {

using namespace troupe;

namespace {

using expressions = std::vector<expression>;
using arrays = std::vector<at::Tensor>;

/// An operation as the tape has it and as libtorch has it.
struct operation {
  std::string name;
  std::vector<shape> inputs;
  std::function<expression(tape&, const expressions&)> ours;
  std::function<at::Tensor(const arrays&)> theirs;
};

tensor drawn(const shape& extents, dtype type, const random_key& key) {
  auto result = zeros(extents, type);
  random_stream stream{key};
  for (size_t i = 0; i < result.element_count(); ++i) {
    auto value = stream.normal();
    if (type == dtype::f64)
      result.mutable_values<double>()[i] = value;
    else
      result.mutable_values<float>()[i] = static_cast<float>(value);
  }
  return result;
}

/// The largest difference, in units of the largest element or of 1.
double difference(const at::Tensor& ours, const at::Tensor& theirs) {
  REQUIRE(ours.sizes() == theirs.sizes());
  if (ours.numel() == 0) return 0;
  auto scale = std::max(1.0, theirs.abs().max().item().toDouble());
  return (ours - theirs).abs().max().item().toDouble() / scale;
}

void compare(const operation& of, dtype type) {
  CAPTURE(of.name);
  CAPTURE(to_string(type));
  const double bound = type == dtype::f64 ? 1e-12 : 2e-5; // sums of some hundred roundings
  tape t;
  expressions parameters;
  arrays leaves;
  for (const auto& extents : of.inputs) {
    auto value = drawn(extents, type, {1, of.name, static_cast<uint32_t>(leaves.size())});
    parameters.push_back(t.parameter(value));
    leaves.push_back(to_torch(value).clone().requires_grad_());
  }
  auto our_result = of.ours(t, parameters);
  auto their_result = of.theirs(leaves);
  auto value = value_or_throw(t.value(our_result));
  CHECK(difference(to_torch(value), their_result.detach()) < bound);

  auto weights = drawn(value.extents(), type, {1, "weights of " + of.name});
  auto loss = t.mean(t.multiply(our_result, t.constant(weights)));
  (their_result * to_torch(weights)).mean().backward();
  auto gradients = value_or_throw(t.gradients(loss, parameters));
  for (size_t i = 0; i < gradients.size(); ++i) {
    CAPTURE(i);
    auto dense = at::zeros_like(leaves[i]);
    if (const auto* rows = std::get_if<indexed_slices>(&gradients[i]))
      dense.index_add_(0, to_torch(rows->indices), to_torch(rows->values));
    else
      dense.copy_(to_torch(std::get<tensor>(gradients[i])));
    CHECK(difference(dense, leaves[i].grad()) < bound);
  }
}

tensor whole_numbers(const shape& extents, int64_t below, std::string_view name) {
  auto result = zeros(extents, dtype::i64);
  random_stream stream{{1, name}};
  for (auto& value : result.mutable_values<int64_t>())
    value = static_cast<int64_t>(stream.below(static_cast<uint64_t>(below)));
  return result;
}

at::Tensor attention(const at::Tensor& packed, int64_t heads) {
  auto batch = packed.size(0), context = packed.size(1), width = packed.size(2) / 3;
  auto split = packed.chunk(3, 2);
  for (auto& part : split)
    part = part.view({batch, context, heads, width / heads}).transpose(1, 2);
  auto scale = 1 / std::sqrt(static_cast<double>(width / heads));
  auto scores = split[0].matmul(split[1].transpose(2, 3)) * scale;
  auto later = at::ones({context, context}, at::kBool).triu(1);
  auto weights = scores.masked_fill(later, -INFINITY).softmax(-1);
  return weights.matmul(split[2]).transpose(1, 2).reshape({batch, context, width});
}

// Images channels last to channels first, and back.
at::Tensor channels_first(const at::Tensor& images) {
  return images.permute({0, 3, 1, 2});
}

at::Tensor channels_last(const at::Tensor& images) {
  return images.permute({0, 2, 3, 1});
}

operation product(const std::string& name, const shape& a, const shape& b, transposition how) {
  return {
    name,
    {a, b},
    [how](tape& t, const expressions& x) { return t.matmul(x[0], x[1], how); },
    [how](const arrays& x) {
      return (how.a ? x[0].transpose(-1, -2) : x[0]).matmul(how.b ? x[1].transpose(-1, -2) : x[1]);
    }};
}

operation by_element(const std::string& name, activation kind,
                     std::function<at::Tensor(const at::Tensor&)> theirs) {
  // A logarithm needs numbers above 0.
  auto is_log = kind == activation::log;
  return {
    name,
    {{9, 31}},
    [=](tape& t, const expressions& x) { return t.activate(kind, is_log ? t.exp(x[0]) : x[0]); },
    [=](const arrays& x) { return theirs(is_log ? x[0].exp() : x[0]); }};
}

operation convolution(const std::string& name, window_steps steps, int64_t window) {
  return {name,
          {{3, 9, 8, 5}, {window, window, 5, 7}},
          [=](tape& t, const expressions& x) { return t.conv2d(x[0], x[1], steps); },
          [=](const arrays& x) {
            return channels_last(at::conv2d(channels_first(x[0]), x[1].permute({3, 2, 0, 1}), {},
                                            steps.stride, steps.padding));
          }};
}

operation pooling(const std::string& name, int64_t window, window_steps steps) {
  return {name,
          {{3, 9, 8, 5}},
          [=](tape& t, const expressions& x) { return t.max_pool2d(x[0], window, steps); },
          [=](const arrays& x) {
            return channels_last(
              at::max_pool2d(channels_first(x[0]), window, steps.stride, steps.padding));
          }};
}

} // namespace

TEST_SUITE("strategies/torch/tape_against_autograd") {
  void compare_all(const std::vector<operation>& all) {
    for (const auto& each : all)
      for (auto type : {dtype::f64, dtype::f32})
        compare(each, type);
  }

  TEST_CASE("products agree with autograd") {
    compare_all({product("a b", {13, 21}, {21, 9}, {}), product("a' b", {21, 13}, {21, 9}, {true}),
                 product("a b'", {13, 21}, {9, 21}, {false, true}),
                 product("a' b'", {21, 13}, {9, 21}, {true, true}),
                 product("batch", {4, 13, 21}, {4, 21, 9}, {}),
                 product("batch, a' b'", {4, 21, 13}, {4, 9, 21}, {true, true})});
  }

  TEST_CASE("operations element by element agree with autograd") {
    compare_all({by_element("tanh", activation::tanh, [](auto& x) { return x.tanh(); }),
                 by_element("relu", activation::relu, [](auto& x) { return x.relu(); }),
                 by_element("sigmoid", activation::sigmoid, [](auto& x) { return x.sigmoid(); }),
                 by_element("gelu", activation::gelu, [](auto& x) { return at::gelu(x, "tanh"); }),
                 by_element("exp", activation::exp, [](auto& x) { return x.exp(); }),
                 by_element("log", activation::log, [](auto& x) { return x.log(); }),
                 {"add",
                  {{7, 5}, {7, 5}},
                  [](tape& t, const expressions& x) { return t.add(x[0], x[1]); },
                  [](const arrays& x) { return x[0] + x[1]; }},
                 {"multiply",
                  {{7, 5}, {7, 5}},
                  [](tape& t, const expressions& x) { return t.multiply(x[0], x[1]); },
                  [](const arrays& x) { return x[0] * x[1]; }},
                 {"scale",
                  {{7, 5}},
                  [](tape& t, const expressions& x) { return t.scale(x[0], -0.3); },
                  [](const arrays& x) { return x[0] * -0.3; }},
                 {"linear",
                  {{7, 5}, {5, 3}, {3}},
                  [](tape& t, const expressions& x) { return t.linear(x[0], x[1], x[2]); },
                  [](const arrays& x) { return x[0].matmul(x[1]) + x[2]; }},
                 {"bias",
                  {{2, 7, 5}, {7, 5}},
                  [](tape& t, const expressions& x) { return t.add_bias(x[0], x[1]); },
                  [](const arrays& x) { return x[0] + x[1]; }}});
  }

  TEST_CASE("normalisations agree with autograd") {
    compare_all({{"layer norm",
                  {{4, 6, 33}, {33}, {33}},
                  [](tape& t, const expressions& x) { return t.layer_norm(x[0], x[1], x[2]); },
                  [](const arrays& x) { return at::layer_norm(x[0], {33}, x[1], x[2]); }},
                 {"rms norm",
                  {{4, 6, 33}, {33}},
                  [](tape& t, const expressions& x) { return t.rms_norm(x[0], x[1]); },
                  [](const arrays& x) {
                    return x[0] * (x[0].square().mean(-1, true) + 1e-5).rsqrt() * x[1];
                  }}});
  }

  TEST_CASE("attention, with its softmax, agrees with autograd") {
    for (int64_t heads : {1, 4})
      compare_all(
        {{"attention",
          {{3, 17, 3 * 16}},
          [=](tape& t, const expressions& x) { return t.causal_self_attention(x[0], heads); },
          [=](const arrays& x) { return attention(x[0], heads); }}});
  }

  TEST_CASE("convolutions and poolings of images agree with autograd") {
    compare_all({convolution("convolution", {}, 3), convolution("padded", {.padding = 1}, 3),
                 convolution("every other pixel", {.stride = 2, .padding = 1}, 3),
                 convolution("of single pixels", {}, 1), convolution("of 5 x 5", {2, 2}, 5),
                 pooling("pooling", 2, {.stride = 2}),
                 pooling("pooling, windows that overlap", 3, {.stride = 2, .padding = 1})});
  }

  TEST_CASE("lookups and losses by labels agree with autograd") {
    auto which = whole_numbers({6, 4}, 11, "indices");
    auto labels = whole_numbers({9}, 13, "labels");
    compare_all(
      {{"embedding",
        {{11, 5}},
        [=](tape& t, const expressions& x) { return t.embedding(x[0], which); },
        [=](const arrays& x) { return at::embedding(x[0], to_torch(which)); }},
       {"cross entropy",
        {{9, 13}},
        [=](tape& t, const expressions& x) { return t.softmax_cross_entropy(x[0], labels); },
        [=](const arrays& x) { return at::cross_entropy_loss(x[0], to_torch(labels)); }}});
  }

  TEST_CASE("changes of shape, and sums, agree with autograd") {
    compare_all({{"transpose",
                  {{7, 5}},
                  [](tape& t, const expressions& x) { return t.transpose(x[0]); },
                  [](const arrays& x) { return x[0].t(); }},
                 {"reshape",
                  {{7, 6}},
                  [](tape& t, const expressions& x) {
                    return t.reshape(x[0], {2, 21});
                  },
                  [](const arrays& x) {
                    return x[0].reshape({2, 21});
                  }},
                 {"slice",
                  {{7, 5}},
                  [](tape& t, const expressions& x) { return t.slice(x[0], 2, 6); },
                  [](const arrays& x) { return x[0].slice(0, 2, 6); }},
                 {"concatenate",
                  {{7, 5}, {3, 5}},
                  [](tape& t, const expressions& x) { return t.concatenate(x[0], x[1]); },
                  [](const arrays& x) {
                    return at::cat({x[0], x[1]});
                  }},
                 {"row sums",
                  {{7, 5}},
                  [](tape& t, const expressions& x) { return t.row_sums(x[0]); },
                  [](const arrays& x) { return x[0].sum(-1); }},
                 {"mean",
                  {{7, 5}},
                  [](tape& t, const expressions& x) { return t.mean(x[0]); },
                  [](const arrays& x) { return x[0].mean(); }}});
  }
}

} // namespace tape_against_autograd_test
