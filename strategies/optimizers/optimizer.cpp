// SPDX-License-Identifier: Apache-2.0
// Combines the gradients of all replicas, and has owners and bundles make the updates.
#include "strategies/optimizers/optimizer.hpp"

#include "actors/training/gradient_check.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "kernels/math/clip.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/coordinator/closure_context.hpp"
#include "strategies/optimizers/accumulated_batches.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_set>

namespace troupe {

namespace {

/// A gradient on its way to the owner of its variable.
struct addressed_push {
  variable target;
  msg<wire::PushGradient> push;
  std::optional<gradient> elsewhere{}; ///< On a device where the owner does not take it.
  /// The same on the target's other places, without the first.
  std::vector<msg<wire::PushGradient>> beside{};

  // The message for the part of the target that lies at a place.
  [[nodiscard]] const msg<wire::PushGradient>& push_at(device place) const {
    if (beside.empty() || place == target.place()) return push;
    auto found = std::ranges::find(target.places(), place) - target.places().begin();
    return beside[static_cast<size_t>(found) - 1];
  }
};

// Whether a gradient lies on a device where its owner does not take it. A variable with several
// places takes none from a device, since each place needs its own.
bool lies_elsewhere(gradient gradient, const variable& target) {
  return std::ranges::any_of(arrays_in(gradient), [&](const tensor* array) {
    return is_on_device(*array)
           && (target.places().size() > 1 || !is_taken_there(*array, target.place()));
  });
}

/// The gradients that a replica brings to the merge_call.
using replica_pushes = std::shared_ptr<const std::vector<addressed_push>>;

replica_pushes make_pushes(uint32_t replica, const std::vector<gradient_and_variable>& gradients) {
  auto pushes = std::make_shared<std::vector<addressed_push>>();
  for (const auto& [gradient, variable] : gradients)
    if (lies_elsewhere(gradient, variable))
      pushes->push_back({variable, {}, gradient});
    else
      pushes->push_back({variable, make_push_gradient({.replica = replica}, gradient)});
  return pushes;
}

bool lie_elsewhere(const std::vector<replica_pushes>& by_replica) {
  return std::ranges::any_of(by_replica, [](const replica_pushes& pushes) {
    return std::ranges::any_of(*pushes,
                               [](const auto& push) { return push.elsewhere.has_value(); });
  });
}

void check_same_variables(const std::vector<replica_pushes>& by_replica, uint32_t first_replica) {
  const auto& first = *by_replica.front();
  auto name_in = [](const std::vector<addressed_push>& pushes, size_t at) {
    return at < pushes.size() ? fmt::format("that of '{}'", pushes[at].target.name()) : "none";
  };
  for (size_t i = 1; i < by_replica.size(); ++i) {
    const auto& other = *by_replica[i];
    auto [differs, from]
      = std::ranges::mismatch(other, first, {}, &addressed_push::target, &addressed_push::target);
    if (differs == other.end() && from == first.end()) continue;
    auto at = static_cast<size_t>(from - first.begin());
    throw_failure(errc::invalid_argument,
                  "replica {} brings the gradients of other variables than replica {}: as number "
                  "{} {}, not {}; all replicas have to apply the same, in one order",
                  first_replica + i, first_replica, at + 1, name_in(other, at), name_in(first, at));
  }
}

// A gradient where it lies: in its message, or on a device.
gradient gradient_of(const addressed_push& addressed) {
  if (addressed.elsewhere) return *addressed.elsewhere;
  return *read_gradient(addressed.push.reader().getGradient(), addressed.push.owner());
}

// One gradient for each variable, as if a single replica had brought it.
// @param sums For each variable, one sum, or one for each of its places.
replica_pushes pushes_of_one(const replica_pushes& targets,
                             const std::vector<std::vector<gradient>>& sums) {
  auto pushes = std::make_shared<std::vector<addressed_push>>();
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& target = (*targets)[i].target;
    auto& made
      = pushes->emplace_back(addressed_push{target, make_push_gradient({}, sums[i].front())});
    for (size_t at = 1; at < sums[i].size(); ++at)
      made.beside.push_back(make_push_gradient({}, sums[i][at]));
  }
  return pushes;
}

/// An update of variables: each by itself, or those of a bundle together.
struct update_requests {
  std::vector<std::pair<variable_owner_actor, msg<wire::ApplyUpdate>>> alone;
  std::vector<std::pair<bundle_actor, apply_bundle>> bundled;
  std::vector<size_t> positions_alone;                ///< The position of each target.
  std::vector<std::vector<size_t>> positions_bundled; ///< The positions of each bundle's targets.
};

variable_positions positions_of_targets(const std::vector<addressed_push>& targets) {
  variable_positions positions;
  for (size_t i = 0; i < targets.size(); ++i)
    positions.emplace(targets[i].target, i);
  return positions;
}

/// Makes an update of each target out of the gradients that replicas bring.
class update_maker {
public:
  /// @param holds Whether updates wait for their release.
  update_maker(const msg<wire::UseOptimizer>& named, const std::vector<replica_pushes>& by_replica,
               uint32_t divisor, bool holds)
    : named_(named), by_replica_(by_replica), divisor_(divisor), holds_(holds),
      is_left_(by_replica.front()->size(), true) {}

  /// Makes an update of a bundle's variables, unless one of them has no gradient.
  /// @param variables The strategy's variables.
  void add_bundle(const bundle_of_variables& bundle, std::span<const variable> variables,
                  const variable_positions& of_targets) {
    std::vector<size_t> positions;
    for (auto index : bundle.variables) {
      auto found = of_targets.find(variables[index]);
      if (found == of_targets.end()) return;
      positions.push_back(found->second);
    }
    apply_bundle update{.divisor = divisor_, .hold = holds_, .optimizer = named_};
    for (const auto& pushes : by_replica_) {
      auto& pushed = update.gradients.emplace_back();
      for (auto position : positions) {
        const auto& addressed = (*pushes)[position];
        const auto& push = addressed.push_at(bundle.where);
        value_or_throw(check_gradient(addressed.target.form(), push.reader().getGradient()));
        pushed.gradients.push_back(push);
        is_left_[position] = false;
      }
    }
    made_.bundled.emplace_back(bundle.holder, std::move(update));
    made_.positions_bundled.push_back(std::move(positions));
  }

  /// Makes an update of each target that is in no bundle.
  /// @returns All updates.
  [[nodiscard]] update_requests finish() {
    for (size_t i = 0; i < is_left_.size(); ++i)
      if (is_left_[i]) add_alone(i);
    return std::move(made_);
  }

private:
  void add_alone(size_t position) {
    const auto& target = (*by_replica_.front())[position];
    auto gradients
      = mapped(by_replica_, [&](const auto& pushes) { return (*pushes)[position].push; });
    const auto& beside = target.beside;
    gradients.insert(gradients.end(), beside.begin(), beside.end());
    for (const auto& push : gradients) // before any owner has made its update
      value_or_throw(check_gradient(target.target.form(), push.reader().getGradient()));
    made_.alone.emplace_back(
      target.target.owner(),
      make_apply_update_of(named_, divisor_, gradients, holds_, !beside.empty()));
    made_.positions_alone.push_back(position);
  }

  const msg<wire::UseOptimizer>& named_;
  const std::vector<replica_pushes>& by_replica_;
  uint32_t divisor_;
  bool holds_;
  std::vector<bool> is_left_; ///< By position: whether a target is in no update yet.
  update_requests made_;
};

// @param named The optimizer that all updates name. @param holds Whether they wait for their
// release. @param meeting The strategy of replicas that have met; null: none have.
update_requests make_updates(const msg<wire::UseOptimizer>& named,
                             const std::vector<replica_pushes>& by_replica, uint32_t divisor,
                             bool holds, strategy* meeting) {
  for (const auto& push : *by_replica.front())
    value_or_throw(check_updatable(push.target.form()));
  update_maker maker{named, by_replica, divisor, holds};
  if (meeting != nullptr && !meeting->bundles().all().empty()) {
    auto of_targets = positions_of_targets(*by_replica.front());
    for (const auto& bundle : meeting->bundles().all())
      maker.add_bundle(bundle, meeting->variables(), of_targets);
  }
  return maker.finish();
}

// Gradients as a user has given them, completed by what may be left out.
std::vector<gradient_and_variable> taken(std::string_view call, const strategy& strategy,
                                         std::vector<gradient_and_variable> given) {
  if (given.empty())
    throw_failure(errc::invalid_argument,
                  "No gradients provided for any variable: {} got no gradient", call);
  std::unordered_set<variable> seen;
  for (auto& [gradient, variable] : given) {
    check_made_by(call, strategy, variable);
    if (!seen.insert(variable).second)
      throw_failure(errc::invalid_argument,
                    "{} got two gradients for variable '{}'; give their sum or mean", call,
                    variable.name());
    gradient = widened(completed(std::move(gradient), variable.extents()), variable.type());
  }
  return given;
}

// @param kind The gradients that cannot be accumulated: "that are reduced already".
void check_no_accumulation(const optimizer_options& options, std::string_view kind) {
  if (options.accumulation_steps != 1)
    throw_failure(errc::failed_precondition,
                  "an optimizer that accumulates {} batches cannot apply gradients {}; call "
                  "apply_gradients with those of single batches",
                  options.accumulation_steps, kind);
}

} // namespace

struct optimizer::shared_state {
  update_plan plan;
  optimizer_options options;
  msg<wire::UseOptimizer> named; ///< The plan, as updates name it.

  /// Orders by the actor itself: an actor of another world may have an equal address.
  struct by_identity {
    bool operator()(const caf::actor_addr& left, const caf::actor_addr& right) const {
      return left.get() < right.get();
    }
  };

  std::mutex mutex;
  /// The owners that have agreed to use this optimizer for the updates that name it. As long as an
  /// address is kept, no new actor gets the memory of the old one.
  std::set<caf::actor_addr, by_identity> agreed;

  accumulated_batches batches; ///< Under a lock of their own.

  shared_state(update_plan plan, optimizer_options options)
    : plan(std::move(plan)), options(options), batches(options.accumulation_steps) {}

  // Asks the owners that have not agreed yet, before one of them changes anything. One that refuses
  // is asked again at the next update, so that it answers with the same reason.
  task<void> ask(activity& host, const std::vector<addressed_push>& targets) {
    std::vector<std::pair<variable_owner_actor, msg<wire::UseOptimizer>>> requests;
    {
      std::lock_guard guard{mutex};
      for (const auto& addressed : targets)
        if (auto owner = addressed.target.owner(); !agreed.contains(owner.address()))
          requests.emplace_back(owner, make_use_optimizer(to_settings(plan), true));
    }
    if (requests.empty()) co_return;
    auto asked = mapped(requests, [](const auto& request) { return request.first.address(); });
    auto asking = host.request_all<msg<wire::OptimizerInUse>>(std::move(requests));
    auto answers = co_await asking;
    {
      std::lock_guard guard{mutex};
      for (size_t i = 0; i < answers.size(); ++i)
        if (answers[i]) agreed.insert(asked[i]);
    }
    for (auto& answer : answers)
      static_cast<void>(value_or_throw(std::move(answer)));
  }

  // Sums the gradients of all replicas of all processes: one for each variable, where its owner
  // takes it.
  // @param contributors As for `apply_together`: processes that give another number are refused.
  static task<replica_pushes> combine(cross_replica_context& context,
                                      std::vector<replica_pushes> by_replica,
                                      std::optional<uint32_t> contributors) {
    auto targets = by_replica.front();
    std::vector<replica_gradients> values;
    for (size_t i = 0; i < targets->size(); ++i) {
      const auto& target = (*targets)[i].target;
      device_values inputs{{}, context.strategy().layout().worker_devices};
      for (const auto& pushes : by_replica)
        inputs.components.push_back(gradient_of((*pushes)[i]));
      values.push_back({.name = target.name(),
                        .values = std::move(inputs),
                        .variable = {{target.type(), target.extents()}},
                        .places = target.places()});
    }
    by_replica.clear();
    reduction_call call{"gradient"};
    if (contributors) call.name = fmt::format("gradient by {} contributors", *contributors);
    auto combining = context.reducing().reduce_gradients(std::move(call), std::move(values));
    auto sums = co_await combining;
    co_return pushes_of_one(targets, sums);
  }

  // Brings gradients that are the same in all replicas to where owners take them.
  static task<replica_pushes> bring(cross_replica_context& context,
                                    std::vector<replica_pushes> by_replica) {
    auto targets = by_replica.front();
    std::vector<std::vector<gradient>> copies(targets->size());
    std::vector<std::vector<device>> places;
    for (size_t i = 0; i < copies.size(); ++i) {
      for (const auto& pushes : by_replica)
        copies[i].push_back(gradient_of((*pushes)[i]));
      places.push_back((*targets)[i].target.places());
    }
    by_replica.clear();
    auto bringing = context.reducing().bring(std::move(copies), std::move(places));
    auto brought = co_await bringing;
    co_return pushes_of_one(targets, brought);
  }

  // A replica's gradients. It brings from devices to the host what is needed there: row numbers;
  // and all arrays, if batches are accumulated, or the numbers are to be widened.
  task<std::vector<gradient_and_variable>> take(replica_context& context, std::string_view call,
                                                std::vector<gradient_and_variable> given) const {
    std::vector<tensor*> arrays;
    for (auto& [gradient, variable] : given) {
      if (!lies_on_device(gradient)) continue;
      auto* rows = std::get_if<indexed_slices>(&gradient);
      if (options.accumulation_steps > 1 || is_narrower(gradient, variable.type()))
        std::ranges::copy(arrays_in(gradient), std::back_inserter(arrays));
      else if (rows != nullptr)
        arrays.push_back(&rows->indices);
    }
    if (!arrays.empty()) {
      auto bringing = context.bring_to_host(std::move(arrays));
      co_await bringing;
    }
    co_return taken(call, context.strategy(), std::move(given));
  }

  // Applies the gradients of replicas that have met. @param are_reduced Whether each replica brings
  // the sum of all. @param contributors The divisor of a mean; nothing: all replicas.
  task<void> apply_together(cross_replica_context& context, std::vector<replica_pushes> by_replica,
                            bool are_reduced, std::optional<uint32_t> contributors = {}) {
    check_same_variables(by_replica, context.strategy().first_local_replica());
    auto are_elsewhere = lie_elsewhere(by_replica);
    if (are_reduced && !are_elsewhere) by_replica.resize(1);
    if (are_elsewhere || (!are_reduced && context.group() != nullptr)) {
      auto inputs = std::exchange(by_replica, {});
      auto gathering = are_reduced ? bring(context, std::move(inputs))
                                   : combine(context, std::move(inputs), contributors);
      auto gathered = co_await gathering;
      by_replica.push_back(std::move(gathered));
    }
    auto replicas = contributors.value_or(context.num_replicas_in_sync());
    auto applying = apply(context.host(), std::move(by_replica), replicas, &context.strategy());
    co_await applying;
  }

  // @param replicas The number of replicas that the gradients come from.
  // @param meeting The strategy, where replicas have met.
  task<void> apply(activity& host, std::vector<replica_pushes> by_replica, uint32_t replicas,
                   strategy* meeting = nullptr) {
    auto divisor
      = (options.aggregation == reduce_op::mean ? replicas : 1) * options.accumulation_steps;
    auto holds = options.clip_global_norm > 0;
    auto targets = by_replica.front()->size();
    auto updates = make_updates(named, by_replica, divisor, holds, meeting);
    auto asking = ask(host, *by_replica.front());
    co_await asking;
    by_replica.clear();
    if (!holds) {
      auto applying = make_all(host, std::move(updates.bundled), std::move(updates.alone));
      co_await applying;
      co_return;
    }
    std::vector<std::pair<update_holder_actor, msg<wire::ReleaseUpdate>>> releases;
    for (const auto& [owner, update] : updates.alone)
      releases.emplace_back(owner, msg<wire::ReleaseUpdate>{});
    for (const auto& [bundle, update] : updates.bundled)
      releases.emplace_back(bundle, msg<wire::ReleaseUpdate>{});
    auto measuring = measure(host, std::move(updates), targets);
    auto squares = co_await measuring;
    auto scale = clip_factor(std::sqrt(squares), options.clip_global_norm);
    for (auto& [holder, release] : releases)
      release = make_release_update(scale);
    auto applying = make_all(host, {}, std::move(releases));
    co_await applying;
  }

  // Asks all owners and bundles for updates, or to release those that they hold. @returns Their
  // answers: first of single variables, then of bundles.
  template <class Handle, class Message>
  static task<std::vector<msg<wire::UpdateApplied>>>
  make_all(activity& host, std::vector<std::pair<bundle_actor, apply_bundle>> bundled,
           std::vector<std::pair<Handle, msg<Message>>> alone) {
    auto begun = host.begin_requests<msg<wire::UpdateApplied>>(std::move(bundled));
    auto applying = host.request_all<msg<wire::UpdateApplied>>(std::move(alone));
    auto answers = co_await applying;
    auto settling = host.settled(begun);
    auto of_bundles = co_await settling;
    std::ranges::move(of_bundles, std::back_inserter(answers));
    std::vector<msg<wire::UpdateApplied>> applied;
    for (auto& answer : answers)
      applied.push_back(value_or_throw(std::move(answer)));
    co_return applied;
  }

  // Has owners and bundles hold their updates. @returns The squares of all mean gradients, added up
  // in the order of targets. Several devices with copies of a variable have measured the same.
  static task<double> measure(activity& host, update_requests updates, size_t targets) {
    auto holding = make_all(host, std::move(updates.bundled), std::move(updates.alone));
    auto held = co_await holding;
    std::vector<double> squares(targets);
    auto answer = held.begin();
    for (auto position : updates.positions_alone)
      squares[position] = (answer++)->reader().getSquaredNorm();
    for (const auto& positions : updates.positions_bundled) {
      auto norms = (answer++)->reader().getSquaredNorms();
      for (uint32_t i = 0; i < norms.size(); ++i)
        squares[positions[i]] = norms[i];
    }
    co_return std::accumulate(squares.begin(), squares.end(), 0.0);
  }
};

optimizer::optimizer(update_rule rule, optimizer_options options, learning_rate_schedule schedule)
  : optimizer(update_plan{.rule = rule, .schedule = std::move(schedule)}, options) {}

optimizer::optimizer(update_plan plan, optimizer_options options)
  : state_(std::make_shared<shared_state>(std::move(plan), options)) {
  value_or_throw(validate(state_->plan));
  state_->named = make_use_optimizer(to_settings(state_->plan));
  if (options.accumulation_steps == 0)
    throw_failure(errc::invalid_argument,
                  "accumulation_steps is 0; an update needs at least 1 batch");
  if (!(options.clip_global_norm >= 0))
    throw_failure(errc::invalid_argument, "clip_global_norm is {}; a norm is not negative",
                  options.clip_global_norm);
}

const optimizer_options& optimizer::options() const {
  return state_->options;
}

task<bool>
optimizer::apply_gradients(replica_context& context,
                           std::vector<gradient_and_variable> gradients_and_variables) const {
  context_check::replica("apply_gradients", context);
  auto taking = state_->take(context, "apply_gradients", std::move(gradients_and_variables));
  auto gradients = co_await taking;
  auto state = state_;
  auto replica = context.replica_id_in_sync_group();
  auto failed = context.strategy().failed_runs();
  auto complete
    = state->batches.add({context.strategy().number(), replica}, std::move(gradients), failed);
  if (!complete) co_return false;
  auto apply = [state](cross_replica_context& cross, distributed_value<replica_pushes> pushes) {
    return state->apply_together(cross, pushes.local_results(), false);
  };
  auto merging = context.merge_call(apply, make_pushes(replica, *complete));
  complete.reset(); // from here on the messages hold the gradients
  co_await merging;
  co_return true;
}

task<void> optimizer::apply_gradients(replica_context& context,
                                      std::vector<gradient_and_variable> gradients_and_variables,
                                      uint32_t contributors) const {
  context_check::replica("apply_gradients", context);
  auto taking = state_->take(context, "apply_gradients", std::move(gradients_and_variables));
  auto gradients = co_await taking;
  if (contributors == 0 || contributors > context.num_replicas_in_sync())
    throw_failure(errc::invalid_argument, "{} of {} replicas cannot have brought gradients",
                  contributors, context.num_replicas_in_sync());
  check_no_accumulation(state_->options, "that are of some replicas only");
  auto apply = [state = state_](cross_replica_context& cross, distributed_value<uint32_t> counts,
                                distributed_value<replica_pushes> pushes) {
    auto count = counts.primary();
    for (auto other : counts.local_results())
      if (other != count)
        throw_failure(
          errc::invalid_argument,
          "replicas say that {} and that {} of them have brought gradients; all have to give "
          "the same number",
          count, other);
    return state->apply_together(cross, pushes.local_results(), false, count);
  };
  auto pushes = make_pushes(context.replica_id_in_sync_group(), gradients);
  gradients.clear(); // from here on the messages hold the gradients
  auto merging = context.merge_call(apply, contributors, std::move(pushes));
  co_await merging;
}

task<bool>
optimizer::apply_gradients(closure_context& context,
                           std::vector<gradient_and_variable> gradients_and_variables) const {
  context.check_wanted();
  for (const auto& [gradient, variable] : gradients_and_variables)
    check_on_host(gradient);
  auto gradients = taken("apply_gradients", context.strategy(), std::move(gradients_and_variables));
  auto state = state_;
  if (state->options.clip_global_norm > 0)
    throw_failure(
      errc::unimplemented,
      "clip_global_norm needs all gradients of a step at once, but workers do not wait for "
      "each other; clip by clip_by_global_norm before");
  auto worker = context.worker_index();
  auto complete = state->batches.add({context.strategy().number(), worker}, std::move(gradients));
  if (!complete) co_return false;
  std::vector<replica_pushes> pushes{make_pushes(worker, *complete)};
  complete.reset(); // from here on the messages hold the gradients
  auto applying = state->apply(context.host(), std::move(pushes), 1);
  co_await applying;
  co_return true;
}

task<bool> optimizer::apply_gradients(replica_context& context, troupe::gradient gradient,
                                      troupe::variable variable) const {
  return apply_gradients(context, {{std::move(gradient), std::move(variable)}});
}

task<void> optimizer::apply_reduced_gradients(
  replica_context& context, std::vector<gradient_and_variable> gradients_and_variables) const {
  context_check::replica("apply_reduced_gradients", context);
  auto taking
    = state_->take(context, "apply_reduced_gradients", std::move(gradients_and_variables));
  auto gradients = co_await taking;
  check_no_accumulation(state_->options, "that are reduced already");
  auto apply
    = [state = state_](cross_replica_context& cross, distributed_value<replica_pushes> pushes) {
        return state->apply_together(cross, pushes.local_results(), true);
      };
  auto pushes = make_pushes(context.replica_id_in_sync_group(), gradients);
  gradients.clear(); // from here on the messages hold the gradients
  auto merging = context.merge_call(apply, std::move(pushes));
  co_await merging;
}

task<double> optimizer::minimize(replica_context& context, loss_function loss,
                                 std::vector<variable> variables, double grad_loss) const {
  auto computing = compute_gradients(context, std::move(loss), std::move(variables), grad_loss);
  auto computed = co_await computing;
  auto applying = apply_gradients(context, std::move(computed.gradients_and_variables));
  co_await applying;
  co_return computed.loss;
}

task<double> optimizer::minimize(replica_context& context, loss_function loss) const {
  return minimize(context, std::move(loss), context.strategy().trainable_variables());
}

task<double> optimizer::minimize(replica_context& context, loss_function loss,
                                 gradient_buckets buckets) const {
  check_no_accumulation(state_->options, "that are reduced already");
  auto marker = buckets.begin(context);
  auto take
    = [marker](const variable& variable, const gradient& final) { marker.ready(variable, final); };
  auto computing = compute_gradients(context, std::move(loss), buckets.variables(), take);
  auto value = co_await computing;
  auto reducing = buckets.reduced(context);
  auto sums = co_await reducing;
  auto applying = apply_reduced_gradients(context, std::move(sums));
  co_await applying;
  co_return value;
}

} // namespace troupe
