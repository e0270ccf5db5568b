// SPDX-License-Identifier: Apache-2.0
// A job with a variable of which every process holds a part: how many gradients its replicas have
// made. The evaluation tells the sum of all parts.
#include "tools/job/job.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  job job{
    argc,
    argv,
    {.defaults = {.steps = 10}, .evaluate = [](std::span<const tensor> values) -> expected<double> {
       return values[1].values<float>()[0];
     }}};
  return job.run([&] {
    auto number = job.strategy().make_variable("number", zeros({1}));
    auto made = job.strategy().make_variable("gradients made", zeros({}),
                                             {.synchronization = variable_synchronization::on_read,
                                              .aggregation = variable_aggregation::sum});
    auto optimizer = job.optimizer(rules::sgd{.learning_rate = 0.1});
    auto step = [=](replica_context& context) -> task<void> {
      auto counting = context.assign_add(made, 1.0);
      co_await counting;
      auto applying = optimizer.apply_gradients(context, zeros({1}), number);
      co_await applying;
    };
    static_cast<void>(job.train(optimizer, step));
  });
}
