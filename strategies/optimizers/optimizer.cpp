// SPDX-License-Identifier: Apache-2.0
// From the gradients of all replicas to the owners' passes.
#include "strategies/optimizers/optimizer.hpp"

#include "actors/training/gradient_check.hpp"
#include "actors/training/optimizer_settings.hpp"
#include "kernels/math/clip.hpp"
#include "messages/tensor_message.hpp"
#include "messages/throw_failure.hpp"
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
#include <unordered_map>

namespace troupe {

namespace {

/// A gradient on its way to the owner of its variable.
struct addressed_push {
  variable target;
  msg<wire::PushGradient> push;
  std::optional<gradient> there{}; ///< On a device where the owner does not take it.
  std::vector<msg<wire::PushGradient>>
    beside{}; ///< The same on the target's other places, without the first.

  // The message for the part of the target that lies at a place.
  [[nodiscard]] const msg<wire::PushGradient>& push_at(device place) const {
    if (beside.empty() || place == target.place()) return push;
    auto found = std::ranges::find(target.places(), place) - target.places().begin();
    return beside[static_cast<size_t>(found) - 1];
  }
};

// Whether a gradient lies on a device where its owner does not take it. A variable with several
// places takes none from a device, since each place needs its own.
bool lies_elsewhere(gradient of, const variable& target) {
  return std::ranges::any_of(arrays_in(of), [&](const tensor* array) {
    return is_on_device(*array)
           && (target.places().size() > 1 || !is_taken_there(*array, target.place()));
  });
}

/// The gradients that a replica brings to the merge_call.
using brought_pushes = std::shared_ptr<const std::vector<addressed_push>>;

brought_pushes make_pushes(uint32_t replica, const std::vector<gradient_and_variable>& gradients) {
  auto pushes = std::make_shared<std::vector<addressed_push>>();
  for (const auto& [gradient, variable] : gradients)
    if (lies_elsewhere(gradient, variable))
      pushes->push_back({variable, {}, gradient});
    else
      pushes->push_back({variable, make_push_gradient({.replica = replica}, gradient)});
  return pushes;
}

bool are_on_devices(const std::vector<brought_pushes>& all) {
  auto is_there = [](const addressed_push& one) { return one.there.has_value(); };
  return std::ranges::any_of(
    all, [&](const auto& brought) { return std::ranges::any_of(*brought, is_there); });
}

void check_same_variables(const std::vector<brought_pushes>& all, uint32_t first_replica) {
  const auto& first = *all.front();
  auto name_in = [](const std::vector<addressed_push>& pushes, size_t at) {
    return at < pushes.size() ? fmt::format("that of '{}'", pushes[at].target.name()) : "none";
  };
  for (size_t i = 1; i < all.size(); ++i) {
    const auto& other = *all[i];
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
  if (addressed.there) return *addressed.there;
  auto given = read_gradient(addressed.push.reader().getGradient(), addressed.push.owner());
  return *given;
}

// One gradient for each variable, as if a single replica had brought it.
// @param sums For each variable, one sum, or one for each of its places.
brought_pushes pushes_of_one(const brought_pushes& targets,
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
  std::vector<size_t> which_alone;                ///< Positions of targets.
  std::vector<std::vector<size_t>> which_bundled; ///< Positions of the targets of each bundle.
};

// The position of a variable's only gradient among the targets; nothing, if it has several.
using target_positions = std::unordered_map<variable, std::optional<size_t>>;

target_positions positions_of_targets(const std::vector<addressed_push>& targets) {
  target_positions positions;
  for (size_t i = 0; i < targets.size(); ++i)
    if (auto [at, is_new] = positions.emplace(targets[i].target, i); !is_new) at->second.reset();
  return positions;
}

// Adds an update of a bundle's variables, unless one of them has no gradient, or several.
// @param variables The strategy's variables.
// @param of_targets The positions of targets.
// @param left By position: whether a target is in no bundle yet. Clears it for the bundle's
// targets.
void take_bundle(update_requests& to, const bundle_of_variables& bundle,
                 std::span<const variable> variables, const target_positions& of_targets,
                 const std::vector<brought_pushes>& all, uint32_t divisor, bool holds,
                 std::vector<bool>& left) {
  std::vector<size_t> positions;
  for (auto index : bundle.variables) {
    auto found = of_targets.find(variables[index]);
    if (found == of_targets.end() || !found->second) return;
    positions.push_back(*found->second);
  }
  apply_bundle update{.divisor = divisor, .hold = holds};
  for (const auto& brought : all) {
    auto& pushed = update.gradients.emplace_back();
    for (auto position : positions) {
      const auto& one = (*brought)[position];
      const auto& push = one.push_at(bundle.where);
      value_or_throw(check_gradient(one.target.form(), push.reader().getGradient()));
      pushed.gradients.push_back(push);
      left[position] = false;
    }
  }
  to.bundled.emplace_back(bundle.holder, std::move(update));
  to.which_bundled.push_back(std::move(positions));
}

// @param holds Whether updates wait for their release.
// @param meeting The strategy of replicas that have met; null: none have.
update_requests make_updates(const std::vector<brought_pushes>& all, uint32_t divisor, bool holds,
                             strategy* meeting) {
  update_requests made;
  const auto& targets = *all.front();
  std::vector<bool> left(targets.size(), true);
  if (meeting != nullptr && !meeting->bundles().all().empty()) {
    auto of_targets = positions_of_targets(targets);
    for (const auto& bundle : meeting->bundles().all())
      take_bundle(made, bundle, meeting->variables(), of_targets, all, divisor, holds, left);
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!left[i]) continue;
    std::vector<msg<wire::PushGradient>> pushes;
    for (const auto& brought : all)
      pushes.push_back((*brought)[i].push);
    const auto& beside = targets[i].beside;
    pushes.insert(pushes.end(), beside.begin(), beside.end());
    for (const auto& push : pushes) // before any owner has made its update
      value_or_throw(check_gradient(targets[i].target.form(), push.reader().getGradient()));
    auto update = beside.empty() ? make_apply_update(0, divisor, pushes, holds)
                                 : make_apply_update_beside(divisor, pushes, holds);
    made.alone.emplace_back(targets[i].target.owner(), std::move(update));
    made.which_alone.push_back(i);
  }
  return made;
}

// Gradients as a user has given them, completed by what may be left out.
std::vector<gradient_and_variable> taken(std::string_view call, const strategy& by,
                                         std::vector<gradient_and_variable> given) {
  if (given.empty())
    throw_failure(errc::invalid_argument,
                  "No gradients provided for any variable: {} got no gradient", call);
  for (auto& [gradient, variable] : given) {
    check_made_by(call, by, variable);
    gradient = completed(std::move(gradient), variable.extents());
  }
  return given;
}

void check_no_accumulation(const optimizer_options& options, std::string_view which) {
  if (options.accumulation_steps != 1)
    throw_failure(errc::failed_precondition,
                  "an optimizer that accumulates {} batches cannot apply gradients {}; call "
                  "apply_gradients with those of single batches",
                  options.accumulation_steps, which);
}

} // namespace

struct optimizer::shared_state {
  update_plan plan;
  optimizer_options options;

  /// An owner that knows what an update does, and the teller that told it.
  using told_owner = std::pair<caf::actor_addr, uint32_t>;

  /// Orders by the actor itself: an actor of another world may have an equal address.
  struct by_identity {
    bool operator()(const told_owner& one, const told_owner& other) const {
      return std::pair{one.first.get(), one.second} < std::pair{other.first.get(), other.second};
    }
  };

  std::mutex mutex;
  /// The owners that were told of this optimizer. Replica 0 tells them for all replicas, but each
  /// worker for itself: its messages may come before another's. As long as an address is kept, no
  /// new actor gets the memory of the old one.
  std::set<told_owner, by_identity> ready;

  accumulated_batches batches; ///< Under a lock of their own.

  shared_state(update_plan its_plan, optimizer_options its_options)
    : plan(std::move(its_plan)), options(its_options), batches(options.accumulation_steps) {}

  // Tells owners that do not know, or were told of another optimizer since.
  task<void> use(activity& host, uint32_t teller, const std::vector<addressed_push>& targets) {
    std::vector<std::pair<variable_owner_actor, msg<wire::UseOptimizer>>> requests;
    {
      std::lock_guard guard{mutex};
      for (const auto& to : targets) {
        auto was_last = to.target.note_optimizer(this);
        if (ready.insert({to.target.owner().address(), teller}).second || !was_last)
          requests.emplace_back(to.target.owner(), make_use_optimizer(to_settings(plan)));
      }
    }
    auto asking = host.request_all<msg<wire::OptimizerInUse>>(std::move(requests));
    auto answers = co_await asking;
    for (auto& answer : answers)
      static_cast<void>(value_or_throw(std::move(answer)));
  }

  // Sums the gradients of all replicas of all processes: one for each variable, where its owner
  // takes it.
  // @param contributors As for `apply_together`: processes that give another number are refused.
  static task<brought_pushes> combine(cross_replica_context& cross, std::vector<brought_pushes> all,
                                      std::optional<uint32_t> contributors) {
    auto targets = all.front();
    std::vector<replica_gradients> values;
    for (size_t i = 0; i < targets->size(); ++i) {
      const auto& target = (*targets)[i].target;
      device_values brought{{}, cross.strategy().layout().worker_devices};
      for (const auto& of_replica : all)
        brought.components.push_back(gradient_of((*of_replica)[i]));
      values.push_back({.name = target.name(),
                        .values = std::move(brought),
                        .of = {{target.type(), target.extents()}},
                        .places = target.places()});
    }
    all.clear();
    reduction_call how{"gradient"};
    if (contributors) how.what = fmt::format("gradient by {} contributors", *contributors);
    auto combining = cross.reducing().reduce_gradients(std::move(how), std::move(values));
    auto sums = co_await combining;
    co_return pushes_of_one(targets, sums);
  }

  // Brings gradients that are the same in all replicas to where owners take them.
  static task<brought_pushes> bring(cross_replica_context& cross, std::vector<brought_pushes> all) {
    auto targets = all.front();
    std::vector<std::vector<gradient>> same(targets->size());
    std::vector<std::vector<device>> places;
    for (size_t i = 0; i < same.size(); ++i) {
      for (const auto& of_replica : all)
        same[i].push_back(gradient_of((*of_replica)[i]));
      places.push_back((*targets)[i].target.places());
    }
    all.clear();
    auto bringing = cross.reducing().bring(std::move(same), std::move(places));
    auto brought = co_await bringing;
    co_return pushes_of_one(targets, brought);
  }

  // A replica's gradients. It brings from devices to the host what is needed there: row numbers;
  // and all arrays, if batches are accumulated.
  task<std::vector<gradient_and_variable>> take(replica_context& context, std::string_view call,
                                                std::vector<gradient_and_variable> given) const {
    std::vector<tensor*> wanted;
    for (auto& [gradient, variable] : given) {
      if (!lies_on_device(gradient)) continue;
      auto* rows = std::get_if<indexed_slices>(&gradient);
      if (options.accumulation_steps > 1)
        std::ranges::copy(arrays_in(gradient), std::back_inserter(wanted));
      else if (rows != nullptr)
        wanted.push_back(&rows->indices);
    }
    if (!wanted.empty()) {
      auto bringing = context.bring_to_host(std::move(wanted));
      co_await bringing;
    }
    co_return taken(call, context.strategy(), std::move(given));
  }

  // Applies the gradients of replicas that have met. @param are_reduced Whether each replica brings
  // the sum of all. @param contributors The divisor of a mean; nothing: all replicas.
  task<void> apply_together(cross_replica_context& cross, std::vector<brought_pushes> all,
                            bool are_reduced, std::optional<uint32_t> contributors = {}) {
    check_same_variables(all, cross.strategy().first_local_replica());
    auto lie_elsewhere = are_on_devices(all);
    if (are_reduced && !lie_elsewhere) all.resize(1);
    if (lie_elsewhere || (!are_reduced && cross.group() != nullptr)) {
      auto given = std::exchange(all, {});
      auto gathering = are_reduced ? bring(cross, std::move(given))
                                   : combine(cross, std::move(given), contributors);
      auto gathered = co_await gathering;
      all.push_back(std::move(gathered));
    }
    auto replicas = contributors.value_or(cross.num_replicas_in_sync());
    auto applying = apply(cross.host(), std::move(all), replicas, 0, &cross.strategy());
    co_await applying;
  }

  // @param replicas The number of replicas that the gradients come from.
  // @param teller The replica or worker that tells owners of the optimizer.
  // @param meeting The strategy, where replicas have met.
  task<void> apply(activity& host, std::vector<brought_pushes> all, uint32_t replicas,
                   uint32_t teller = 0, strategy* meeting = nullptr) {
    auto using_it = use(host, teller, *all.front());
    co_await using_it;
    auto divisor
      = (options.aggregation == reduce_op::mean ? replicas : 1) * options.accumulation_steps;
    auto holds = options.clip_global_norm > 0;
    auto targets = all.front()->size();
    auto updates = make_updates(all, divisor, holds, meeting);
    all.clear();
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
    auto said = held.begin();
    for (auto target : updates.which_alone)
      squares[target] = (said++)->reader().getSquaredNorm();
    for (const auto& positions : updates.which_bundled) {
      auto each = (said++)->reader().getSquaredNorms();
      for (uint32_t k = 0; k < each.size(); ++k)
        squares[positions[k]] = each[k];
    }
    co_return std::accumulate(squares.begin(), squares.end(), 0.0);
  }
};

optimizer::optimizer(update_rule rule, optimizer_options options, learning_rate_schedule schedule)
  : optimizer(update_plan{.rule = rule, .schedule = std::move(schedule)}, options) {}

optimizer::optimizer(update_plan plan, optimizer_options options)
  : state_(std::make_shared<shared_state>(std::move(plan), options)) {
  value_or_throw(validate(state_->plan));
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
  auto complete = state->batches.add(replica, std::move(gradients), failed);
  if (!complete) co_return false;
  auto apply = [state](cross_replica_context& cross, distributed_value<brought_pushes> all) {
    return state->apply_together(cross, all.local_results(), false);
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
                                distributed_value<brought_pushes> all) {
    auto count = counts.primary();
    for (auto other : counts.local_results())
      if (other != count)
        throw_failure(
          errc::invalid_argument,
          "replicas say that {} and that {} of them have brought gradients; all have to give "
          "the same number",
          count, other);
    return state->apply_together(cross, all.local_results(), false, count);
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
  auto gradients = taken("apply_gradients", context.strategy(), std::move(gradients_and_variables));
  auto state = state_;
  if (state->options.clip_global_norm > 0)
    throw_failure(
      errc::unimplemented,
      "clip_global_norm needs all gradients of a step at once, but workers do not wait for "
      "each other; clip by clip_by_global_norm before");
  for (const auto& [gradient, variable] : gradients)
    check_on_host(gradient);
  auto worker = context.worker_index();
  auto complete = state->batches.add(worker, std::move(gradients));
  if (!complete) co_return false;
  std::vector<brought_pushes> pushes{make_pushes(worker, *complete)};
  complete.reset(); // from here on the messages hold the gradients
  auto applying = state->apply(context.host(), std::move(pushes), 1, worker);
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
    = [state = state_](cross_replica_context& cross, distributed_value<brought_pushes> all) {
        return state->apply_together(cross, all.local_results(), true);
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
  auto take = [marker](const variable& of, const gradient& final) { marker.ready(of, final); };
  auto computing = compute_gradients(context, std::move(loss), buckets.variables(), take);
  auto value = co_await computing;
  auto reducing = buckets.reduced(context);
  auto sums = co_await reducing;
  auto applying = apply_reduced_gradients(context, std::move(sums));
  co_await applying;
  co_return value;
}

} // namespace troupe
