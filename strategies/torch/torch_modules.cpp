// SPDX-License-Identifier: Apache-2.0
// Makes a module for each replica, and lends it the variables.
#include "strategies/torch/torch_modules.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/torch/lent_module.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace troupe {

namespace {

// Refuses a module that differs from the first one: training must not depend on which replica made
// its module first.
void check_equal(uint32_t replica, const std::vector<parameter_form>& forms,
                 const std::vector<parameter_form>& first_forms) {
  if (forms == first_forms) return;
  auto describe = [](const std::vector<parameter_form>& all, size_t i) {
    return i < all.size()
             ? fmt::format("'{}', {} {}{}", all[i].name, to_string(all[i].type),
                           to_string(all[i].extents), all[i].trained ? "" : ", not trained")
             : "none";
  };
  size_t first = 0;
  while (first < forms.size() && first < first_forms.size() && forms[first] == first_forms[first])
    ++first;
  throw_failure(
    errc::invalid_argument,
    "the module of replica {} differs from the first that was made: parameter {} is {}, not "
    "{}; have the function make equal modules",
    replica, first, describe(forms, first), describe(first_forms, first));
}

} // namespace

struct torch_modules::shared_state {
  random_key initial;
  module_maker make;
  lent_module first; ///< The one that evaluates.
  std::mutex evaluating;
  std::mutex making; ///< Held while `make` is called, which may have state of its own.
  std::vector<variable> variables;
  std::vector<std::unique_ptr<lent_module>> by_replica; ///< Each is looked at by its replica alone.

  shared_state(strategy& owner, module_maker maker)
    : initial(owner.world().seed(), "initial variables"), make(std::move(maker)),
      first(make, initial), by_replica(owner.num_replicas_in_sync()) {
    auto values = first.give_initial_values();
    for (size_t i = 0; i < values.size(); ++i)
      variables.push_back(owner.make_variable(first.forms()[i].name, values[i],
                                              {.trainable = first.forms()[i].trained}));
  }

  lent_module& module_of(uint32_t replica) {
    auto& own = by_replica[replica];
    if (own) return *own;
    auto made = made_alone();
    check_equal(replica, made->forms(), first.forms());
    static_cast<void>(made->give_initial_values());
    own = std::move(made);
    return *own;
  }

  std::unique_ptr<lent_module> made_alone() {
    std::scoped_lock alone{making};
    return std::make_unique<lent_module>(make, initial);
  }
};

torch_modules::torch_modules(strategy& owner, module_maker make)
  : state_(std::make_shared<shared_state>(owner, std::move(make))) {}

const std::vector<variable>& torch_modules::variables() const {
  return state_->variables;
}

std::vector<variable> torch_modules::trained() const {
  std::vector<variable> trained;
  std::ranges::copy_if(state_->variables, std::back_inserter(trained), &variable::trainable);
  return trained;
}

task<computed_gradients> torch_modules::compute_gradients(replica_context& context,
                                                          module_loss loss) const {
  auto found = std::make_shared<std::vector<gradient_and_variable>>();
  auto take = [found](const variable& of, const gradient& final) { found->push_back({final, of}); };
  auto computing = compute_gradients(context, std::move(loss), gradient_taker{take});
  auto value = co_await computing;
  std::ranges::sort(*found, {}, [](const auto& pair) { return pair.variable.index(); });
  co_return computed_gradients{value, std::move(*found)};
}

task<double> torch_modules::compute_gradients(replica_context& context, module_loss loss,
                                              gradient_taker take) const {
  check_given("compute_gradients", loss);
  check_given("compute_gradients", take);
  auto state = state_;
  auto replica = context.replica_id_in_sync_group();
  auto reading = context.read(state->variables);
  auto values = co_await reading;
  auto batch = context.random("batch");
  auto draws = context.random("libtorch");
  auto computing = context.compute([=](const std::stop_token& stop) {
    auto ready
      = [&](size_t parameter, const gradient& final) { take(state->variables[parameter], final); };
    return state->module_of(replica).differentiate(values, loss, batch, draws, ready, stop);
  });
  auto value = co_await computing;
  co_return value;
}

double torch_modules::evaluate(std::span<const tensor> values,
                               const std::function<double(torch::nn::Module&)>& measure) const {
  check_given("evaluate", measure);
  std::scoped_lock alone{state_->evaluating};
  return state_->first.evaluate(values, state_->initial.derive("evaluation"), measure);
}

} // namespace troupe
