// SPDX-License-Identifier: Apache-2.0
// Goal: the loss and its gradient are right for ordinary, huge, tiny and broken logits, in both
// twins. Method: both twins over shapes and fills; identities of the softmax; hand-computed rows.
#include "kernels/math/softmax_cross_entropy.hpp"
#include "tests/kernels/arrays.hpp"
#include "tests/kernels/closeness.hpp"

namespace softmax_cross_entropy_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr extents shapes[]
  = {{0, 5}, {1, 1}, {3, 2}, {7, 31}, {5, 32}, {4, 33}, {64, 256}, {3, 1009}};

std::vector<int64_t> labels_for(extents shape) {
  std::vector<int64_t> labels(shape.rows);
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>((i * 7 + 3) % shape.columns);
  return labels;
}

/// exp is within 4 roundings, its argument within 1, magnified by its size (below 13 for normal
/// logits); a sum of n positive numbers adds at most n, the division 1.
template <class T>
bound bound_of(extents shape) {
  double count = 4 + 13 + static_cast<double>(shape.columns) + 1;
  return {.relative = roundings<T>(2 * count), .absolute = roundings<T>(2 * count)};
}

template <class T>
void compare(extents shape, guarded<T> logits, bound allowed) {
  CAPTURE(shape.rows);
  CAPTURE(shape.columns);
  auto labels = labels_for(shape);
  auto size = shape.rows * shape.columns;
  guarded<T> losses{shape.rows}, wanted_losses{shape.rows}, out{size}, wanted{size};
  reference::softmax_cross_entropy<T>(plain, logits.view(), labels, wanted_losses.span(),
                                      wanted.span());
  cpu::softmax_cross_entropy<T>(fast, logits.view(), labels, losses.span(), out.span());
  CHECK(first_not_close(losses.span(), wanted_losses.span(), allowed) == shape.rows);
  CHECK(first_not_close(out.span(), wanted.span(), allowed) == size);
  guarded<T> back{size}, wanted_back{size};
  auto losses_gradient = normal<T>(shape.rows, 3);
  reference::softmax_cross_entropy_gradient<T>(plain, wanted.view(), labels, losses_gradient.view(),
                                               wanted_back.span());
  cpu::softmax_cross_entropy_gradient<T>(fast, wanted.view(), labels, losses_gradient.view(),
                                         back.span());
  CHECK(same_bits(back, wanted_back));
}

/// Loss and probabilities of one row.
std::vector<double> row(std::vector<double> logits, int64_t label) {
  double loss[1];
  std::vector<double> out(logits.size());
  const int64_t labels[] = {label};
  cpu::softmax_cross_entropy<double>(fast, logits, labels, loss, out);
  out.insert(out.begin(), loss[0]);
  return out;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

TEST_SUITE("kernels/math/softmax_cross_entropy") {
  TEST_CASE_TEMPLATE("both twins agree", T, float, double) {
    for (auto shape : shapes)
      compare(shape, normal<T>(shape.rows * shape.columns, 1), bound_of<T>(shape));
  }

  TEST_CASE_TEMPLATE("both twins agree on extremes", T, float, double) {
    for (auto shape : shapes)
      compare(shape, extreme<T>(shape.rows * shape.columns, 2), bound_of<T>(shape));
  }

  TEST_CASE_TEMPLATE("the probabilities may overwrite the logits", T, float, double) {
    auto logits = normal<T>(7 * 33, 1);
    auto labels = labels_for({7, 33});
    guarded<T> losses{7}, losses_in_place{7}, out{7 * 33};
    cpu::softmax_cross_entropy<T>(fast, logits.view(), labels, losses.span(), out.span());
    cpu::softmax_cross_entropy<T>(fast, logits.view(), labels, losses_in_place.span(),
                                  logits.span());
    CHECK(same_bits(losses, losses_in_place));
    CHECK(same_bits(logits, out));
  }

  TEST_CASE("equal logits give equal probabilities, whatever their size") {
    for (double logit : {0.0, 1e30, -1e30, 1e308, -1e308})
      CHECK(row({logit, logit, logit, logit}, 2)
            == std::vector<double>{std::log(4.0), 0.25, 0.25, 0.25, 0.25});
  }

  TEST_CASE("a loss too large for its probability is still exact") {
    auto result = row({0, 1000}, 0);
    CHECK(result == std::vector<double>{1000, 0, 1});
    CHECK(row({0, -infinity}, 0) == std::vector<double>{0, 1, 0});
    CHECK(row({0, -infinity}, 1)[0] == infinity);
  }

  TEST_CASE("a broken row gives NaN everywhere") {
    for (auto logits : {std::vector<double>{0, std::nan(""), 1},
                        {0, infinity, 1},
                        {-infinity, -infinity, -infinity},
                        {std::nan(""), infinity, 0}})
      for (double value : row(logits, 0))
        CHECK(std::isnan(value));
  }

  TEST_CASE("the gradient of a row sums to zero and pulls the label up") {
    const double probabilities[] = {0.1, 0.2, 0.7};
    const int64_t labels[] = {1};
    const double of_the_loss[] = {2};
    double back[3];
    cpu::softmax_cross_entropy_gradient<double>(fast, probabilities, labels, of_the_loss, back);
    CHECK(back[0] == doctest::Approx(0.2));
    CHECK(back[1] == doctest::Approx(-1.6));
    CHECK(back[2] == doctest::Approx(1.4));
  }
}

} // namespace softmax_cross_entropy_test
