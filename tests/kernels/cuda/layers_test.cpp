// SPDX-License-Identifier: Apache-2.0
// Goal: the layers of a network on a GPU agree with the cpu twins: bit for bit where the header
// says so. Method: the same calls over rows, columns and fills.
#include "kernels/math/activations.hpp"
#include "kernels/math/attention.hpp"
#include "kernels/math/bias.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/layer_norm.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/math/mean.hpp"
#include "kernels/math/rms_norm.hpp"
#include "kernels/math/softmax_cross_entropy.hpp"
#include "tests/kernels/closeness.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

using namespace troupe;
using namespace troupe::test;

namespace {

const cpu::context fast;

constexpr size_t row_counts[] = {0, 1, 15, 17, 40};
constexpr size_t column_counts[] = {1, 2, 15, 16, 33, 257};

/// f32 has the bits of the cpu twin, f64 is within so many units in the last place: it calls the
/// library's functions.
template <class T>
bool agrees(const device_array<T>& got, guarded<T>& expected, double units) {
  if (sizeof(T) == 4) return holds_bits(got, expected);
  auto fetched = got.fetch();
  return first_not_close(fetched.span(), expected.span(), {roundings<T>(2 * units), 0})
         == expected.span().size();
}

std::vector<int64_t> draw_indices(size_t count, size_t limit, uint64_t seed) {
  std::mt19937_64 engine{seed};
  std::vector<int64_t> result(count);
  for (auto& index : result)
    index = static_cast<int64_t>(engine() % limit);
  return result;
}

/// Numbers so small and whole that sums of their products are exact, in whatever order.
template <class T>
guarded<T> whole_numbers(size_t count, uint64_t seed) {
  auto result = normal<T>(count, seed);
  for (auto& value : result.span())
    value = std::round(value);
  return result;
}

/// Sums of so many rows, of which the twins add up the columns in different orders.
template <class T>
bool are_close(const device_array<T>& got, guarded<T>& expected, size_t rows) {
  auto n = static_cast<double>(rows);
  auto fetched = got.fetch();
  return first_not_close(fetched.span(), expected.span(), {roundings<T>(8), roundings<T>(8 * n)})
         == expected.span().size();
}

device_array<int64_t> on_gpu(const std::vector<int64_t>& indices) {
  return device_array<int64_t>{std::span<const int64_t>{indices}};
}

/// @param offset Elements from an aligned place to the arrays that attention is given.
template <class T>
void check_attention(const attention_form& form, size_t offset, bound allowed) {
  CAPTURE(form.context);
  CAPTURE(form.head_width);
  CAPTURE(to_string(form.precision));
  auto size = form.positions() * form.width();
  auto packed = normal<T>(3 * size, 1), arriving = normal<T>(size, 2);
  guarded<T> output{size}, log_sums{form.positions() * form.heads}, gradient{3 * size};
  device_array<T> far_packed{packed, offset}, far_arriving{arriving, offset}, far_output{output};
  device_array<T> far_sums{log_sums}, far_gradient{gradient};
  reference::causal_self_attention<T>(plain, form, packed.view(), output.span(), log_sums.span());
  cuda::causal_self_attention<T>(gpu(), form, far_packed.view(), far_output.span(),
                                 far_sums.span());
  reference::causal_self_attention_gradient<T>(
    plain, form, packed.view(), {output.view(), log_sums.view()}, arriving.view(), gradient.span());
  cuda::causal_self_attention_gradient<T>(gpu(), form, far_packed.view(),
                                          {far_output.view(), far_sums.view()}, far_arriving.view(),
                                          far_gradient.span());
  auto agree = [&](const device_array<T>& far, guarded<T>& expected) {
    auto got = far.fetch();
    return first_not_close(got.span(), expected.span(), allowed) == expected.span().size();
  };
  CHECK(agree(far_output, output));
  CHECK(agree(far_sums, log_sums));
  CHECK(agree(far_gradient, gradient));
}

} // namespace

TEST_SUITE("kernels/cuda/layers") {
  TEST_CASE_TEMPLATE("activations and their gradients agree", T, float, double) {
    using enum activation;
    for (auto kind : {tanh, relu, sigmoid, gelu, exp, log})
      for (bool with_extremes : {false, true})
        for (size_t count : {0, 1, 31, 1025}) {
          CAPTURE(to_string(kind));
          auto input = with_extremes ? extreme<T>(count, 1) : normal<T>(count, 1);
          auto gradient = normal<T>(count, 2);
          guarded<T> output{count};
          device_array<T> far_input{input}, far_output{output}, far_gradient{gradient};
          cpu::activate<T>(fast, kind, input.view(), output.span());
          cuda::activate<T>(gpu(), kind, far_input.view(), far_output.span());
          if (kind == log) { // the library's function in f32, too
            auto got = far_output.fetch();
            CHECK(first_not_close(got.span(), output.span(), {roundings<T>(8), 0}) == count);
          } else {
            CHECK(agrees(far_output, output, 4));
          }
          device_array<T> same_output{output}; // so that one error is counted once
          cpu::activate_gradient<T>(fast, kind, input.view(), output.view(), gradient.view(),
                                    gradient.span());
          cuda::activate_gradient<T>(gpu(), kind, far_input.view(), same_output.view(),
                                     far_gradient.view(), far_gradient.span());
          if (sizeof(T) == 4) {
            CHECK(holds_bits(far_gradient, gradient));
            continue;
          }
          // gelu' is a sum of numbers near 1 that may cancel.
          auto got = far_gradient.fetch();
          CHECK(first_not_close(got.span(), gradient.span(), {roundings<T>(16), roundings<T>(64)})
                == count);
        }
  }

  TEST_CASE_TEMPLATE("a bias is added with the reference's bits", T, float, double) {
    for (size_t rows : row_counts)
      for (size_t columns : column_counts)
        for (size_t offset : {0, 1}) {
          auto input = normal<T>(rows * columns, 1), bias = normal<T>(columns, 2);
          device_array<T> far_input{input}, far_bias{bias, offset};
          reference::add_bias<T>(plain, input.view(), bias.view(), input.span());
          cuda::add_bias<T>(gpu(), far_input.view(), far_bias.view(), far_input.span());
          CHECK(holds_bits(far_input, input));
        }
  }

  TEST_CASE_TEMPLATE("sums of columns hold every row once, and have the same bits each time", T,
                     float, double) {
    for (size_t rows : {0, 1, 8, 9, 33, 129, 1100})
      for (size_t columns : {1, 31, 33, 257}) {
        CAPTURE(rows);
        CAPTURE(columns);
        auto input = whole_numbers<T>(rows * columns, 1),
             arriving = whole_numbers<T>(rows * columns, 2);
        auto means = whole_numbers<T>(rows, 3), inverses = whole_numbers<T>(rows, 4);
        guarded<T> gain{columns}, sums{columns}, bias_sums{columns};
        std::ranges::fill(gain.span(), T{1});
        device_array<T> far_input{input, 1}, far_arriving{arriving}, far_leaving{arriving};
        device_array<T> far_means{means}, far_inverses{inverses}, far_gain{gain};
        device_array<T> far_sums{sums}, far_bias_sums{bias_sums, 1};
        auto leaving = arriving;

        cpu::bias_gradient<T>(fast, arriving.view(), sums.span());
        cuda::bias_gradient<T>(gpu(), far_arriving.view(), far_sums.span());
        CHECK(holds_bits(far_sums, sums));
        cpu::rms_norm_gradient<T>(fast, input.view(), gain.view(), inverses.view(), arriving.view(),
                                  leaving.span(), sums.span());
        cuda::rms_norm_gradient<T>(gpu(), far_input.view(), far_gain.view(), far_inverses.view(),
                                   far_arriving.view(), far_leaving.span(), far_sums.span());
        CHECK(holds_bits(far_sums, sums));
        cpu::layer_norm_gradient<T>(fast, input.view(), gain.view(),
                                    {means.span(), inverses.span()}, arriving.view(),
                                    {leaving.span(), sums.span(), bias_sums.span()});
        cuda::layer_norm_gradient<T>(gpu(), far_input.view(), far_gain.view(),
                                     {far_means.span(), far_inverses.span()}, far_arriving.view(),
                                     {far_leaving.span(), far_sums.span(), far_bias_sums.span()});
        CHECK(holds_bits(far_sums, sums));
        CHECK(holds_bits(far_bias_sums, bias_sums));

        auto drawn = normal<T>(rows * columns, 5);
        device_array<T> far_drawn{drawn};
        cuda::bias_gradient<T>(gpu(), far_drawn.view(), far_sums.span());
        cuda::bias_gradient<T>(gpu(), far_drawn.view(), far_bias_sums.span());
        auto once = far_sums.fetch();
        CHECK(holds_bits(far_bias_sums, once));
        cpu::bias_gradient<T>(fast, drawn.view(), sums.span());
        CHECK(are_close(far_sums, sums, rows));
      }
  }

  TEST_CASE_TEMPLATE("layer normalisation and its input's gradient have the cpu twin's bits", T,
                     float, double) {
    for (size_t rows : row_counts)
      for (size_t columns : column_counts) {
        CAPTURE(rows);
        CAPTURE(columns);
        auto input = normal<T>(rows * columns, 1), gradient = normal<T>(rows * columns, 4);
        auto gain = normal<T>(columns, 2), bias = normal<T>(columns, 3);
        guarded<T> output{rows * columns}, means{rows}, inverses{rows};
        guarded<T> gain_gradient{columns}, bias_gradient{columns};
        device_array<T> far_input{input, 1}, far_gain{gain}, far_bias{bias}, far_output{output};
        device_array<T> far_means{means}, far_inverses{inverses}, far_gradient{gradient};
        device_array<T> far_gain_gradient{gain_gradient}, far_bias_gradient{bias_gradient};
        cpu::layer_norm<T>(fast, T{1e-5}, input.view(), {gain.view(), bias.view()}, output.span(),
                           {means.span(), inverses.span()});
        cuda::layer_norm<T>(gpu(), T{1e-5}, far_input.view(), {far_gain.view(), far_bias.view()},
                            far_output.span(), {far_means.span(), far_inverses.span()});
        CHECK(holds_bits(far_output, output));
        CHECK(holds_bits(far_means, means));
        CHECK(holds_bits(far_inverses, inverses));
        cpu::layer_norm_gradient<T>(fast, input.view(), gain.view(),
                                    {means.span(), inverses.span()}, gradient.view(),
                                    {gradient.span(), gain_gradient.span(), bias_gradient.span()});
        cuda::layer_norm_gradient<T>(
          gpu(), far_input.view(), far_gain.view(), {far_means.span(), far_inverses.span()},
          far_gradient.view(),
          {far_gradient.span(), far_gain_gradient.span(), far_bias_gradient.span()});
        CHECK(holds_bits(far_gradient, gradient));
        CHECK(are_close(far_gain_gradient, gain_gradient, rows));
        CHECK(are_close(far_bias_gradient, bias_gradient, rows));
      }
  }

  TEST_CASE_TEMPLATE("rms normalisation and its input's gradient have the cpu twin's bits", T,
                     float, double) {
    for (size_t rows : row_counts)
      for (size_t columns : column_counts) {
        CAPTURE(rows);
        CAPTURE(columns);
        auto input = normal<T>(rows * columns, 1), gradient = normal<T>(rows * columns, 4);
        auto gain = normal<T>(columns, 2);
        guarded<T> output{rows * columns}, inverses{rows}, gain_gradient{columns};
        device_array<T> far_input{input, 1}, far_gain{gain}, far_output{output};
        device_array<T> far_inverses{inverses}, far_gradient{gradient};
        device_array<T> far_gain_gradient{gain_gradient};
        cpu::rms_norm<T>(fast, T{1e-5}, input.view(), gain.view(), output.span(), inverses.span());
        cuda::rms_norm<T>(gpu(), T{1e-5}, far_input.view(), far_gain.view(), far_output.span(),
                          far_inverses.span());
        CHECK(holds_bits(far_output, output));
        CHECK(holds_bits(far_inverses, inverses));
        cpu::rms_norm_gradient<T>(fast, input.view(), gain.view(), inverses.view(), gradient.view(),
                                  gradient.span(), gain_gradient.span());
        cuda::rms_norm_gradient<T>(gpu(), far_input.view(), far_gain.view(), far_inverses.view(),
                                   far_gradient.view(), far_gradient.span(),
                                   far_gain_gradient.span());
        CHECK(holds_bits(far_gradient, gradient));
        CHECK(are_close(far_gain_gradient, gain_gradient, rows));
      }
  }

  // The bounds are those of the two twins of the host: see their test.
  TEST_CASE_TEMPLATE("attention and its gradient agree with the reference", T, float, double) {
    for (const auto& form : {attention_form{0, 3, 1, 2},
                             {1, 1, 1, 1},
                             {2, 3, 2, 5},
                             {3, 17, 1, 33},
                             {1, 7, 5, 2},
                             {1, 64, 1, 16},
                             {1, 130, 2, 9},
                             {1, 70, 1, 65}}) { // the last ones need several tiles
      auto n = static_cast<double>(form.head_width + form.context);
      check_attention<T>(form, 1, {roundings<T>(10 * n), roundings<T>(40 * n)});
    }
  }

  TEST_CASE("attention of less precision agrees with the reference, in packets and without") {
    constexpr std::pair<product_precision, double> precisions[]
      = {{product_precision::tf32, 0x1p-11},
         {product_precision::bf16, 0x1p-8},
         {product_precision::f16, 0x1p-11}};
    for (auto form : {attention_form{0, 3, 1, 2},
                      {1, 1, 1, 1},
                      {2, 17, 2, 12},
                      {1, 64, 1, 64},
                      {1, 130, 2, 36},
                      {1, 70, 1, 132},
                      {1, 66, 1, 5}})
      for (auto [precision, rounding] : precisions)
        for (unsigned offset : {0U, 1U}) {
          form.precision = precision;
          check_attention<float>(form, offset, {4 * rounding, 16 * rounding});
        }
  }

  TEST_CASE_TEMPLATE("probabilities and losses of a classifier agree", T, float, double) {
    for (size_t rows : row_counts)
      for (size_t classes : column_counts)
        for (bool with_extremes : {false, true}) {
          CAPTURE(rows);
          CAPTURE(classes);
          auto logits
            = with_extremes ? extreme<T>(rows * classes, 1) : normal<T>(rows * classes, 1);
          auto labels = draw_indices(rows, classes, 5);
          auto far_labels = on_gpu(labels);
          guarded<T> losses{rows};
          device_array<T> far_logits{logits}, far_losses{losses, 1};
          cpu::softmax_cross_entropy<T>(fast, logits.view(), labels, losses.span(), logits.span());
          cuda::softmax_cross_entropy<T>(gpu(), far_logits.view(), far_labels.view(),
                                         far_losses.span(), far_logits.span());
          CHECK(agrees(far_logits, logits, 16));
          // -log p = log(sum) - logit: the error is that of the larger part.
          auto got = far_losses.fetch();
          CHECK(first_not_close(got.span(), losses.span(), {roundings<T>(8), roundings<T>(64)})
                == rows);
          auto losses_gradient = normal<T>(rows, 2);
          device_array<T> same{logits, with_extremes ? 1U : 0U};
          device_array<T> far_losses_gradient{losses_gradient};
          cpu::softmax_cross_entropy_gradient<T>(fast, logits.view(), labels,
                                                 losses_gradient.view(), logits.span());
          cuda::softmax_cross_entropy_gradient<T>(gpu(), same.view(), far_labels.view(),
                                                  far_losses_gradient.view(), same.span());
          CHECK(holds_bits(same, logits));
        }
  }

  TEST_CASE("a label that is no class gives a loss of NaN, and no read beyond the logits") {
    auto logits = normal<float>(6, 1);
    guarded<float> losses{2};
    auto labels = on_gpu({3, -1});
    device_array<float> far_logits{logits}, far_losses{losses};
    cuda::softmax_cross_entropy<float>(gpu(), far_logits.view(), labels.view(), far_losses.span(),
                                       far_logits.span());
    auto got = far_losses.fetch();
    CHECK(std::isnan(got[0]));
    CHECK(std::isnan(got[1]));
  }

  TEST_CASE_TEMPLATE("lookups and their gradients have the reference's bits", T, float, double) {
    for (size_t rows : {0, 1, 17, 300})
      for (size_t columns : {1, 5, 64, 300})
        for (size_t table_rows : {1, 7}) {
          auto table = normal<T>(table_rows * columns, 1), found = guarded<T>{rows * columns};
          auto indices = draw_indices(rows, table_rows, 3);
          auto far_indices = on_gpu(indices);
          device_array<T> far_table{table}, far_found{found, 1}, far_aligned{found};
          reference::embedding<T>(plain, table.view(), indices, found.span());
          cuda::embedding<T>(gpu(), far_table.view(), far_indices.view(), far_found.span());
          CHECK(holds_bits(far_found, found));
          cuda::embedding<T>(gpu(), far_table.view(), far_indices.view(), far_aligned.span());
          CHECK(holds_bits(far_aligned, found));
          reference::embedding_gradient<T>(plain, found.view(), indices, table.span());
          cuda::embedding_gradient<T>(gpu(), far_found.view(), far_indices.view(),
                                      far_table.span());
          CHECK(holds_bits(far_table, table));
        }
  }

  TEST_CASE("indices outside a table are found, give NaN, and add nothing") {
    const std::vector<int64_t> indices{0, 2, -1, int64_t{1} << 32, 1};
    auto far_indices = on_gpu(indices);
    CHECK(cuda::find_outside(gpu(), far_indices.view(), 3) == 2);
    CHECK(cuda::find_outside(gpu(), far_indices.view().subspan(4), 2) == 1);
    CHECK(cuda::find_outside(gpu(), far_indices.view(), 0) == 0);
    CHECK(cuda::find_outside(gpu(), far_indices.view().first(0), 3) == 0);
    auto table = normal<float>(6, 1), found = guarded<float>{10};
    device_array<float> far_table{table}, far_found{found};
    cuda::embedding<float>(gpu(), far_table.view(), far_indices.view(), far_found.span());
    auto got = far_found.fetch();
    CHECK(std::isnan(got[4]));
    CHECK(std::isnan(got[7]));
    CHECK(got[9] == table[3]);
    cuda::embedding_gradient<float>(gpu(), far_found.view(), far_indices.view(), far_table.span());
    auto added = far_table.fetch();
    for (size_t i = 0; i < 6; ++i)
      CHECK(added[i] == 2 * table[i]);
  }

  TEST_CASE("the gradient of many lookups of one row adds them one after the other") {
    constexpr size_t lookups = 5000, columns = 3;
    auto table = normal<float>(2 * columns, 1), gradient = normal<float>(lookups * columns, 2);
    std::vector<int64_t> indices(lookups, 1);
    device_array<float> far_table{table}, far_gradient{gradient};
    reference::embedding_gradient<float>(plain, gradient.view(), indices, table.span());
    auto far_indices = on_gpu(indices);
    cuda::embedding_gradient<float>(gpu(), far_gradient.view(), far_indices.view(),
                                    far_table.span());
    CHECK(holds_bits(far_table, table));
  }

  TEST_CASE_TEMPLATE("a mean and its gradient have the cpu twin's bits", T, float, double) {
    for (size_t count : {0, 1, 16, 33, 1025, 20000, 49153}) {
      auto values = normal<T>(count, 1);
      device_array<T> far{values, count % 2};
      auto expected = cpu::mean<T>(fast, values.view());
      CHECK(same_bits(cuda::mean<T>(gpu(), far.view()), expected));
      guarded<T> out{1};
      device_array<T> far_out{out};
      cuda::mean<T>(gpu(), far.view(), far_out.span());
      CHECK(same_bits(far_out.fetch()[0], expected));
      auto of_the_mean = normal<T>(1, 2);
      device_array<T> far_of_the_mean{of_the_mean};
      cpu::mean_gradient<T>(fast, of_the_mean.view(), values.span());
      cuda::mean_gradient<T>(gpu(), far_of_the_mean.view(), far.span());
      CHECK(holds_bits(far, values));
    }
  }

  TEST_CASE_TEMPLATE("a matrix product agrees with the reference, in all its forms", T, float,
                     double) {
    for (size_t rows : {0, 1, 5, 33})
      for (size_t columns : {1, 7, 64})
        for (size_t inner : {0, 1, 31})
          for (int variant = 0; variant < 24; ++variant) {
            matmul_form form{rows, columns, inner, variant % 2 != 0, variant / 2 % 2 != 0, 0.5};
            form.beta = variant / 4 % 3 * 0.5;
            form.batch = variant < 12 ? 1 : 3;
            auto size_c = form.batch * rows * columns;
            auto a = normal<T>(form.batch * rows * inner, 1);
            auto b = normal<T>(form.batch * inner * columns, 2);
            auto c = form.beta == 0 ? extreme<T>(size_c, 3) : normal<T>(size_c, 3);
            device_array<T> far_a{a}, far_b{b}, far_c{c};
            reference::matmul<T>(plain, form, a.view(), b.view(), c.span());
            cuda::matmul<T>(gpu(), form, far_a.view(), far_b.view(), far_c.span());
            auto got = far_c.fetch();
            CHECK(first_not_close(got.span(), c.span(), {roundings<T>(64), roundings<T>(64)})
                  == c.span().size());
          }
  }

  TEST_CASE("a matrix product of less precision agrees with the reference, in all its forms") {
    // Units for 16 bits may cut sums off where others round; those for tf32 may do so with
    // operands, each of which then differs by up to 2^-10.
    constexpr auto of_sums = roundings<float>(256);
    constexpr std::pair<product_precision, double> precisions[]
      = {{product_precision::tf32, 0x1p-9 + of_sums},
         {product_precision::bf16, of_sums},
         {product_precision::f16, of_sums}};
    auto magnitudes = [](guarded<float> of) {
      for (auto& value : of.span())
        value = std::abs(value);
      return of;
    };
    for (auto [precision, share] : precisions)
      for (size_t rows : {0, 1, 33})
        for (size_t columns : {1, 8, 31})
          for (size_t inner : {0, 1, 31, 160})
            for (int variant = 0; variant < 16; ++variant) {
              matmul_form form{rows, columns, inner, variant % 2 != 0, variant / 2 % 2 != 0};
              form.beta = variant / 4 % 2;
              form.batch = variant < 8 ? 1 : 3;
              form.precision = precision;
              auto a = normal<float>(form.batch * rows * inner, 1);
              auto b = normal<float>(form.batch * inner * columns, 2);
              auto c = normal<float>(form.batch * rows * columns, 3);
              auto allowed = magnitudes(c), a_sizes = magnitudes(a), b_sizes = magnitudes(b);
              device_array<float> far_a{a}, far_b{b}, far_c{c};
              reference::matmul<float>(plain, form, a.view(), b.view(), c.span());
              reference::matmul<float>(plain, form, a_sizes.view(), b_sizes.view(), allowed.span());
              cuda::matmul<float>(gpu(), form, far_a.view(), far_b.view(), far_c.span());
              auto got = far_c.fetch();
              auto is_close = [&, share = share](size_t i) {
                return std::abs(got[i] - c[i]) <= share * allowed[i];
              };
              CHECK(std::ranges::all_of(std::views::iota(size_t{0}, c.span().size()), is_close));
            }
  }
}
