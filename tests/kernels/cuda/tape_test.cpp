// SPDX-License-Identifier: Apache-2.0
// Goal: a model's loss and gradients on a GPU are those of the reference. Method: a small language
// model forward and backward on both tapes; refusals.
#include "kernels/cuda/graph.hpp"
#include "kernels/tape/cuda_tape.hpp"
#include "messages/mapped.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

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
  return {random_tensor<T>({classes, width}, "table"),
          random_tensor<T>({width}, "gain"),
          random_tensor<T>({width}, "shift"),
          random_tensor<T>({width, 2 * width}, "up"),
          random_tensor<T>({2 * width}, "up bias"),
          random_tensor<T>({2 * width, width}, "down"),
          random_tensor<T>({rows / 3, width}, "positions"),
          random_tensor<T>({width, 3 * width}, "packed"),
          random_tensor<T>({3, width}, "unused")};
}

/// The loss of attention and a layer with a skip, between a table of tokens and its transpose.
template <class Context>
expression model(basic_tape<Context>& t, const std::vector<expression>& p) {
  auto tokens = random_indices({rows}, classes, "tokens");
  auto labels = random_indices({rows}, classes, "labels");
  auto placed = t.add_bias(t.reshape(t.embedding(p[0], tokens), {3, rows / 3, width}), p[6]);
  auto likeness = t.mean(t.matmul(placed, t.tanh(placed), {.b = true}));
  auto packed = t.matmul(t.reshape(placed, {rows, width}), p[7]);
  auto attended = t.causal_self_attention(t.reshape(packed, {3, rows / 3, 3 * width}), 4);
  auto hidden = t.reshape(t.add(placed, attended), {rows, width});
  auto normal = t.rms_norm(t.layer_norm(hidden, p[1], p[2]), p[1]);
  auto up = t.gelu(t.linear(normal, p[3], p[4]));
  auto down = t.dropout(t.matmul(up, p[5]), 0.25, random_key{3, "dropout"});
  auto out = t.multiply(t.add(hidden, t.scale(down, 0.5)), t.sigmoid(t.tanh(hidden)));
  auto logits = t.matmul(out, p[0], {.b = true});
  auto loss = t.softmax_cross_entropy(logits, labels);
  auto halves = t.concatenate(t.slice(out, rows / 2, rows), t.slice(out, 0, rows / 2));
  auto entropy = t.mean(t.log(t.row_sums(t.exp(t.transpose(halves)))));
  loss = t.add(t.add(loss, likeness), t.scale(entropy, 0.25));
  return t.add(loss, t.scale(t.mean(t.relu(t.reshape(out, {width, rows}))), 0.125));
}

struct outcome {
  tensor loss;
  std::vector<gradient> gradients;
};

template <class Context>
outcome run(basic_tape<Context>& tape, const std::vector<tensor>& values, bool recomputed = false) {
  auto entered = mapped(values, [&](const auto& value) { return tape.parameter(value); });
  auto part = [&] { return model(tape, entered); };
  auto loss = recomputed ? tape.recompute(part) : part();
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

outcome run_on_gpu(const std::vector<tensor>& values,
                   product_precision precision = product_precision::full, bool recomputed = false) {
  auto there = mapped(values, on_gpu);
  cuda_tape tape{{}, gpu(), precision};
  return run(tape, there, recomputed);
}

template <class T>
bool agree(const tensor& got, const tensor& expected, bound allowed) {
  auto here = fetched(got);
  return here.extents() == expected.extents()
         && first_not_close(here.values<T>(), expected.values<T>(), allowed)
              == expected.element_count();
}

template <class T>
void check_agree(const outcome& got, const outcome& expected, bound allowed) {
  CHECK(agree<T>(got.loss, expected.loss, allowed));
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    CAPTURE(i);
    CHECK(agree<T>(std::get<tensor>(got.gradients[i]), std::get<tensor>(expected.gradients[i]),
                   allowed));
  }
}

} // namespace

TEST_SUITE("kernels/tape/cuda_tape") {
  TEST_CASE_TEMPLATE("a model's loss and gradients are those of the reference", T, float, double) {
    auto values = parameters<T>();
    basic_tape<reference::context> tape;
    auto expected = run(tape, values);
    check_agree<T>(run_on_gpu(values), expected, {roundings<T>(200), roundings<T>(200)});
  }

  // A number that lies between two operands of 16 bits may go to the other one.
  TEST_CASE("gradients in less precision agree, up to some operands that are rounded otherwise") {
    auto values = parameters<float>();
    constexpr std::pair<product_precision, double> precisions[]
      = {{product_precision::tf32, 0x1p-9},
         {product_precision::bf16, 0x1p-7},
         {product_precision::f16, 0x1p-9}};
    for (auto [precision, allowed] : precisions) {
      CAPTURE(to_string(precision));
      basic_tape<reference::context> tape{{}, {}, precision};
      auto expected = run(tape, values);
      check_agree<float>(run_on_gpu(values, precision), expected, {allowed, allowed});
    }
  }

  TEST_CASE("the same model gives the same bits each time, and when it is computed again") {
    auto values = parameters<float>();
    for (auto precision : {product_precision::full, product_precision::bf16}) {
      auto first = run_on_gpu(values, precision);
      for (const auto& other : {run_on_gpu(values, precision), run_on_gpu(values, precision, true)})
        for (size_t i = 0; i < first.gradients.size(); ++i) {
          CAPTURE(i);
          auto a = fetched(std::get<tensor>(first.gradients[i]));
          auto b = fetched(std::get<tensor>(other.gradients[i]));
          CHECK(first_difference(a.mutable_values<float>(), b.mutable_values<float>())
                == a.element_count());
        }
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

  TEST_CASE("a graph takes indices, labels and keys that are placed, and new ones when launched") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto table = random_tensor<float>({classes, classes}, "table");
    auto there = cuda::to_device(*on, table);
    REQUIRE(there);
    auto tokens
      = [](int turn) { return random_indices({rows}, classes, "tokens " + std::to_string(turn)); };
    auto key_tensor = [](int turn) {
      tensor result{dtype::i64, {cuda_tape::key_elements}};
      random_key key{static_cast<uint64_t>(turn), "dropout"};
      std::memcpy(result.mutable_data(), &key, sizeof key);
      return result;
    };
    auto placed = cuda::to_device(*on, tokens(0)), key = cuda::to_device(*on, key_tensor(0));
    REQUIRE(placed);
    REQUIRE(key);
    std::vector<uncombined_gradient> found;
    auto differentiate = [&](cuda_tape& tape, const tensor& indices, const random_key& keyed,
                             const tensor& placed_indices, const tensor& placed_key) {
      auto p = tape.parameter(*there);
      auto looked_up
        = tape.dropout(tape.embedding(p, indices, placed_indices), 0.5, keyed, placed_key);
      auto loss = tape.softmax_cross_entropy(looked_up, indices, placed_indices);
      return tape.uncombined_gradients(loss, std::array{p});
    };
    auto graph = cuda::graph::capture(*on, [&] {
      cuda_tape tape{{}, *on};
      auto got = differentiate(tape, tokens(0), {0, "dropout"}, *placed, *key);
      REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
      found = *std::move(got);
    });
    REQUIRE_MESSAGE(graph, (graph ? "" : graph.error().message));
    for (int turn = 0; turn < 3; ++turn) {
      auto indices = tokens(turn), words = key_tensor(turn);
      REQUIRE(on->stream().copy(indices.data(), placed->mutable_data(), indices.bytes()));
      REQUIRE(on->stream().copy(words.data(), key->mutable_data(), words.bytes()));
      REQUIRE(graph->launch());
      const auto& lookups = std::get<std::vector<indexed_slices>>(found.front());
      REQUIRE(lookups.size() == 1);
      auto values = cuda::to_host(*on, lookups.front().values);
      cuda_tape tape{{}, *on};
      auto eager = differentiate(tape, indices, {static_cast<uint64_t>(turn), "dropout"}, {}, {});
      REQUIRE(eager);
      const auto& expected = std::get<std::vector<indexed_slices>>(eager->front()).front();
      CHECK(std::ranges::equal(values->values<float>(),
                               cuda::to_host(*on, expected.values)->values<float>()));
      // Combined, they are what `gradients` returns.
      auto combined = std::get<indexed_slices>(tape.combined(eager->front()));
      CHECK(std::ranges::is_sorted(combined.indices.values<int64_t>()));
      CHECK(combined.values.extents()[0] == combined.indices.extents()[0]);
    }
  }

  TEST_CASE("a placed tensor that lies elsewhere, or has another size, is refused") {
    auto table = on_gpu(zeros({2, 2}));
    auto indices = zeros({3}, dtype::i64);
    for (const auto& placed : {indices, on_gpu(zeros({2}, dtype::i64)), on_gpu(zeros({3}))}) {
      cuda_tape tape{{}, gpu()};
      auto looked_up = tape.embedding(tape.parameter(table), indices, placed);
      auto refused = tape.value(looked_up);
      REQUIRE(!refused);
      CHECK(refused.error().code == errc::invalid_argument);
      CHECK(refused.error().message.find("embedding: what is placed is 3 i64 on gpu:0, not")
            != std::string::npos);
    }
    cuda_tape tape{{}, gpu()};
    tape.dropout(tape.parameter(table), 0.5, {1, "mask"}, indices);
    CHECK(tape.value({0}).error().message.find("dropout: what is placed") != std::string::npos);
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

  TEST_CASE("a batch without rows has a loss of 0, which no parameter changes") {
    cuda_tape tape{{}, gpu()};
    auto weights = tape.parameter(on_gpu(random_tensor<float>({2, 3}, "weights")));
    auto bias = tape.parameter(on_gpu(random_tensor<float>({3}, "bias")));
    auto logits = tape.linear(tape.constant(on_gpu(zeros({0, 2}))), weights, bias);
    auto loss = tape.softmax_cross_entropy(logits, zeros({0}, dtype::i64));
    auto value = tape.value(loss);
    REQUIRE_MESSAGE(value, (value ? "" : value.error().message));
    auto gradients = tape.gradients(loss, {weights, bias});
    REQUIRE(gradients);
    CHECK(fetched(*value).values<float>()[0] == 0);
    for (const auto& of_one : *gradients) {
      auto here = fetched(std::get<tensor>(of_one));
      CHECK(std::ranges::all_of(here.values<float>(), [](float element) { return element == 0; }));
    }
  }

  TEST_CASE("a tensor on the wrong side is refused, and the line says which side is right") {
    auto here = zeros({2, 2});
    cuda_tape tape{{}, gpu()};
    tape.parameter(here);
    auto refused = tape.value({0});
    REQUIRE(!refused);
    CHECK(refused.error().message.find("lies on cpu:0, and the tape computes on gpu:0")
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
