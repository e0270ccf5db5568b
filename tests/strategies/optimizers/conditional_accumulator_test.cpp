// SPDX-License-Identifier: Apache-2.0
// Goal: accumulators of a user's own behave, call by call, as TensorFlow's conditional
// accumulators. Method: each sentence of their documentation and kernels, with numbers worked out
// by hand.
#include "kernels/math/cast.hpp"
#include "strategies/optimizers/conditional_accumulator.hpp"
#include "tests/strategies/small_job.hpp"

#include <limits>

namespace conditional_accumulator_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using doubles = std::vector<double>;
using rows = std::vector<int64_t>;

tensor vector_of(const std::vector<float>& values) {
  return make_tensor({static_cast<int64_t>(values.size())}, values);
}

tensor indices_of(const rows& values) {
  tensor result{dtype::i64, {static_cast<int64_t>(values.size())}};
  std::copy(values.begin(), values.end(), result.mutable_values<int64_t>().begin());
  return result;
}

/// Rows of two elements, each filled with one value.
indexed_slices slices_of(const rows& indices, const std::vector<float>& fills,
                         const shape& dense = {}) {
  tensor values{dtype::f32, {static_cast<int64_t>(fills.size()), 2}};
  for (size_t i = 0; i < fills.size(); ++i)
    std::fill_n(values.mutable_values<float>().begin() + static_cast<ptrdiff_t>(2 * i), 2,
                fills[i]);
  return {indices_of(indices), values, dense};
}

doubles values_of(const tensor& values) {
  auto numbers = values.values<float>();
  return {numbers.begin(), numbers.end()};
}

doubles dense(const aggregated_gradient& taken) {
  return values_of(std::get<tensor>(taken.gradient));
}

const indexed_slices& sparse(const aggregated_gradient& taken) {
  return std::get<indexed_slices>(taken.gradient);
}

rows rows_of(const aggregated_gradient& taken) {
  auto numbers = sparse(taken).indices.values<int64_t>();
  return {numbers.begin(), numbers.end()};
}

/// The first element of each row.
doubles fills_of(const aggregated_gradient& taken) {
  auto all = values_of(sparse(taken).values);
  doubles firsts;
  for (size_t i = 0; i < all.size(); i += 2)
    firsts.push_back(all[i]);
  return firsts;
}

template <class Function>
void refuses(const Function& function, std::string_view line) {
  auto reason = refusal_of(function);
  CHECK(reason.code == errc::invalid_argument);
  CHECK_MESSAGE(reason.message.find(line) != std::string::npos, reason.message);
}

struct virtual_stage {
  troupe::world world = troupe::world::virtual_time();
};

} // namespace

TEST_SUITE("strategies/optimizers/conditional_accumulator") {
  TEST_CASE_FIXTURE(virtual_stage, "the mean is over the gradients accepted, not those required") {
    conditional_accumulator sum{world};
    for (float value : {1.F, 2.F, 6.F})
      CHECK(sum.apply_grad(vector_of({value, 2 * value})) == verdict::accepted);
    auto taken = sum.take_grad(1);
    CHECK(dense(taken) == doubles{3, 6});
    CHECK(taken.count == 3);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a sum divides by nothing") {
    conditional_accumulator sum{world, {.reduction_type = reduction::sum}};
    sum.apply_grad(vector_of({1}));
    sum.apply_grad(vector_of({5}));
    CHECK(dense(sum.take_grad(2)) == doubles{6});
  }

  TEST_CASE_FIXTURE(virtual_stage, "16-bit floats are summed in 32 bits and rounded once") {
    conditional_accumulator mean{world, {.type = dtype::f16}};
    for (float value : {2048.F, 1.F, 1.F}) { // 2048 + 1 is 2048 in 16 bits
      tensor half{dtype::f16, {1}};
      cpu::cast({}, elements{vector_of({value})}, mutable_elements{half});
      mean.apply_grad(half);
    }
    auto taken = std::get<tensor>(mean.take_grad(3).gradient);
    CHECK(taken.type() == dtype::f16);
    CHECK(to_float(taken.values<float16>()[0]) == to_float(to_float16(2050.F / 3)));
  }

  TEST_CASE_FIXTURE(virtual_stage, "an integer accumulator is refused") {
    auto reason = refusal_of([&] { conditional_accumulator{world, {.type = dtype::i32}}; });
    CHECK(reason.code == errc::type_mismatch);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a gradient behind the step is dropped, unseen, and said so") {
    conditional_accumulator mean{world, {.shape = shape{1}}};
    mean.set_global_step(3);
    CHECK(mean.apply_grad(vector_of({1, 2, 3}), 2) == verdict::stale); // nor is its shape looked at
    CHECK(mean.num_accumulated() == 0);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a gradient ahead of the step is accepted") {
    conditional_accumulator mean{world};
    CHECK(mean.apply_grad(vector_of({1}), 7) == verdict::accepted);
    CHECK(mean.num_accumulated() == 1);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a take raises the step by one and forgets what it took") {
    conditional_accumulator mean{world};
    mean.apply_grad(vector_of({4}));
    CHECK(mean.take_grad(1).global_step == 0);
    CHECK(mean.num_accumulated() == 0);
    CHECK(mean.apply_grad(vector_of({9}), 0) == verdict::stale);
    CHECK(mean.apply_grad(vector_of({9}), 1) == verdict::accepted);
    CHECK(dense(mean.take_grad(1)) == doubles{9});
  }

  TEST_CASE_FIXTURE(virtual_stage, "setting the step keeps what has been accepted") {
    conditional_accumulator mean{world};
    mean.apply_grad(vector_of({4}));
    mean.set_global_step(5);
    CHECK(mean.num_accumulated() == 1);
    CHECK(mean.apply_grad(vector_of({1}), 4) == verdict::stale);
    mean.set_global_step(2); // lower is allowed
    CHECK(mean.apply_grad(vector_of({6}), 2) == verdict::accepted);
    CHECK(dense(mean.take_grad(2)) == doubles{5});
  }

  TEST_CASE_FIXTURE(virtual_stage, "taking none is refused") {
    conditional_accumulator mean{world};
    refuses([&] { static_cast<void>(mean.take_grad(0)); },
            "Argument num_required must be positive, but it is 0");
  }

  TEST_CASE_FIXTURE(virtual_stage, "taking a negative number is refused, not waited for") {
    conditional_accumulator mean{world};
    refuses([&] { static_cast<void>(mean.take_grad(-1)); },
            "Argument num_required must be positive, but it is -1");
    refuses([&] { static_cast<void>(mean.take_grad(int64_t{1} << 32)); },
            "num_required is 4294967296; at most 4294967295 gradients can be required");
    sparse_conditional_accumulator rows{world};
    refuses([&] { static_cast<void>(rows.take_indexed_slices_grad(-7)); },
            "Argument num_required must be positive, but it is -7");
  }

  TEST_CASE_FIXTURE(virtual_stage, "a take that nothing can serve is stalled in virtual time") {
    conditional_accumulator mean{world};
    mean.apply_grad(vector_of({4}));
    auto reason = refusal_of([&] { static_cast<void>(mean.take_grad(2)); });
    CHECK(reason.code == errc::stalled);
    mean.apply_grad(vector_of({6})); // not for the one that has given up
    CHECK(mean.num_accumulated() == 2);
  }

  TEST_CASE("a take that waits can be cancelled, and is out of the way then") {
    auto world = world::threads({.threads = 1});
    conditional_accumulator mean{world};
    mean.apply_grad(vector_of({4}));
    std::stop_source stop;
    stop.request_stop();
    auto reason = refusal_of([&] { static_cast<void>(mean.take_grad(2, stop.get_token())); });
    CHECK(reason.code == errc::cancelled);
    CHECK(reason.message == "TakeGrad operation was cancelled");
    CHECK(dense(mean.take_grad(1)) == doubles{4});
  }

  // ---- shapes of dense gradients ----

  TEST_CASE_FIXTURE(virtual_stage, "without a shape the first gradient decides until it is taken") {
    conditional_accumulator mean{world};
    mean.apply_grad(vector_of({1, 2}));
    refuses(
      [&] {
        mean.apply_grad(vector_of({1, 2, 3}));
      },
      "Shape mismatch: expected [2], got [3]");
    CHECK(mean.num_accumulated() == 1); // what was refused changes nothing
    static_cast<void>(mean.take_grad(1));
    CHECK(mean.apply_grad(vector_of({1, 2, 3}), 1) == verdict::accepted);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a declared shape holds always, but for what it leaves open") {
    conditional_accumulator mean{world, {.shape = shape{-1, 2}}};
    CHECK(mean.apply_grad(zeros({5, 2})) == verdict::accepted);
    refuses([&] { mean.apply_grad(zeros({4, 2})); }, "expected [5, 2], got [4, 2]");
    refuses([&] { mean.apply_grad(zeros({5, 3})); }, "expected [5, 2], got [5, 3]");
    static_cast<void>(mean.take_grad(1));
    refuses([&] { mean.apply_grad(zeros({4, 3}), 1); }, "expected [-1, 2], got [4, 3]");
    CHECK(mean.apply_grad(zeros({4, 2}), 1) == verdict::accepted);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a gradient of more dimensions than a message has is refused") {
    conditional_accumulator mean{world};
    auto reason = refusal_of([&] { mean.apply_grad(zeros(shape{std::vector<int64_t>(33, 1)})); });
    CHECK(reason.code == errc::limit_exceeded);
  }

  TEST_CASE_FIXTURE(virtual_stage, "another dtype or a sparse gradient is refused") {
    conditional_accumulator mean{world, {.name = "mine"}};
    refuses([&] { mean.apply_grad(zeros({1}, dtype::f64)); },
            "accumulator 'mine': expected a gradient of f32, got f64");
  }

  // ---- sparse gradients ----

  TEST_CASE_FIXTURE(virtual_stage, "a row's mean is over the gradients that hold it") {
    sparse_conditional_accumulator mean{world};
    mean.apply_indexed_slices_grad(slices_of({0, 2}, {2, 8}));
    mean.apply_indexed_slices_grad(slices_of({2, 5}, {4, 3}));
    auto taken = mean.take_indexed_slices_grad(2);
    CHECK(rows_of(taken) == rows{0, 2, 5});
    CHECK(fills_of(taken) == doubles{2, 6, 3});
    CHECK(taken.count == 2);
  }

  TEST_CASE_FIXTURE(virtual_stage, "a sparse SUM adds rows and divides by nothing") {
    sparse_conditional_accumulator sum{world, {.reduction_type = reduction::sum}};
    sum.apply_indexed_slices_grad(slices_of({0, 2}, {2, 8}));
    sum.apply_indexed_slices_grad(slices_of({2, 5}, {4, 3}));
    CHECK(fills_of(sum.take_indexed_slices_grad(2)) == doubles{2, 12, 3});
  }

  TEST_CASE_FIXTURE(virtual_stage, "rows may come in any order, twice and below zero") {
    sparse_conditional_accumulator mean{world};
    mean.apply_indexed_slices_grad(slices_of({3, -2, 3}, {1, 5, 2}));
    auto taken = mean.take_indexed_slices_grad(1);
    CHECK(rows_of(taken) == rows{-2, 3});
    CHECK(fills_of(taken) == doubles{5, 3}); // one gradient holds row 3, though twice
  }

  TEST_CASE_FIXTURE(virtual_stage, "the gradient's own dense shape is never remembered") {
    sparse_conditional_accumulator any{world};
    any.apply_indexed_slices_grad(slices_of({1}, {1}, {10, 2}));
    CHECK(sparse(any.take_indexed_slices_grad(1)).dense_extents == shape{-1, 2});
    sparse_conditional_accumulator declared{world, {.shape = shape{7, 2}}};
    declared.apply_indexed_slices_grad(slices_of({1}, {1}));
    CHECK(sparse(declared.take_indexed_slices_grad(1)).dense_extents == shape{7, 2});
  }

  TEST_CASE_FIXTURE(virtual_stage, "row numbers of 32 bits are widened") {
    sparse_conditional_accumulator mean{world};
    tensor indices{dtype::i32, {1}};
    indices.mutable_values<int32_t>()[0] = 9;
    CHECK(mean.apply_grad(indices, zeros({1, 2})) == verdict::accepted);
    CHECK(rows_of(mean.take_indexed_slices_grad(1)) == rows{9});
  }

  TEST_CASE_FIXTURE(virtual_stage, "a scalar parameter is sent as row 0 of one element") {
    sparse_conditional_accumulator mean{world, {.shape = shape{}}};
    mean.apply_grad(indices_of({0}), vector_of({3}));
    mean.apply_grad(indices_of({0}), vector_of({5}));
    auto taken = mean.take_indexed_slices_grad(2);
    CHECK(values_of(sparse(taken).values) == doubles{4});
  }

  TEST_CASE_FIXTURE(virtual_stage, "a gradient without rows is a gradient") {
    sparse_conditional_accumulator mean{world};
    CHECK(mean.apply_indexed_slices_grad(slices_of({}, {})) == verdict::accepted);
    auto taken = mean.take_indexed_slices_grad(1);
    CHECK(rows_of(taken).empty());
    CHECK(taken.count == 1);
  }

  TEST_CASE_FIXTURE(virtual_stage, "sparse gradients are checked in TensorFlow's order") {
    sparse_conditional_accumulator mean{world, {.shape = shape{4, 2}}};
    auto apply
      = [&](const tensor& indices, const tensor& values, const std::optional<shape>& dense = {}) {
          return [&mean, indices, values, dense] { mean.apply_grad(indices, values, dense); };
        };
    tensor square{dtype::i64, {1, 1}};
    refuses(apply(square, zeros({})), "Input indices should be vector but received shape: [1, 1]");
    refuses(apply(indices_of({9}), zeros({})), "Values cannot be 0-dimensional.");
    refuses(apply(indices_of({9}), zeros({2, 3})), "Expected 1 non-empty input values, got 2");
    refuses(apply(indices_of({9}), zeros({1, 3}), shape{4}),
            "expected shape rank at least 2, got 1");
    refuses(apply(indices_of({9}), zeros({1, 3}), shape{5, 2}),
            "expected shape dim 0 to be 4, got 5");
    refuses(apply(indices_of({9}), zeros({1, 3}), shape{4, 2}),
            "index of slice 0 exceeded limits of shape; index is 9 exceeded 4");
    refuses(apply(indices_of({3}), zeros({1}), shape{4, 2}),
            "expected values rank at least 2, got 1");
    refuses(apply(indices_of({3}), zeros({1, 3})), "expected values dim 1 to be 2, got 3");
    CHECK(mean.num_accumulated() == 0);
  }

  TEST_CASE_FIXTURE(virtual_stage, "row numbers that cannot be counted are refused") {
    constexpr auto most = std::numeric_limits<int64_t>::max();
    sparse_conditional_accumulator mean{world, {.shape = shape{most, 2}}};
    for (auto row : {most - 1, -most})
      refuses(
        [&] {
          mean.apply_grad(indices_of({row}), zeros({1, 2}));
        },
        "index of slice 0 exceeded limits of shape");
  }

  TEST_CASE_FIXTURE(virtual_stage, "later gradients are compared with the first of the step") {
    sparse_conditional_accumulator mean{world, {.shape = shape{4}}};
    mean.apply_grad(indices_of({1}), zeros({1, 2})); // extents beyond the declared ones are free
    refuses([&] { mean.apply_grad(indices_of({1}), zeros({1})); }, "expected values rank 2, got 1");
    refuses(
      [&] {
        mean.apply_grad(indices_of({1}), zeros({1, 3}));
      },
      "expected values dim 1 to be 2, got 3");
    static_cast<void>(mean.take_indexed_slices_grad(1));
    mean.apply_grad(indices_of({1}), zeros({1, 3}), {}, 1);
    CHECK(mean.num_accumulated() == 1);
  }

  // ---- from step functions ----

  TEST_CASE("replicas synchronise through an accumulator of their own, without an optimizer's") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 3}};
    auto unused = strategy.make_variable("unused", zeros({1}));
    sync_replicas_optimizer barrier{rules::sgd{}, {3, 3, sync_policy::latest_token}};
    conditional_accumulator mean{world};
    std::vector<double> seen(3);
    auto step = [=, &seen](replica_context& context) mutable -> task<void> {
      auto id = context.replica_id_in_sync_group();
      auto pushing = mean.apply_grad(context, vector_of({static_cast<float>(id)}), 0);
      auto judged = co_await pushing;
      CHECK(judged == verdict::accepted);
      if (id == 0) { // the first replica takes for all
        auto taking = mean.take_grad(context, 3);
        auto taken = co_await taking;
        seen[id] = dense(taken)[0];
      }
      auto applying = barrier.apply_gradients(context, zeros({1}), unused);
      co_await applying;
    };
    auto report = train(strategy, barrier, step, {.steps = 1});
    CHECK_FALSE(report.failure);
    CHECK(seen[0] == 1);
  }
}

} // namespace conditional_accumulator_test
