// SPDX-License-Identifier: Apache-2.0
// Goal: a model's loss and gradients on a GPU are those of the reference. Method: a small language
// model forward and backward on both tapes; refusals.
#include "kernels/cuda/graph.hpp"
#include "kernels/cuda/tape.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

#include <string>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t classes = 11, width = 24, rows = 21;

template <class T>
tensor random_tensor(shape extents, std::string_view name) {
  tensor result(dtype_of<T>, std::move(extents));
  random_stream stream{random_key{1, name}};
  for (auto& value : result.mutable_values<T>())
    value = static_cast<T>(stream.normal() / 3);
  return result;
}

tensor random_indices(shape extents, uint64_t below, std::string_view name) {
  tensor result(dtype::i64, std::move(extents));
  random_stream stream{random_key{2, name}};
  for (auto& value : result.mutable_values<int64_t>())
    value = static_cast<int64_t>(stream.below(below));
  return result;
}

template <class T>
std::vector<tensor> parameters() {
  return {random_tensor<T>({classes, width}, "table"), random_tensor<T>({width}, "gain"),
          random_tensor<T>({width}, "shift"),          random_tensor<T>({width, 2 * width}, "up"),
          random_tensor<T>({2 * width}, "up bias"),    random_tensor<T>({2 * width, width}, "down"),
          random_tensor<T>({3, width}, "unused")};
}

/// The loss of a layer with a skip, between a table of tokens and its transpose.
template <class Context>
expression model(basic_tape<Context>& t, const std::vector<expression>& p) {
  auto tokens = random_indices({rows}, classes, "tokens");
  auto labels = random_indices({rows}, classes, "labels");
  auto hidden = t.embedding(p[0], tokens);
  auto normal = t.layer_norm(hidden, p[1], p[2]);
  auto up = t.gelu(t.add_bias(t.matmul(normal, p[3]), p[4]));
  auto down = t.dropout(t.matmul(up, p[5]), 0.25, random_key{3, "dropout"});
  auto out = t.multiply(t.add(hidden, t.scale(down, 0.5)), t.sigmoid(t.tanh(hidden)));
  auto logits = t.matmul(out, p[0], {.b = true});
  auto loss = t.softmax_cross_entropy(logits, labels);
  return t.add(loss, t.scale(t.mean(t.relu(t.reshape(out, {width, rows}))), 0.125));
}

struct outcome {
  tensor loss;
  std::vector<gradient> gradients;
};

template <class Context>
outcome run(basic_tape<Context>& tape, const std::vector<tensor>& values) {
  std::vector<expression> entered;
  for (const auto& value : values)
    entered.push_back(tape.parameter(value));
  auto loss = model(tape, entered);
  auto value = tape.value(loss);
  REQUIRE_MESSAGE(value, (value ? "" : value.error().message));
  auto gradients = tape.gradients(loss, entered);
  REQUIRE_MESSAGE(gradients, (gradients ? "" : gradients.error().message));
  return {*value, *gradients};
}

tensor on_gpu(const tensor& value) {
  auto there = cuda::to_device(gpu(), value);
  REQUIRE(there);
  return *there;
}

tensor fetched(const tensor& value) {
  auto here = cuda::to_host(gpu(), value);
  REQUIRE(here);
  return *here;
}

outcome run_on_gpu(const std::vector<tensor>& values) {
  std::vector<tensor> there;
  for (const auto& value : values)
    there.push_back(on_gpu(value));
  cuda_tape tape{{}, gpu()};
  return run(tape, there);
}

template <class T>
bool agree(const tensor& got, const tensor& expected, bound allowed) {
  auto here = fetched(got);
  return here.extents() == expected.extents()
         && first_not_close(here.values<T>(), expected.values<T>(), allowed)
              == expected.element_count();
}

} // namespace

TEST_SUITE("kernels/cuda/tape") {
  TEST_CASE_TEMPLATE("a model's loss and gradients are those of the reference", T, float, double) {
    auto values = parameters<T>();
    basic_tape<reference::context> tape;
    auto expected = run(tape, values);
    auto got = run_on_gpu(values);
    const bound allowed{roundings<T>(200), roundings<T>(200)};
    CHECK(agree<T>(got.loss, expected.loss, allowed));
    REQUIRE(got.gradients.size() == expected.gradients.size());
    for (size_t i = 0; i < got.gradients.size(); ++i) {
      CAPTURE(i);
      CHECK(agree<T>(std::get<tensor>(got.gradients[i]), std::get<tensor>(expected.gradients[i]),
                     allowed));
    }
  }

  TEST_CASE("the same model gives the same bits each time") {
    auto values = parameters<float>();
    auto first = run_on_gpu(values), second = run_on_gpu(values);
    for (size_t i = 0; i < first.gradients.size(); ++i) {
      auto a = fetched(std::get<tensor>(first.gradients[i]));
      auto b = fetched(std::get<tensor>(second.gradients[i]));
      CHECK(first_difference(a.mutable_values<float>(), b.mutable_values<float>())
            == a.element_count());
    }
  }

  TEST_CASE("a tape waits for nothing, so that a graph can be made of it, forward and back") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto weights = cuda::to_device(*on, random_tensor<float>({width, classes}, "weights"));
    auto inputs = cuda::to_device(*on, random_tensor<float>({rows, width}, "inputs"));
    REQUIRE(weights);
    REQUIRE(inputs);
    std::vector<gradient> gradients;
    auto differentiate = [&] {
      cuda_tape tape{{}, *on};
      auto w = tape.parameter(*weights);
      auto loss = tape.mean(tape.tanh(tape.matmul(tape.constant(*inputs), w)));
      auto found = tape.gradients(loss, {w});
      if (found) gradients = *std::move(found);
    };
    differentiate(); // so that cuBLAS is there
    REQUIRE(gradients.size() == 1);
    auto expected = cuda::to_host(*on, std::get<tensor>(gradients.front()));
    REQUIRE(expected);
    auto step = cuda::graph::capture(*on, differentiate);
    REQUIRE_MESSAGE(step, (step ? "" : step.error().message));
    REQUIRE(step->launch());
    auto got = cuda::to_host(*on, std::get<tensor>(gradients.front()));
    REQUIRE(got);
    CHECK(std::ranges::equal(got->values<float>(), expected->values<float>()));
  }

  TEST_CASE("a table that is only looked up gets a sparse gradient, its indices on the host") {
    auto table = random_tensor<float>({classes, width}, "table");
    auto tokens = random_indices({rows}, classes, "tokens");
    basic_tape<reference::context> plain;
    auto p = plain.parameter(table);
    auto expected = plain.gradients(plain.mean(plain.embedding(p, tokens)), {p});
    cuda_tape tape{{}, gpu()};
    auto q = tape.parameter(on_gpu(table));
    auto got = tape.gradients(tape.mean(tape.embedding(q, tokens)), {q});
    REQUIRE(expected);
    REQUIRE(got);
    const auto& wanted = std::get<indexed_slices>(expected->front());
    const auto& found = std::get<indexed_slices>(got->front());
    CHECK(std::ranges::equal(found.indices.values<int64_t>(), wanted.indices.values<int64_t>()));
    CHECK(agree<float>(found.values, wanted.values, {roundings<float>(4), 0}));
  }

  TEST_CASE("a tensor on the wrong side is refused, and the line says which side is right") {
    auto here = zeros({2, 2});
    cuda_tape tape{{}, gpu()};
    tape.parameter(here);
    auto refused = tape.value({0});
    REQUIRE(!refused);
    CHECK(refused.error().message.find("lies on cpu:0, and the tape computes on cuda:0")
          != std::string::npos);
    cuda_tape with_labels{{}, gpu()};
    auto logits = with_labels.parameter(on_gpu(here));
    with_labels.softmax_cross_entropy(logits, on_gpu(zeros({2}, dtype::i64)));
    CHECK(with_labels.value(logits).error().code == errc::invalid_argument);
    basic_tape<reference::context> plain;
    plain.constant(on_gpu(here));
    CHECK(plain.value({0}).error().message.find("the tape computes on cpu:0") != std::string::npos);
  }

  TEST_CASE("an index outside the table is refused before the device reads there") {
    cuda_tape tape{{}, gpu()};
    auto table = tape.parameter(on_gpu(zeros({2, 2})));
    auto beyond = zeros({1}, dtype::i64);
    beyond.mutable_values<int64_t>()[0] = 2;
    tape.embedding(table, beyond);
    CHECK(tape.value(table).error().message.find("2 at position 0") != std::string::npos);
  }

  TEST_CASE("a failure of the context is one of the tape") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, zeros({2}));
    REQUIRE(value);
    cuda_tape tape{{}, *on};
    auto entered = tape.parameter(*value);
    on->note(fail(errc::unavailable, "the device is lost"));
    tape.tanh(entered);
    CHECK(tape.value(entered).error().code == errc::unavailable);
  }
}
