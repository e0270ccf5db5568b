// SPDX-License-Identifier: Apache-2.0
// Goal: every derivative is the derivative, and whatever does not fit is refused by name.
// Method: central finite differences in f64 over odd shapes, on both twins; refusals one by one.
#include "kernels/tape/tape.hpp"
#include "kernels/tape/tape_checks.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/tape/drawn.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace tape_test {

using namespace troupe;

namespace {

tensor random_tensor(shape extents, std::string_view name) {
  return test::drawn<double>(std::move(extents), name);
}

tensor integers(shape extents, std::initializer_list<int64_t> values) {
  tensor result(dtype::i64, std::move(extents));
  std::copy(values.begin(), values.end(), result.mutable_values<int64_t>().begin());
  return result;
}

/// Writes a computation on a tape, given its parameters.
template <class Context>
using model = std::function<expression(basic_tape<Context>&, const std::vector<expression>&)>;

template <class Context>
std::vector<expression> enter(basic_tape<Context>& tape, const std::vector<tensor>& values) {
  return mapped(values, [&](const auto& value) { return tape.parameter(value); });
}

/// The value of a model with a single result, which must succeed.
template <class Context>
double loss_of(const model<Context>& build, const std::vector<tensor>& values) {
  basic_tape<Context> tape;
  auto result = tape.value(build(tape, enter(tape, values)));
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
  return result->template values<double>()[0];
}

/// The gradient as a dense f64 tensor.
tensor dense(const gradient& given) {
  if (const auto* whole = std::get_if<tensor>(&given)) return *whole;
  const auto& rows = std::get<indexed_slices>(given);
  auto result = zeros(rows.dense_extents, dtype::f64);
  auto columns = static_cast<size_t>(rows.dense_extents[1]);
  auto indices = rows.indices.values<int64_t>();
  for (size_t i = 0; i < indices.size() * columns; ++i)
    result
      .mutable_values<double>()[static_cast<size_t>(indices[i / columns]) * columns + i % columns]
      += rows.values.values<double>()[i];
  return result;
}

/// Compares every element of every gradient with (f(x + h) - f(x - h)) / 2h. The step 1e-5 leaves
/// an error of h^2 times the third derivative (some 1e-10 times less than 100) and of rounding over
/// h (2^-53 / 1e-5 = 1e-11 times the loss), so 1e-7 is far from both and from any wrong derivative.
template <class Context>
void check_on(const model<Context>& build, std::vector<tensor> values) {
  basic_tape<Context> tape;
  auto parameters = enter(tape, values);
  auto loss = build(tape, parameters);
  auto gradients = tape.gradients(loss, parameters);
  REQUIRE_MESSAGE(gradients.has_value(), (gradients ? "" : gradients.error().message));
  REQUIRE(gradients->size() == values.size());
  std::vector<std::vector<gradient>> told(values.size());
  REQUIRE(tape.gradients(loss, parameters,
                         [&](size_t which, const gradient& of) { told[which].push_back(of); }));
  for (size_t which = 0; which < values.size(); ++which) {
    CAPTURE(which);
    auto got = dense((*gradients)[which]);
    REQUIRE(got.extents() == values[which].extents());
    REQUIRE(told[which].size() == 1);
    CHECK(std::ranges::equal(dense(told[which][0]).template values<double>(),
                             got.template values<double>()));
    auto original = values[which];
    for (size_t i = 0; i < original.element_count(); ++i) {
      constexpr double step = 1e-5;
      double sides[2];
      for (int side : {0, 1}) {
        values[which] = original.clone();
        values[which].mutable_values<double>()[i] += side == 0 ? -step : step;
        sides[side] = loss_of(build, values);
      }
      double wanted = (sides[1] - sides[0]) / (2 * step);
      CHECK(std::abs(got.template values<double>()[i] - wanted) <= 1e-7 * (1 + std::abs(wanted)));
    }
    values[which] = original;
  }
}

/// Checks a model, written as a generic lambda, on both twins.
template <class Build>
void check_gradients(Build build, const std::vector<tensor>& values) {
  check_on<reference::context>(build, values);
  check_on<cpu::context>(build, values);
}

/// Turns any expression into a single number in which no element counts like another.
template <class Tape>
expression weigh(Tape& tape, expression value, shape extents) {
  return tape.mean(tape.multiply(value, tape.constant(random_tensor(std::move(extents), "weigh"))));
}

/// The message that a tape refuses something with.
std::string refusal(const std::function<expression(tape&)>& build, errc code) {
  tape t;
  auto value = t.value(build(t));
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().code == code);
  return value.error().message;
}

} // namespace

TEST_SUITE("kernels/tape/tape: derivatives") {
  TEST_CASE("matmul is differentiated in all transpositions") {
    for (auto [rows, inner, columns] : {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 2}, {4, 1, 7}})
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          CAPTURE(ta);
          CAPTURE(tb);
          auto a = random_tensor(ta ? shape{inner, rows} : shape{rows, inner}, "a");
          auto b = random_tensor(tb ? shape{columns, inner} : shape{inner, columns}, "b");
          shape extents{rows, columns};
          check_gradients(
            [&](auto& t, const auto& p) {
              return weigh(t, t.matmul(p[0], p[1], {.a = ta, .b = tb}), extents);
            },
            {a, b});
        }
  }

  TEST_CASE(
    "matmul of a batch is differentiated in all transpositions, also of an operand with itself") {
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        CAPTURE(ta);
        CAPTURE(tb);
        auto a = random_tensor(ta ? shape{2, 5, 3} : shape{2, 3, 5}, "a");
        auto b = random_tensor(tb ? shape{2, 4, 5} : shape{2, 5, 4}, "b");
        check_gradients(
          [&](auto& t, const auto& p) {
            auto product = t.matmul(p[0], p[1], {.a = ta, .b = tb});
            auto square = t.matmul(product, product, {.b = true});
            return t.add(weigh(t, product, {2, 3, 4}), weigh(t, square, {2, 3, 3}));
          },
          {a, b});
      }
  }

  TEST_CASE("a matrix times itself, transposed, gets both contributions") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.matmul(p[0], p[0], {.b = true}), {3, 3});
      },
      {random_tensor({3, 5}, "a")});
  }

  TEST_CASE("linear is differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.linear(p[0], p[1], p[2]), {3, 4});
      },
      {random_tensor({3, 5}, "x"), random_tensor({5, 4}, "w"), random_tensor({4}, "b")});
  }

  TEST_CASE("add_bias is differentiated over two and over three extents") {
    for (const auto& extents : {shape{3, 5}, shape{2, 3, 4}})
      check_gradients(
        [&](auto& t, const auto& p) { return weigh(t, t.add_bias(p[0], p[1]), extents); },
        {random_tensor(extents, "x"), random_tensor({extents[extents.rank() - 1]}, "b")});
  }

  TEST_CASE("exp and log are differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.log(t.add(t.exp(p[0]), t.multiply(p[0], p[0]))), {5, 7});
      },
      {random_tensor({5, 7}, "x")});
  }

  TEST_CASE("transpose is differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.transpose(p[0]), {4, 3});
      },
      {random_tensor({3, 4}, "x")});
  }

  TEST_CASE("slice and concatenate are differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        auto turned = t.concatenate(t.slice(p[0], 2, 4), t.slice(p[0], 0, 3));
        return weigh(t, t.multiply(t.concatenate(turned, p[1]), t.concatenate(p[1], turned)),
                     {6, 3, 2});
      },
      {random_tensor({4, 3, 2}, "a"), random_tensor({1, 3, 2}, "b")});
  }

  TEST_CASE("row_sums is differentiated over one extent and over three") {
    for (const auto& extents : {shape{5}, shape{2, 3, 4}}) {
      auto rows = extents.dims();
      rows.pop_back();
      check_gradients(
        [&](auto& t, const auto& p) { return weigh(t, t.row_sums(p[0]), shape{rows}); },
        {random_tensor(extents, "x")});
    }
  }

  TEST_CASE("a loss of the user's own, of exponentials and row sums, is differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        auto powers = t.exp(p[0]);
        auto sums = t.row_sums(powers);
        return t.mean(t.add(t.log(sums), t.scale(t.row_sums(t.multiply(powers, p[0])), -0.1)));
      },
      {random_tensor({3, 4}, "logits")});
  }

  TEST_CASE("rms_norm is differentiated") {
    for (const auto& extents : {shape{1, 2}, shape{4, 7}, shape{2, 3, 5}})
      check_gradients(
        [&](auto& t, const auto& p) { return weigh(t, t.rms_norm(p[0], p[1], 0.1), extents); },
        {random_tensor(extents, "x"), random_tensor({extents[extents.rank() - 1]}, "gain")});
  }

  TEST_CASE("add_bias with a table of positions for all sequences is differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.add_bias(p[0], p[1]), {2, 3, 4});
      },
      {random_tensor({2, 3, 4}, "x"), random_tensor({3, 4}, "positions")});
  }

  TEST_CASE("causal_self_attention is differentiated") {
    for (auto [batch, context, heads, width] :
         {std::array<int64_t, 4>{1, 1, 1, 1}, {2, 3, 2, 4}, {1, 5, 3, 3}})
      check_gradients(
        [&](auto& t, const auto& p) {
          return weigh(t, t.causal_self_attention(p[0], heads), {batch, context, width});
        },
        {random_tensor({batch, context, 3 * width}, "packed")});
  }

  TEST_CASE("conv2d is differentiated with strides and padding") {
    for (auto [stride, padding] :
         {std::array<int64_t, 2>{1, 0}, {1, 1}, {2, 1}, {3, 0}, {INT32_MAX, 1}})
      check_gradients(
        [&](auto& t, const auto& p) {
          const shape outputs{2, (4 + 2 * padding - 3) / stride + 1,
                              (5 + 2 * padding - 2) / stride + 1, 3};
          return weigh(t, t.conv2d(p[0], p[1], {stride, padding}), outputs);
        },
        {random_tensor({2, 4, 5, 2}, "images"), random_tensor({3, 2, 2, 3}, "weights")});
  }

  TEST_CASE("max_pool2d is differentiated with windows apart and overlapping") {
    for (auto [stride, padding] : {std::array<int64_t, 2>{1, 0}, {1, 1}, {2, 0}, {INT32_MAX, 1}})
      check_gradients(
        [&](auto& t, const auto& p) {
          const shape outputs{2, (4 + 2 * padding - 2) / stride + 1,
                              (6 + 2 * padding - 2) / stride + 1, 3};
          return weigh(t, t.max_pool2d(p[0], 2, {stride, padding}), outputs);
        },
        {random_tensor({2, 4, 6, 3}, "images")});
  }

  TEST_CASE("a convolutional network with biases is differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        auto hidden = t.tanh(t.add_bias(t.conv2d(p[0], p[1], {.padding = 1}), p[2]));
        auto pooled = t.max_pool2d(hidden, 2, {.stride = 2});
        auto logits = t.matmul(t.reshape(pooled, {3, 2 * 2 * 2}), p[3]);
        return t.softmax_cross_entropy(logits, integers({3}, {1, 0, 1}));
      },
      {random_tensor({3, 4, 4, 1}, "images"), random_tensor({3, 3, 1, 2}, "weights"),
       random_tensor({2}, "bias"), random_tensor({8, 2}, "output")});
  }

  TEST_CASE("a layer of a transformer, with one table for inputs and outputs, is differentiated") {
    auto bytes = integers({2, 3}, {4, 0, 4, 1, 4, 0});
    auto next = integers({6}, {0, 4, 1, 4, 0, 2});
    check_gradients(
      [&](auto& t, const auto& p) {
        auto h = t.add_bias(t.embedding(p[0], bytes), p[1]);
        auto rows = t.reshape(h, {6, 4});
        auto packed = t.matmul(t.layer_norm(rows, p[2], p[3]), p[4]);
        auto heads = t.causal_self_attention(t.reshape(packed, {2, 3, 12}), 2);
        rows = t.add(rows, t.reshape(heads, {6, 4}));
        return t.softmax_cross_entropy(t.matmul(rows, p[0], {.b = true}), next);
      },
      {random_tensor({5, 4}, "table"), random_tensor({3, 4}, "positions"),
       random_tensor({4}, "gain"), random_tensor({4}, "bias"), random_tensor({4, 12}, "packed")});
  }

  TEST_CASE("add, multiply and scale are differentiated") {
    check_gradients(
      [](auto& t, const auto& p) {
        auto sum = t.add(p[0], t.scale(p[1], -2.5));
        return weigh(t, t.multiply(sum, t.multiply(p[0], p[0])), {7, 3});
      },
      {random_tensor({7, 3}, "a"), random_tensor({7, 3}, "b")});
  }

  TEST_CASE("the activations are differentiated") {
    for (auto kind : {activation::tanh, activation::relu, activation::sigmoid, activation::gelu}) {
      CAPTURE(to_string(kind));
      check_gradients(
        [&](auto& t, const auto& p) {
          return weigh(t, t.activate(kind, p[0]), {5, 7});
        },
        {random_tensor({5, 7}, "x")});
    }
  }

  TEST_CASE("layer_norm is differentiated") {
    for (const auto& extents : {shape{1, 2}, shape{4, 7}, shape{2, 3, 5}}) {
      auto columns = extents[extents.rank() - 1];
      check_gradients(
        [&](auto& t, const auto& p) {
          return weigh(t, t.layer_norm(p[0], p[1], p[2], 0.1), extents);
        },
        {random_tensor(extents, "x"), random_tensor({columns}, "gain"),
         random_tensor({columns}, "bias")});
    }
  }

  TEST_CASE("dropout has the same mask on the way back") {
    check_gradients(
      [](auto& t, const auto& p) {
        return weigh(t, t.dropout(p[0], 0.4, random_key{1, "mask"}), {9, 5});
      },
      {random_tensor({9, 5}, "x")});
  }

  TEST_CASE("softmax_cross_entropy is differentiated") {
    for (auto [rows, classes] : {std::array<int64_t, 2>{1, 1}, {1, 3}, {5, 7}}) {
      tensor labels(dtype::i64, {rows});
      for (int64_t i = 0; i < rows; ++i)
        labels.mutable_values<int64_t>()[static_cast<size_t>(i)] = (i * 3 + 1) % classes;
      check_gradients([&](auto& t, const auto& p) { return t.softmax_cross_entropy(p[0], labels); },
                      {random_tensor({rows, classes}, "logits")});
    }
  }

  TEST_CASE("a batch without rows has a loss of 0, which no parameter changes") {
    tape t;
    auto weights = t.parameter(random_tensor({2, 3}, "weights"));
    auto bias = t.parameter(random_tensor({3}, "bias"));
    auto logits = t.linear(t.constant(zeros({0, 2}, dtype::f64)), weights, bias);
    auto loss = t.softmax_cross_entropy(logits, zeros({0}, dtype::i64));
    auto value = t.value(loss);
    REQUIRE_MESSAGE(value, (value ? "" : value.error().message));
    CHECK(value->values<double>()[0] == 0);
    auto gradients = t.gradients(loss, {weights, bias});
    REQUIRE(gradients);
    for (const auto& of_one : *gradients)
      for (auto element : std::get<tensor>(of_one).values<double>())
        CHECK(element == 0);
  }

  TEST_CASE("embedding and reshape are differentiated with repeated indices") {
    auto indices = integers({2, 3}, {4, 0, 4, 1, 4, 0});
    check_gradients(
      [&](auto& t, const auto& p) {
        return weigh(t, t.reshape(t.embedding(p[0], indices), {2, 15}), {2, 15});
      },
      {random_tensor({6, 5}, "table")});
  }

  TEST_CASE("a table that is looked up, computed with, and looked up again is differentiated") {
    auto indices = integers({3}, {1, 3, 1});
    check_gradients(
      [&](auto& t, const auto& p) {
        auto h = t.tanh(t.embedding(p[0], indices));
        auto from_computed = t.embedding(t.scale(p[0], 2), indices);
        return t.softmax_cross_entropy(t.matmul(t.add(h, from_computed), p[0], {.b = true}),
                                       indices);
      },
      {random_tensor({4, 5}, "table")});
  }

  TEST_CASE("a small network of everything is differentiated, also by its inputs") {
    auto labels = integers({4}, {0, 2, 1, 2});
    check_gradients(
      [&](auto& t, const auto& p) {
        auto h = t.gelu(t.layer_norm(t.matmul(p[0], p[1]), p[2], p[3]));
        h = t.add(h, t.dropout(t.sigmoid(h), 0.5, random_key{2, "mask"}));
        auto loss = t.softmax_cross_entropy(t.add_bias(t.matmul(h, p[4]), p[5]), labels);
        return t.add(loss, t.scale(t.mean(t.multiply(p[1], p[1])), 0.1));
      },
      {random_tensor({4, 3}, "x"), random_tensor({3, 5}, "w1"), random_tensor({5}, "gain"),
       random_tensor({5}, "bias"), random_tensor({5, 3}, "w2"), random_tensor({3}, "b2")});
  }
}

TEST_SUITE("kernels/tape/tape") {
  TEST_CASE("linear has the bits of a product and a bias, forward and back") {
    const std::vector<tensor> values{test::drawn<float>({33, 70}, "x"),
                                     test::drawn<float>({70, 50}, "w"),
                                     test::drawn<float>({50}, "b")};
    auto bits_of = [&values](auto layer) {
      tape t;
      auto parameters = enter(t, values);
      auto output = layer(t, parameters);
      auto gradients = t.gradients(t.mean(t.tanh(output)), parameters);
      REQUIRE(gradients);
      std::vector<float> bits;
      auto append = [&bits](const tensor& part) {
        auto numbers = part.values<float>();
        bits.insert(bits.end(), numbers.begin(), numbers.end());
      };
      append(t.value(output).value());
      for (const auto& one : *gradients)
        append(std::get<tensor>(one));
      return bits;
    };
    auto apart = [](tape& t, const auto& p) { return t.add_bias(t.matmul(p[0], p[1]), p[2]); };
    auto at_once = [](tape& t, const auto& p) { return t.linear(p[0], p[1], p[2]); };
    CHECK(bits_of(at_once) == bits_of(apart));
  }

  TEST_CASE("an embedding's gradient is the rows that were looked up, each once") {
    tape t;
    auto table = t.parameter(random_tensor({100, 3}, "table"));
    auto gradients
      = t.gradients(t.mean(t.embedding(table, integers({4}, {99, 7, 99, 3}))), {table});
    REQUIRE(gradients.has_value());
    const auto& rows = std::get<indexed_slices>(gradients->front());
    auto indices = rows.indices.values<int64_t>();
    CHECK(std::vector<int64_t>(indices.begin(), indices.end()) == std::vector<int64_t>{3, 7, 99});
    CHECK(rows.values.extents() == shape{3, 3});
    CHECK(rows.dense_extents == shape{100, 3});
    CHECK(rows.values.values<double>()[5] == doctest::Approx(1.0 / 12));
    CHECK(rows.values.values<double>()[6] == doctest::Approx(2.0 / 12));
  }

  TEST_CASE("two lookups in one table give the rows of both, added up") {
    tape t;
    auto table = t.parameter(random_tensor({100, 3}, "table"));
    auto a = t.embedding(table, integers({2}, {7, 99}));
    auto b = t.embedding(table, integers({3}, {1, 2, 7}));
    auto gradients = t.gradients(t.add(t.mean(a), t.mean(b)), {table});
    REQUIRE(gradients.has_value());
    const auto& rows = std::get<indexed_slices>(gradients->front());
    CHECK(rows.indices.element_count() == 4);
    auto sum = dense(rows);
    CHECK(sum.values<double>()[7 * 3] == doctest::Approx(1.0 / 6 + 1.0 / 9));
    CHECK(sum.values<double>()[99 * 3] == doctest::Approx(1.0 / 6));
    CHECK(sum.values<double>()[0] == 0);
  }

  TEST_CASE("a lookup of nothing has a gradient of no rows") {
    tape t;
    auto table = t.parameter(random_tensor({5, 3}, "table"));
    auto other = t.parameter(random_tensor({2}, "other"));
    auto nothing = t.reshape(t.embedding(table, zeros({0}, dtype::i64)), {0});
    auto loss = t.mean(t.add_bias(
      t.reshape(t.matmul(t.reshape(nothing, {1, 0}), t.constant(zeros({0, 2}, dtype::f64))), {2}),
      other));
    auto gradients = t.gradients(loss, {table});
    REQUIRE(gradients.has_value());
    CHECK(std::get<indexed_slices>(gradients->front()).indices.element_count() == 0);
  }

  TEST_CASE("a parameter that is listed twice has the same gradient twice") {
    tape t;
    auto table = t.parameter(random_tensor({5, 3}, "table"));
    auto bias = t.parameter(random_tensor({3}, "bias"));
    auto loss = t.mean(t.add_bias(t.embedding(table, integers({2}, {1, 3})), bias));
    auto gradients = t.gradients(loss, {table, bias, table, bias});
    REQUIRE(gradients.has_value());
    for (size_t i : {0, 1}) {
      auto first = dense((*gradients)[i]), second = dense((*gradients)[i + 2]);
      CHECK(std::ranges::equal(first.values<double>(), second.values<double>()));
    }
    CHECK(std::get<indexed_slices>((*gradients)[2]).indices.element_count() == 2);
  }

  TEST_CASE("a table without columns has a gradient without numbers") {
    tape t;
    auto table = t.parameter(zeros({5, 0}, dtype::f64));
    auto other = t.parameter(random_tensor({2}, "other"));
    auto nothing
      = t.matmul(t.embedding(table, integers({2}, {1, 3})), t.constant(zeros({0, 2}, dtype::f64)));
    auto gradients = t.gradients(t.mean(t.add_bias(nothing, other)), {table});
    REQUIRE(gradients.has_value());
    CHECK(std::get<indexed_slices>(gradients->front()).values.extents() == shape{2, 0});
  }

  TEST_CASE("a parameter that the loss does not depend on has a gradient of zeros") {
    tape t;
    auto used = t.parameter(random_tensor({3}, "used"));
    auto unused = t.parameter(random_tensor({2, 2}, "unused"));
    auto gradients = t.gradients(t.mean(used), {unused, used});
    REQUIRE(gradients.has_value());
    for (double value : std::get<tensor>((*gradients)[0]).values<double>())
      CHECK(value == 0);
    CHECK(std::get<tensor>((*gradients)[1]).values<double>()[2] == doctest::Approx(1.0 / 3));
  }

  TEST_CASE("a gradient is reported as soon as it is final, that of the last layer first") {
    std::stop_source stop;
    tape t{stop.get_token()};
    std::vector<expression> layers;
    for (const auto* name : {"first", "second", "unused", "third"})
      layers.push_back(t.parameter(random_tensor({2, 2}, name)));
    auto loss = t.parameter(random_tensor({2, 2}, "input"));
    for (size_t layer : {0, 1, 3})
      loss = t.tanh(t.matmul(loss, layers[layer]));
    loss = t.mean(loss);
    static_cast<void>(t.mean(layers[2])); // after the loss
    std::vector<size_t> told;
    REQUIRE(
      t.gradients(loss, layers, [&](size_t which, const gradient&) { told.push_back(which); }));
    CHECK(told == std::vector<size_t>{2, 3, 1, 0});
    told.clear();
    auto stopped = t.gradients(loss, layers, [&](size_t which, const gradient&) {
      told.push_back(which);
      if (which == 3) stop.request_stop();
    });
    CHECK(stopped.error().code == errc::cancelled);
    CHECK(told == std::vector<size_t>{2, 3});
  }

  TEST_CASE("a function that gets a gradient may ask for others, or throw") {
    tape t;
    auto x = t.parameter(random_tensor({3}, "x")), y = t.parameter(random_tensor({3}, "y"));
    auto loss = t.mean(t.multiply(t.tanh(t.scale(x, 0.5)), y));
    auto other = t.mean(t.multiply(x, x));
    const std::vector<expression> parameters{x, y};
    auto wanted = t.gradients(loss, parameters), of_other = t.gradients(other, parameters);
    REQUIRE(wanted.has_value());
    REQUIRE(of_other.has_value());
    auto same = [](const gradient& a, const gradient& b) {
      return std::ranges::equal(dense(a).values<double>(), dense(b).values<double>());
    };
    size_t told = 0;
    REQUIRE(t.gradients(loss, parameters, [&](size_t which, const gradient& of) {
      CHECK(same(of, (*wanted)[which]));
      auto within = t.gradients(other, parameters);
      REQUIRE(within.has_value());
      CHECK(same((*within)[0], (*of_other)[0]));
      ++told;
    }));
    CHECK(told == 2);
    auto throwing = [](size_t, const gradient&) { throw std::runtime_error{"enough"}; };
    CHECK_THROWS_WITH((void)t.gradients(loss, parameters, throwing), "enough");
    auto again = t.gradients(loss, parameters);
    REQUIRE(again.has_value());
    CHECK(same((*again)[0], (*wanted)[0]));
    CHECK(same((*again)[1], (*wanted)[1]));
  }

  TEST_CASE("a loss of constants has gradients of zeros, a parameter as its own loss has one") {
    tape t;
    auto x = t.parameter(random_tensor({1}, "x"));
    auto of_constant = t.gradients(t.mean(t.constant(random_tensor({3}, "c"))), {x});
    REQUIRE(of_constant.has_value());
    CHECK(std::get<tensor>(of_constant->front()).values<double>()[0] == 0);
    auto of_itself = t.gradients(x, {x, x});
    REQUIRE(of_itself.has_value());
    CHECK(std::get<tensor>((*of_itself)[1]).values<double>()[0] == 1);
  }

  TEST_CASE("several losses can be differentiated on one tape") {
    tape t;
    auto x = t.parameter(random_tensor({4, 5}, "x"));
    auto y = t.tanh(t.add(x, x));
    auto first = t.gradients(t.mean(y), {x});
    auto other = t.gradients(t.scale(t.mean(y), 2), {x});
    auto again = t.gradients(t.mean(y), {x});
    REQUIRE(first.has_value());
    REQUIRE(other.has_value());
    REQUIRE(again.has_value());
    for (size_t i = 0; i < 20; ++i) {
      auto value = std::get<tensor>(first->front()).values<double>()[i];
      CHECK(std::get<tensor>(again->front()).values<double>()[i] == value);
      CHECK(std::get<tensor>(other->front()).values<double>()[i] == doctest::Approx(2 * value));
    }
  }

  TEST_CASE("parameters and constants are left as they were, even if they are read-only") {
    const float given[] = {1, -2, 3, -4, 5, -6};
    auto x = tensor::wrap_read_only(given, dtype::f32, {2, 3}, nullptr);
    tape t;
    auto p = t.parameter(x);
    auto loss = t.mean(t.relu(t.scale(t.reshape(p, {3, 2}), -1)));
    auto gradients = t.gradients(loss, {p});
    REQUIRE(gradients.has_value());
    auto value = std::get<tensor>(gradients->front()).values<float>();
    CHECK(value[0] == 0);
    CHECK(value[1] == doctest::Approx(-1.0 / 6));
    CHECK(t.value(loss)->values<float>()[0] == 2);
  }

  TEST_CASE("a view that is not contiguous may be a parameter") {
    tape t;
    auto x = random_tensor({2, 3}, "x");
    auto p = t.parameter(x.transpose());
    auto gradients
      = t.gradients(t.mean(t.multiply(p, t.constant(random_tensor({3, 2}, "c")))), {p});
    REQUIRE(gradients.has_value());
    CHECK(std::get<tensor>(gradients->front()).extents() == shape{3, 2});
  }

  TEST_CASE("both twins compute the same f32 network") {
    auto run = [](auto&& t) {
      tensor x(dtype::f32, {33, 17}), w(dtype::f32, {17, 9});
      random_stream stream{random_key{1, "f32"}};
      for (auto* values : {&x, &w})
        for (auto& value : values->template mutable_values<float>())
          value = static_cast<float>(stream.normal());
      auto p = t.parameter(w);
      tensor labels = zeros({33}, dtype::i64);
      auto loss = t.softmax_cross_entropy(t.tanh(t.matmul(t.constant(x), p)), labels);
      auto gradients = t.gradients(loss, {p});
      REQUIRE(gradients.has_value());
      return std::get<tensor>(gradients->front());
    };
    auto a = run(basic_tape<reference::context>{});
    auto b = run(tape{});
    for (size_t i = 0; i < a.element_count(); ++i)
      CHECK(std::abs(a.values<float>()[i] - b.values<float>()[i]) < 1e-6F);
  }

  TEST_CASE("a stop request ends the work before the next operation, forward and backward") {
    std::stop_source source;
    tape t{source.get_token()};
    auto x = t.parameter(random_tensor({2, 2}, "x"));
    auto loss = t.mean(t.tanh(x));
    CHECK(t.gradients(loss, {x}).has_value());
    source.request_stop();
    auto gradients = t.gradients(loss, {x});
    REQUIRE_FALSE(gradients.has_value());
    CHECK(gradients.error().code == errc::cancelled);
    CHECK(t.tanh(x).index == expression::none);
    CHECK(t.value(loss).error().code == errc::cancelled);
  }
}

TEST_SUITE("kernels/tape/tape: refusals") {
  TEST_CASE("operands that do not fit are refused by name and shape") {
    auto a = random_tensor({3, 4}, "a"), b = random_tensor({5, 6}, "b");
    auto f32 = zeros({3, 4});
    auto says = [](const std::string& message, const std::string& part) {
      CHECK_MESSAGE(message.find(part) != std::string::npos, message);
    };
    auto invalid = errc::invalid_argument;
    auto mismatch = errc::type_mismatch;
    says(refusal([&](tape& t) { return t.matmul(t.constant(a), t.constant(b)); }, invalid),
         "matmul: f64 [3, 4] times f64 [5, 6]: the inner extents 4 and 5 differ");
    says(refusal(
           [&](tape& t) { return t.matmul(t.constant(a), t.constant(a), {.a = true, .b = true}); },
           invalid),
         "transposed");
    says(refusal([&](tape& t) { return t.matmul(t.constant(a), t.constant(f32)); }, mismatch),
         "f64 [3, 4] and f32 [3, 4] differ in type");
    says(
      refusal([&](tape& t) { return t.matmul(t.constant(a), t.constant(zeros({4}, dtype::f64))); },
              invalid),
      "two matrices, or two batches of as many, not f64 [3, 4] and f64 [4]");
    auto pairs = zeros({2, 3, 4}, dtype::f64), triples = zeros({3, 4, 5}, dtype::f64);
    says(
      refusal([&](tape& t) { return t.matmul(t.constant(pairs), t.constant(triples)); }, invalid),
      "two batches of as many, not f64 [2, 3, 4] and f64 [3, 4, 5]");
    says(refusal([&](tape& t) { return t.matmul(t.constant(pairs), t.constant(a)); }, invalid),
         "two batches of as many, not f64 [2, 3, 4] and f64 [3, 4]");
    says(refusal([&](tape& t) { return t.matmul(t.constant(pairs), t.constant(pairs)); }, invalid),
         "matmul: f64 [2, 3, 4] times f64 [2, 3, 4]: the inner extents 4 and 3 differ");
    constexpr int64_t most = 0x7fffffff;
    says(
      refusal(
        [&](tape& t) {
          return t.matmul(t.constant(zeros({most, most, 0})), t.constant(zeros({most, 0, most})));
        },
        invalid),
      "matmul: f32 [2147483647, 2147483647, 0] times f32 [2147483647, 0, 2147483647]: the result "
      "has more than 2^59 elements");
    says(refusal([&](tape& t) { return t.add_bias(t.constant(a), t.constant(b)); }, invalid),
         "add_bias: bias f64 [5, 6]");
    auto square = zeros({4, 4}, dtype::f64), bias = zeros({3}, dtype::f64);
    says(refusal([&](tape& t) { return t.linear(t.constant(a), t.constant(b), t.constant(bias)); },
                 invalid),
         "linear: f64 [3, 4] times f64 [5, 6]: the inner extents 4 and 5 differ");
    says(refusal(
           [&](tape& t) { return t.linear(t.constant(a), t.constant(square), t.constant(bias)); },
           invalid),
         "linear: bias f64 [3] is not a vector as long as the last extent of f64 [3, 4]");
    says(
      refusal([&](tape& t) { return t.add_bias(t.mean(t.constant(a)), t.constant(b)); }, invalid),
      "add_bias");
    says(refusal([&](tape& t) { return t.rms_norm(t.constant(a), t.constant(b)); }, invalid),
         "rms_norm: gain f64 [5, 6] is not a vector as long as the last extent of f64 [3, 4]");
    says(refusal([&](tape& t) { return t.transpose(t.mean(t.constant(a))); }, invalid),
         "transpose: needs a matrix, not f64 []");
    for (auto [begin, end] : {std::array<int64_t, 2>{-1, 2}, {2, 1}, {0, 4}})
      says(refusal([&](tape& t) { return t.slice(t.constant(a), begin, end); }, invalid),
           "slice: f64 [3, 4] has no rows [" + std::to_string(begin) + ", " + std::to_string(end));
    says(refusal([&](tape& t) { return t.slice(t.mean(t.constant(a)), 0, 0); }, invalid),
         "slice: f64 [] has no rows [0, 0)");
    says(refusal([&](tape& t) { return t.concatenate(t.constant(a), t.constant(b)); }, invalid),
         "concatenate: f64 [3, 4] and f64 [5, 6] differ in shape beyond their rows");
    says(refusal([&](tape& t) { return t.concatenate(t.constant(a), t.constant(f32)); }, mismatch),
         "concatenate");
    says(refusal([&](tape& t) { return t.row_sums(t.mean(t.constant(a))); }, invalid),
         "row_sums: f64 [] has no rows");
    auto packed = zeros({2, 3, 12}, dtype::f64);
    says(refusal([&](tape& t) { return t.add_bias(t.constant(packed), t.constant(a)); }, invalid),
         "add_bias: bias f64 [3, 4] does not have the last extents of f64 [2, 3, 12]");
    says(refusal([&](tape& t) { return t.causal_self_attention(t.constant(a), 1); }, invalid),
         "causal_self_attention: needs [batch, context, 3 * width], not f64 [3, 4]");
    for (int64_t heads : {-1, 0, 3, 8})
      says(refusal([&](tape& t) { return t.causal_self_attention(t.constant(packed), heads); },
                   invalid),
           "f64 [2, 3, 12] does not make queries, keys and values of " + std::to_string(heads)
             + " heads");
    for (int64_t columns : {0, 4})
      says(refusal(
             [&](tape& t) {
               return t.causal_self_attention(t.constant(zeros({2, 3, columns})), 1);
             },
             invalid),
           "take 3 * heads * head width columns");
    says(refusal([&](tape& t) { return t.add(t.constant(a), t.constant(b)); }, invalid),
         "add: f64 [3, 4] and f64 [5, 6] differ in shape");
    says(refusal([&](tape& t) { return t.multiply(t.constant(a), t.constant(f32)); }, mismatch),
         "multiply");
    says(refusal([&](tape& t) { return t.layer_norm(t.constant(a), t.constant(b), t.constant(b)); },
                 invalid),
         "layer_norm: gain");
    says(refusal(
           [&](tape& t) {
             return t.reshape(t.constant(a), {5, 2});
           },
           invalid),
         "reshape: f64 [3, 4]");
    says(refusal([&](tape& t) { return t.reshape(t.constant(a), {-3, -4}); }, invalid), "negative");
    says(refusal(
           [&](tape& t) {
             return t.mean(t.constant(zeros({0, 4})));
           },
           invalid),
         "mean: f32 [0, 4] has no elements; for a sum over the rows that all replicas have, "
         "divide one of row_sums by their number");
    for (double rate : {-0.1, 1.0, std::nan("")})
      says(refusal(
             [&](tape& t) {
               return t.dropout(t.constant(a), rate, random_key{1, "d"});
             },
             invalid),
           "is not within [0, 1)");
    says(refusal([&](tape& t) { return t.constant(zeros({2}, dtype::bf16)); }, mismatch),
         "not in bf16; cast the tensor");
    says(refusal([&](tape& t) { return t.constant(zeros({2}, dtype::i64)); }, mismatch),
         "not in i64; make a tensor of f32 of its numbers");
  }

  TEST_CASE("images, weights and windows that do not fit are refused by name and shape") {
    auto images = random_tensor({2, 4, 5, 3}, "images"), a = random_tensor({3, 4}, "a");
    auto weights = random_tensor({3, 2, 3, 7}, "weights");
    auto convolved = [&](const tensor& input, const tensor& by, window_steps steps, errc code) {
      return refusal([&](tape& t) { return t.conv2d(t.constant(input), t.constant(by), steps); },
                     code);
    };
    auto says = [](const std::string& message, const std::string& wanted) {
      CHECK_MESSAGE(message.find(wanted) != std::string::npos, message);
    };
    const auto invalid = errc::invalid_argument;
    says(convolved(a, weights, {}, invalid),
         "conv2d: needs images [batch, height, width, channels], not f64 [3, 4]");
    says(convolved(images, a, {}, invalid), "conv2d: needs weights [window height");
    says(convolved(images, zeros({3, 2, 3, 7}), {}, errc::type_mismatch),
         "conv2d: f64 [2, 4, 5, 3] and f32 [3, 2, 3, 7] differ in type");
    for (const auto& other : {shape{3, 2, 4, 7}, shape{3, 2, 3, 0}})
      says(convolved(images, zeros(other, dtype::f64), {}, invalid),
           "conv2d: weights f64 " + to_string(other) + " do not make outputs");
    says(convolved(zeros({2, 4, 0, 3}, dtype::f64), weights, {}, invalid),
         "conv2d: f64 [2, 4, 0, 3] are images without a pixel");
    says(convolved(images, zeros({0, 2, 3, 7}, dtype::f64), {}, invalid),
         "conv2d: a window of 0 x 2 has no pixel");
    says(convolved(images, weights, {.stride = 0}, invalid), "a stride of 0 is not at least 1");
    says(convolved(images, weights, {.stride = int64_t{1} << 31}, invalid),
         "a stride of 2147483648 is over 2^31 - 1");
    for (int64_t padding : {-1, 2})
      says(convolved(images, weights, {1, padding}, invalid),
           "a padding of " + std::to_string(padding) + " is not within [0, the sides of a window");
    says(convolved(images, zeros({5, 5, 3, 7}, dtype::f64), {}, invalid),
         "conv2d: a window of 5 x 5 is larger than the images of f64 [2, 4, 5, 3] with a padding "
         "of 0");
    says(refusal([&](tape& t) { return t.max_pool2d(t.constant(images), 5, {}); }, invalid),
         "max_pool2d: a window of 5 x 5 is larger than the images");
    says(refusal([&](tape& t) { return t.max_pool2d(t.constant(a), 2, {}); }, invalid),
         "max_pool2d: needs images");
    says(refusal([&](tape& t) { return t.max_pool2d(t.constant(images), 0, {}); }, invalid),
         "max_pool2d: a window of 0 x 0 has no pixel");
    for (int64_t side : {int64_t{1} << 31, int64_t{1} << 62})
      says(refusal(
             [&](tape& t) {
               return t.max_pool2d(t.constant(images), side, {1, side - 1});
             },
             invalid),
           "max_pool2d: a window of " + std::to_string(side) + " x " + std::to_string(side)
             + " has a side over 2^31 - 1");
  }

  TEST_CASE("arrays of a convolution or a pooling that have too many elements are refused") {
    auto repeated = [](shape extents) { // one number, at every place
      auto one = std::make_shared<float>(1.0F);
      std::vector<int64_t> strides(extents.rank(), 0);
      return tensor::wrap_strided(one.get(), dtype::f32, std::move(extents), std::move(strides),
                                  one);
    };
    auto message = [](const tensor& input, const tensor& weights, window_steps steps) {
      auto refused = detail::check_convolution(input, weights, steps);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == errc::invalid_argument);
      return refused.error().message;
    };
    const auto image = zeros({1, 1, 1, 1});
    const auto widest = repeated({1, 1, 1, int64_t{1} << 31});
    CHECK(message(image, widest, {})
          == "conv2d: weights f32 [1, 1, 1, 2147483648] have more than 2^31 - 1 elements");
    CHECK(message(repeated({1 << 16, 1, 1, 1}), repeated({1, 1, 1, 1 << 16}), {})
          == "conv2d: f32 [65536, 1, 1, 1] or the result has more than 2^31 - 1 elements");
    constexpr int64_t side = 0x7fffffff;
    auto pooled = detail::check_max_pool(image, side, {.padding = side - 1});
    REQUIRE_FALSE(pooled.has_value()); // 2^31 - 1 windows in each direction
    CHECK(pooled.error().message
          == "max_pool2d: f32 [1, 1, 1, 1] or the result has more than 2^31 - 1 elements");
  }

  TEST_CASE("indices and labels outside their range are refused with their position") {
    auto table = random_tensor({5, 2}, "table");
    auto message = refusal(
      [&](tape& t) {
        return t.embedding(t.constant(table), integers({2, 2}, {0, 4, 5, 1}));
      },
      errc::invalid_argument);
    CHECK(message == "embedding: 5 at position 2 is not within [0, 5)");
    message = refusal(
      [&](tape& t) {
        return t.softmax_cross_entropy(t.constant(table), integers({5}, {0, 1, 1, -1, 0}));
      },
      errc::invalid_argument);
    CHECK(message == "softmax_cross_entropy: -1 at position 3 is not within [0, 2)");
    refusal([&](tape& t) { return t.embedding(t.constant(table), zeros({3})); },
            errc::type_mismatch);
    refusal([&](tape& t) { return t.softmax_cross_entropy(t.constant(table), zeros({5})); },
            errc::type_mismatch);
    refusal(
      [&](tape& t) {
        return t.softmax_cross_entropy(t.constant(table), integers({2}, {0, 1}));
      },
      errc::invalid_argument);
    refusal([&](tape& t) { return t.embedding(t.mean(t.constant(table)), integers({1}, {0})); },
            errc::invalid_argument);
  }

  TEST_CASE("the first failure stays, and later operations do nothing") {
    tape t;
    auto x = t.parameter(random_tensor({2, 3}, "x"));
    auto bad = t.matmul(x, x);
    CHECK(bad.index == expression::none);
    CHECK(t.tanh(bad).index == expression::none);
    CHECK(t.tanh(x).index == expression::none);
    CHECK(t.value(x).error().message.starts_with("matmul"));
    CHECK(t.gradients(t.mean(x), {x}).error().message.starts_with("matmul"));
  }

  TEST_CASE("expressions of another tape, and gradients by no parameter, are refused") {
    tape t;
    auto x = t.parameter(random_tensor({2, 3}, "x"));
    auto c = t.constant(random_tensor({1}, "c"));
    CHECK(t.value(expression{9}).error().code == errc::invalid_argument);
    CHECK(t.gradients(x, {x}).error().message
          == "gradients: the loss is a single number, not [2, 3]");
    CHECK(t.gradients(c, {c}).error().code == errc::invalid_argument);
    CHECK(t.gradients(c, {expression{}}).error().code == errc::invalid_argument);
    CHECK(t.tanh(expression{7}).index == expression::none);
    CHECK(t.value(x).error().message == "tanh: an operand is not on this tape");
  }
}

} // namespace tape_test
