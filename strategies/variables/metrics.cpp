// SPDX-License-Identifier: Apache-2.0
// Adds up on each replica, and reads the sums over all.
#include "strategies/variables/metrics.hpp"

#include "kernels/tensor/elements.hpp"
#include "messages/errors/throw_failure.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

tensor pair_of(double total, double count) {
  auto both = zeros({2}, dtype::f64);
  both.mutable_values<double>()[0] = total;
  both.mutable_values<double>()[1] = count;
  return both;
}

size_t correct_rows(const tensor& predictions, const tensor& labels) {
  if (predictions.rank() != 2 || labels.rank() != 1 || labels.type() != dtype::i64
      || predictions.extents()[0] != labels.extents()[0] || !is_floating(predictions.type()))
    throw_failure(errc::invalid_argument,
                  "accuracy takes predictions of shape [rows, classes] and i64 labels of shape "
                  "[rows], not {} and {} of shape {}",
                  to_string(predictions.extents()), to_string(labels.type()),
                  to_string(labels.extents()));
  auto scores = predictions.contiguous();
  auto truth = labels.contiguous();
  auto classes = static_cast<size_t>(predictions.extents()[1]);
  size_t correct = 0;
  visit_floating(scores.type(), [&]<class T>(T) {
    auto numbers = scores.values<T>();
    auto smaller = [](T a, T b) { return widen<double>(a) < widen<double>(b); };
    auto is_nan = [](T number) { return std::isnan(widen<double>(number)); };
    for (size_t row = 0; row < truth.element_count() && classes > 0; ++row) {
      auto of_row = numbers.subspan(row * classes, classes);
      auto best = std::ranges::max_element(of_row, smaller) - of_row.begin();
      auto is_right = best == truth.values<int64_t>()[row] && std::ranges::none_of(of_row, is_nan);
      correct += is_right ? 1 : 0;
    }
  });
  return correct;
}

} // namespace

running_total::running_total(strategy& strategy, std::string name)
  : strategy_(&strategy),
    totals_(strategy.make_variable(std::move(name), zeros({2}, dtype::f64),
                                   {.synchronization = variable_synchronization::on_read,
                                    .aggregation = variable_aggregation::sum})) {}

void running_total::reset_state() {
  strategy_->assign(totals_, 0.0);
}

task<void> running_total::add(replica_context& context, double total, double count) const {
  auto adding = context.assign_add(totals_, pair_of(total, count));
  co_await adding;
}

std::pair<double, double> running_total::totals() const {
  auto both = strategy_->read(totals_);
  return {both.values<double>()[0], both.values<double>()[1]};
}

double mean_metric::result() const {
  auto [total, weight] = totals();
  return weight == 0 ? 0 : total / weight;
}

task<void> accuracy_metric::update_state(replica_context& context, tensor predictions,
                                         tensor labels) const {
  auto rows = static_cast<double>(labels.element_count());
  auto correct = static_cast<double>(correct_rows(predictions, labels));
  return add(context, correct, rows);
}

} // namespace troupe
