// SPDX-License-Identifier: Apache-2.0
// Goal: a part that is computed again gives the bits of one that is not, and keeps its result only.
// Method: a model with every kind of sharing, with and without parts; bytes of the pool that all
// tensors come from; refusals one by one.
#include "kernels/tape/tape.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/tape/drawn.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

namespace recompute_test {

using namespace troupe;
using troupe::test::drawn;

namespace {

/// Which parts of a model are computed again: none, each layer, or all layers and each of them.
enum class parts : uint8_t { none, layers, nested };

template <class Context>
expression as_part(basic_tape<Context>& t, bool is_one, const std::function<expression()>& part) {
  return is_one ? t.recompute(part) : part();
}

constexpr int64_t rows = 9, width = 5;

/// The values that `model` is given: a table, weights that all layers share, and each layer's own.
std::vector<tensor> model_values() {
  return {drawn<float>({7, width}, "table"), drawn<float>({width}, "gain"),
          drawn<float>({width, width}, "shared"), drawn<float>({width, width}, "first"),
          drawn<float>({width, width}, "second")};
}

/// Two layers, each of which looks up in the table again, with dropout and a sum past it.
template <class Context>
expression model(basic_tape<Context>& t, const std::vector<expression>& p, parts again) {
  tensor indices(dtype::i64, {rows}), labels(dtype::i64, {rows});
  for (size_t i = 0; i < rows; ++i) {
    indices.mutable_values<int64_t>()[i] = static_cast<int64_t>(i * i % 7);
    labels.mutable_values<int64_t>()[i] = static_cast<int64_t>(i % 7);
  }
  auto layer = [&t, p, indices](expression h, size_t own) {
    auto normal = t.rms_norm(t.add(h, t.embedding(p[0], indices)), p[1]);
    auto hidden = t.gelu(t.matmul(t.matmul(normal, p[2]), p[own]));
    auto thinned = t.dropout(hidden, 0.3, random_key{own, "dropout"});
    return t.add(t.add(h, thinned), t.matmul(h, p[own], {.b = true}));
  };
  auto layers = [&t, p, indices, layer, again] {
    auto h = t.embedding(p[0], indices);
    for (size_t own : {3, 4})
      h = as_part(t, again != parts::none, [layer, h, own] { return layer(h, own); });
    return h;
  };
  auto h = as_part(t, again == parts::nested, layers);
  return t.softmax_cross_entropy(t.matmul(h, p[0], {.b = true}), labels);
}

template <class Context>
std::vector<expression> enter(basic_tape<Context>& t, const std::vector<tensor>& values) {
  return mapped(values, [&](const auto& value) { return t.parameter(value); });
}

struct outcome {
  tensor loss;
  std::vector<tensor> gradients;
  std::vector<tensor> told; ///< The same, as they were told of.
};

template <class Context>
outcome run(parts again) {
  basic_tape<Context> t;
  auto p = enter(t, model_values());
  auto loss = model(t, p, again);
  outcome result{
    .loss = t.value(loss).value(), .gradients{}, .told = std::vector<tensor>(p.size())};
  auto gradients = t.gradients(loss, p);
  REQUIRE_MESSAGE(gradients, (gradients ? "" : gradients.error().message));
  for (const auto& one : *gradients)
    result.gradients.push_back(std::get<tensor>(one));
  REQUIRE(t.gradients(loss, p, [&](size_t which, const gradient& of) {
    result.told[which] = std::get<tensor>(of).clone();
  }));
  return result;
}

bool same_bits(const tensor& a, const tensor& b) {
  return std::ranges::equal(std::as_bytes(a.values<float>()), std::as_bytes(b.values<float>()));
}

template <class Context>
void compare(parts again) {
  auto wanted = run<Context>(parts::none), got = run<Context>(again);
  CHECK(same_bits(got.loss, wanted.loss));
  for (size_t i = 0; i < wanted.gradients.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(got.gradients[i], wanted.gradients[i]));
    CHECK(same_bits(got.told[i], wanted.gradients[i]));
  }
}

/// A tape that is `layers` deep, and the bytes that it took at most while the layers were computed,
/// beyond what there was before.
struct deep_model {
  static constexpr int64_t layers = 12;
  static constexpr size_t value_bytes = 256 * 16 * sizeof(float);
  static constexpr size_t weight_bytes = 16 * 16 * sizeof(float);

  explicit deep_model(bool again) {
    auto input = drawn<float>({256, 16}, "input"), weights = drawn<float>({16, 16}, "weights");
    before = cpu_pool().bytes_in_use();
    h = t.constant(input);
    w = t.parameter(weights);
    for (int64_t layer = 0; layer < layers; ++layer)
      h = as_part(t, again, [this, h = h] {
        auto result = t.tanh(t.matmul(t.tanh(t.matmul(h, w)), w)); // four values of one size
        most = std::max(most, held());
        return result;
      });
  }

  [[nodiscard]] size_t held() const { return cpu_pool().bytes_in_use() - before; }

  tape t;
  expression h, w;
  size_t before = 0;
  size_t most = 0;
};

std::string refusal(const std::function<expression(tape&, expression)>& build) {
  tape t;
  auto x = t.parameter(drawn<float>({2, 2}, "x"));
  auto gradients = t.gradients(t.mean(build(t, x)), {x});
  REQUIRE_FALSE(gradients.has_value());
  CHECK(gradients.error().code == errc::invalid_argument);
  return gradients.error().message;
}

} // namespace

TEST_SUITE("kernels/tape/recompute") {
  TEST_CASE("gradients have the bits that they have without parts, also of parts within parts") {
    for (auto again : {parts::layers, parts::nested}) {
      compare<cpu::context>(again);
      compare<reference::context>(again);
    }
  }

  TEST_CASE("the tape holds the result of a part only, and one part's values on the way back") {
    using sizes = deep_model;
    deep_model plain{false};
    CHECK(plain.most == 4 * sizes::layers * sizes::value_bytes);
    deep_model alone{true};
    CHECK(alone.held() == sizes::layers * sizes::value_bytes);
    CHECK(alone.most == (sizes::layers - 1 + 4) * sizes::value_bytes);
    REQUIRE(alone.t.gradients(alone.t.mean(alone.h), {alone.w}).has_value());
    // The loss, the gradient of the part's result, and what has arrived at the weights.
    CHECK(alone.most <= (sizes::layers + 4 + 1) * sizes::value_bytes + 2 * sizes::weight_bytes);
    CHECK(alone.held() <= (sizes::layers + 1) * sizes::value_bytes);
  }

  TEST_CASE(
    "a gradient is reported when nothing more is added to it, though a part adds the last") {
    tape t;
    auto first = t.parameter(drawn<float>({2, 2}, "first")),
         last = t.parameter(drawn<float>({2, 2}, "last"));
    auto h = t.recompute([&t, first] { return t.tanh(t.tanh(t.tanh(first))); });
    auto loss = t.mean(t.matmul(t.tanh(t.tanh(h)), last));
    std::vector<size_t> told;
    REQUIRE(t.gradients(loss, {{first, last}},
                        [&](size_t which, const gradient&) { told.push_back(which); }));
    CHECK(told == std::vector<size_t>{1, 0});
  }

  TEST_CASE("a part may return what it took, or depend on no parameter") {
    tape t;
    auto x = t.parameter(drawn<float>({3}, "x")), c = t.constant(drawn<float>({3}, "c"));
    auto same = t.recompute([x] { return x; });
    CHECK(same.index == x.index);
    auto given = t.recompute([&t, c] { return t.tanh(c); });
    auto gradients = t.gradients(t.mean(t.add(same, given)), {x});
    REQUIRE(gradients.has_value());
    CHECK(std::get<tensor>(gradients->front()).values<float>()[1] == doctest::Approx(1.0 / 3));
  }

  TEST_CASE("a stop while a part is computed again ends it, and no gradient is reported") {
    std::stop_source stop;
    tape t{stop.get_token()};
    auto x = t.parameter(drawn<float>({2, 2}, "x"));
    int calls = 0;
    auto loss = t.mean(t.recompute([&t, &calls, &stop, x] {
      if (++calls == 2) stop.request_stop();
      return t.tanh(x);
    }));
    auto stopped = t.gradients(loss, {{x}}, [](size_t, const gradient&) { FAIL("told"); });
    REQUIRE_FALSE(stopped.has_value());
    CHECK(stopped.error().code == errc::cancelled);
    CHECK(calls == 2);
  }

  TEST_CASE("a part that cannot be computed again is refused, and the line says why") {
    CHECK(refusal([](tape& t, expression x) {
            return t.recompute([&t, x] {
              return t.multiply(x, t.parameter(drawn<float>({2, 2}, "w")));
            });
          })
          == "parameter: make it before a part that is computed again, not within it");
    CHECK(refusal([](tape& t, expression x) {
            return t.recompute([&t, x] { return t.tanh(t.add_bias(x, t.mean(x))); });
          }).starts_with("add_bias"));
    CHECK(refusal([](tape& t, expression) { return t.recompute([] { return expression{}; }); })
          == "recompute: an operand is not on this tape");
    CHECK(refusal([](tape& t, expression) { return t.recompute({}); })
          == "recompute: the part is empty");
    CHECK(refusal([](tape& t, expression x) {
            return t.recompute([&t, x, calls = 0]() mutable {
              return ++calls == 1 ? t.tanh(x) : t.tanh(t.mean(x));
            });
          })
          == "recompute: f32 [] and f32 [2, 2] differ in shape");
    expression h;
    CHECK(refusal([&h](tape& t, expression x) {
            h = x;
            return h = t.recompute([&t, &h] { return t.tanh(h); });
          })
          == "tanh: an operand came after the part that is computed again; capture expressions by "
             "value");
  }

  TEST_CASE("gradients are asked for outside of parts") {
    tape t;
    auto x = t.parameter(drawn<float>({2}, "x"));
    error inside;
    auto h = t.recompute([&] {
      inside = t.gradients(t.mean(x), {x}).error();
      return t.tanh(x);
    });
    CHECK(inside.message == "gradients: not within a part that is computed again");
    CHECK(t.value(h).has_value());
  }

  TEST_CASE("a part that throws, at first or when it is computed again, leaves the tape usable") {
    for (int fails_at : {1, 2}) {
      tape t;
      auto x = t.parameter(drawn<float>({2}, "x"));
      int calls = 0;
      auto compute = [&, x] {
        auto h = t.tanh(x);
        if (++calls == fails_at) throw std::runtime_error("once");
        return h;
      };
      auto gradient_of = [&](expression h) { return t.gradients(t.mean(h), {x}).value(); };
      CHECK_THROWS_AS(gradient_of(t.recompute(compute)), std::runtime_error);
      auto again = gradient_of(t.recompute(compute));
      auto plain = gradient_of(t.tanh(x));
      CHECK(std::ranges::equal(std::get<tensor>(again[0]).values<float>(),
                               std::get<tensor>(plain[0]).values<float>()));
    }
  }
}

} // namespace recompute_test
