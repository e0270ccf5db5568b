// SPDX-License-Identifier: Apache-2.0
// Fills buckets on computing threads, sends full ones, and waits for their sums.
#include "strategies/contexts/gradient_buckets.hpp"

#include "kernels/math/cast.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/process_exchange.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

namespace troupe {

namespace {

std::vector<std::vector<size_t>> layout_of(const std::vector<variable>& variables,
                                           size_t bytes_per_bucket) {
  std::vector<std::vector<size_t>> buckets;
  size_t filled = 0;
  for (auto i = variables.size(); i-- > 0;) {
    const auto& variable = variables[i];
    auto is_full = filled > bytes_per_bucket;
    if (buckets.empty() || is_full || variables[buckets.back().back()].type() != variable.type()) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled
      += static_cast<size_t>(variable.extents().element_count()) * element_bytes(variable.type());
  }
  return buckets;
}

void check_extents(const variable& variable, const shape& gradient) {
  if (gradient != variable.extents())
    throw_failure(errc::invalid_argument, "a gradient of variable '{}' has shape {}, not {}",
                  variable.name(), to_string(gradient), to_string(variable.extents()));
}

// Numbers in the dtype of their variable. Narrower ones on a device stay as they are: only actors
// ask devices.
tensor widened(const variable& variable, const tensor& values) {
  check_row_major(values);
  if (values.type() == variable.type()) return values.contiguous();
  if (!widens_to(values.type(), variable.type()))
    throw_failure(errc::type_mismatch,
                  "a gradient of variable '{}' is {}, which does not widen to {}", variable.name(),
                  to_string(values.type()), to_string(variable.type()));
  return is_on_device(values) ? values : cast(values, variable.type());
}

// The array that the rows of a gradient are rows of.
tensor array_of_rows(const variable& variable, const indexed_slices& slices) {
  check_on_host(slices);
  auto rows = std::get<indexed_slices>(completed(slices, variable.extents()));
  check_extents(variable, rows.dense_extents);
  auto row_count = variable.extents().rank() == 0 ? 0 : variable.extents()[0];
  auto width = row_count == 0 ? 0 : variable.extents().element_count() / row_count;
  auto numbers = rows.indices.element_count();
  if (rows.indices.type() != dtype::i64 || rows.values.element_count() != numbers * width)
    throw_failure(
      errc::invalid_argument,
      "a gradient of variable '{}' has {} numbers of rows, and {} numbers for rows of {}",
      variable.name(), numbers, rows.values.element_count(), width);
  auto indices = rows.indices.contiguous();
  auto row_numbers = indices.values<int64_t>();
  if (auto outside = cpu::find_outside({}, row_numbers, row_count); outside < row_numbers.size())
    throw_failure(errc::invalid_argument, "a gradient of variable '{}' has row {}; there are {}",
                  variable.name(), row_numbers[outside], row_count);
  if (variable.type() != dtype::f32 && variable.type() != dtype::f64)
    throw_failure(errc::type_mismatch,
                  "variable '{}' is {}; rows are gradients of f32 and f64 alone", variable.name(),
                  to_string(variable.type()));
  auto values = widened(variable, rows.values);
  auto array = zeros(variable.extents(), variable.type());
  auto add = [&]<class T>(T) {
    cpu::embedding_gradient<T>({}, values.values<T>(), row_numbers, array.mutable_values<T>());
  };
  variable.type() == dtype::f64 ? add(double{}) : add(float{});
  return array;
}

// A gradient as an array, `widened`.
tensor array_of(const variable& variable, const gradient& gradient) {
  if (const auto* rows = std::get_if<indexed_slices>(&gradient))
    return array_of_rows(variable, *rows);
  const auto& dense = std::get<tensor>(gradient);
  check_extents(variable, dense.extents());
  return widened(variable, dense);
}

} // namespace

struct gradient_buckets::shared_state {
  strategy& owner;
  std::vector<variable> variables;
  variable_positions positions;
  std::vector<std::vector<size_t>> buckets;
  std::vector<size_t> bucket_of; ///< The bucket of each variable.
  uint32_t replicas;
  caf::actor courier; ///< Takes buckets to the communicator, in their order; null if there is none.

  std::mutex leaving; ///< Held while buckets leave, so that they do in their order.
  std::mutex mutex;   ///< Guards all members that follow.
  std::vector<std::vector<std::optional<tensor>>> gradients; ///< By variable and replica.
  std::vector<bool> begun;                                   ///< By replica.
  std::vector<size_t> missing;                               ///< Gradients that a bucket lacks.
  std::vector<std::vector<tensor>> sums; ///< By variable: one, or one for each of its places.
  size_t left = 0;                       ///< Buckets that have left.
  size_t settled = 0;                    ///< Buckets that have their sums, or have failed.
  std::optional<error> first_error;
  replica_actor waiting; ///< The replica to wake; null while none waits.

  shared_state(strategy& strategy, std::vector<variable> trained, size_t bytes_per_bucket)
    : owner(strategy), variables(std::move(trained)), positions(positions_of(variables)),
      buckets(layout_of(variables, bytes_per_bucket)), bucket_of(variables.size()),
      replicas(strategy.num_local_replicas()) {
    for (size_t bucket = 0; bucket < buckets.size(); ++bucket)
      for (auto i : buckets[bucket])
        bucket_of[i] = bucket;
    clear();
  }

  ~shared_state() {
    if (courier) caf::anon_send_exit(courier, caf::exit_reason::user_shutdown);
  }

  [[nodiscard]] const process_group* group() const { return owner.layout().group.get(); }

  void clear() {
    gradients.assign(variables.size(), std::vector<std::optional<tensor>>(replicas));
    begun.assign(replicas, false);
    sums.assign(variables.size(), {});
    missing = mapped(buckets, [&](const auto& bucket) { return bucket.size() * replicas; });
    left = 0;
    settled = 0;
    first_error.reset();
    waiting = nullptr;
  }

  [[nodiscard]] size_t index_of(const variable& variable) const {
    auto found = positions.find(variable);
    if (found == positions.end())
      throw_failure(errc::invalid_argument, "variable '{}' is in none of the gradient buckets",
                    variable.name());
    return found->second;
  }

  // @returns Whether the gradient was the last that its bucket lacked.
  bool put(size_t index, uint32_t replica, tensor gradient) {
    std::lock_guard guard{mutex};
    auto& kept = gradients[index][replica];
    if (kept)
      throw_failure(errc::failed_precondition,
                    "the gradient of variable '{}' of replica {} is ready twice",
                    variables[index].name(), owner.first_local_replica() + replica);
    kept = std::move(gradient);
    return --missing[bucket_of[index]] == 0;
  }

  // Refuses a step that lacks a gradient.
  void check_complete() {
    std::lock_guard guard{mutex};
    for (size_t i = 0; i < variables.size(); ++i)
      for (uint32_t replica = 0; replica < replicas; ++replica)
        if (!gradients[i][replica])
          throw_failure(
            errc::failed_precondition,
            "the gradient of variable '{}' of replica {} is not ready; mark it before `reduced`",
            variables[i].name(), owner.first_local_replica() + replica);
  }

  // Whether some buckets are not settled yet; then the last one wakes `replica`.
  [[nodiscard]] bool must_wait(const replica_actor& replica) {
    std::lock_guard guard{mutex};
    if (settled == buckets.size()) return false;
    waiting = replica;
    return true;
  }

  // The next bucket that is full, if all before it have left. A bucket with gradients on devices
  // stays until all replicas have met: only actors ask devices. @pre The caller holds `leaving`.
  std::optional<size_t> next(bool have_met) {
    std::lock_guard guard{mutex};
    if (left == buckets.size() || missing[left] > 0) return std::nullopt;
    if (!have_met && std::ranges::any_of(buckets[left], [&](size_t i) { return has_devices(i); }))
      return std::nullopt;
    return left++;
  }

  // The gradients that are to be widened, but lie on devices; with their variables, by index.
  [[nodiscard]] std::vector<std::pair<size_t, tensor*>> narrow_ones() {
    std::lock_guard guard{mutex};
    std::vector<std::pair<size_t, tensor*>> found;
    for (size_t i = 0; i < variables.size(); ++i)
      for (auto& gradient : gradients[i])
        if (is_on_device(*gradient) && gradient->type() != variables[i].type())
          found.emplace_back(i, &*gradient);
    return found;
  }

  /// The gradients that have not left when all replicas have met.
  struct rest_of_step {
    bool is_on_devices = false;
    std::vector<replica_gradients> values; ///< By variable, in the order in which they leave.
    std::vector<tensor*> for_the_host;     ///< Gradients that devices do not add between processes.
  };

  [[nodiscard]] rest_of_step rest() {
    std::lock_guard guard{mutex};
    rest_of_step result;
    for (auto bucket = left; bucket < buckets.size(); ++bucket)
      for (auto i : buckets[bucket]) {
        auto parts = mapped(gradients[i], [](const auto& gradient) { return *gradient; });
        result.is_on_devices |= has_devices(i);
        if (!are_reduced_on_devices(parts, group(), {}))
          for (auto& gradient : gradients[i])
            result.for_the_host.push_back(&*gradient);
        const auto& variable = variables[i];
        result.values.push_back(
          {.name = variable.name(),
           .values = {{parts.begin(), parts.end()}, owner.layout().worker_devices},
           .variable = {{variable.type(), variable.extents()}},
           .places = variable.places()});
      }
    return result;
  }

  // @param results The sums of `rest().values`.
  void settle_rest(const std::vector<std::vector<gradient>>& results) {
    auto next = results.begin();
    for (; left < buckets.size(); ++left) {
      std::vector<std::vector<tensor>> of_bucket(buckets[left].size());
      for (auto& of_variable : of_bucket)
        of_variable = mapped(*next++, [](const auto& sum) { return std::get<tensor>(sum); });
      settle(left, of_bucket);
    }
  }

  // A replica among those of this process. Errors: invalid_argument for another strategy's.
  [[nodiscard]] uint32_t place_of(const replica_context& context) const {
    if (&context.strategy() != &owner)
      throw_failure(errc::invalid_argument, "gradient buckets of another strategy; make them for "
                                            "the one whose replicas compute the gradients");
    return context.replica_id_in_sync_group() - owner.first_local_replica();
  }

  // Sends the buckets that may leave. @param have_met Whether all replicas wait for that.
  static void leave(const std::shared_ptr<shared_state>& state, bool have_met);

  // Sends the buckets that waited until all replicas have met.
  static task<void> leave_devices(std::shared_ptr<shared_state> state,
                                  cross_replica_context& context);

  // Whether some replica left its gradient of a variable on a device. @pre `mutex` is held.
  [[nodiscard]] bool has_devices(size_t i) const {
    return std::ranges::any_of(
      gradients[i], [](const auto& gradient) { return gradient && is_on_device(*gradient); });
  }

  // Notes the sums of a bucket over all replicas. @returns Functions that return the sums later.
  // @param exchange With other processes; null: there are none.
  [[nodiscard]] std::vector<pending<tensor>> sums_of(size_t bucket, process_exchange* exchange) {
    std::lock_guard guard{mutex};
    std::vector<pending<tensor>> pending_sums;
    for (auto i : buckets[bucket]) {
      std::vector<tensor> contributions;
      for (auto& gradient : gradients[i])
        contributions.push_back(std::move(*std::exchange(gradient, tensor{})));
      pending_sums.push_back(
        reduce_arrays(reduce_op::sum, contributions, exchange, variables[i].name()));
    }
    return pending_sums;
  }

  // Keeps the sums of a bucket. @param failed Why there are none.
  void settle(size_t bucket, const std::vector<pending<tensor>>& pending_sums,
              std::optional<error> failed = {}) {
    std::vector<std::vector<tensor>> results;
    for (size_t i = 0; i < pending_sums.size() && !failed; ++i)
      results.push_back({pending_sums[i]()});
    settle(bucket, results, failed);
  }

  void settle(size_t bucket, const std::vector<std::vector<tensor>>& results,
              std::optional<error> failed = {}) {
    std::lock_guard guard{mutex};
    for (size_t i = 0; i < results.size(); ++i)
      sums[buckets[bucket][i]] = results[i];
    if (failed && !first_error) first_error = failed;
    if (++settled == buckets.size() && waiting)
      caf::anon_send(std::exchange(waiting, nullptr), wake{});
  }

  // The sums for each replica. If a sum lies in several places, a replica gets the one that lies
  // where its gradient lay.
  // @pre The caller holds `mutex`; all buckets are settled.
  [[nodiscard]] std::vector<std::vector<gradient_and_variable>> results() const {
    std::vector<std::vector<gradient_and_variable>> by_replica(replicas);
    for (uint32_t replica = 0; replica < replicas; ++replica)
      for (size_t i = 0; i < variables.size(); ++i) {
        auto place = gradients[i][replica]->device();
        auto found = std::ranges::find(sums[i], place, &tensor::device);
        by_replica[replica].push_back(
          {found == sums[i].end() ? sums[i].front() : *found, variables[i]});
      }
    return by_replica;
  }
};

namespace {

/// A bucket on its way to the other processes.
struct leaving_bucket {
  process_exchange exchange;
  packed_calls packed;
  std::function<void(std::optional<error>)> settled; ///< Told when its sums are there, or why not.
  std::vector<tensor> results{};                     ///< By call.
  size_t answered = 0;                               ///< Calls that are over.
  std::optional<error> failed{};

  void on_answer() {
    if (++answered < packed.calls.size()) return;
    if (!failed) exchange.settle(packed, results);
    settled(failed);
  }
};

using shared_bucket = std::shared_ptr<leaving_bucket>;

} // namespace

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::shared_bucket)

namespace troupe {

namespace {

caf::behavior carry(caf::event_based_actor* self, communicator_actor communicator) {
  return {[self, communicator](const shared_bucket& bucket) {
    bucket->results.resize(bucket->packed.calls.size());
    for (size_t i = 0; i < bucket->packed.calls.size(); ++i)
      self
        ->request(communicator, caf::infinite, bucket->packed.calls[i]) // it has a deadline
        .then(
          [bucket, i](const collective_result& sum) {
            bucket->results[i] = sum.value;
            bucket->on_answer();
          },
          [bucket](const caf::error& reason) {
            if (!bucket->failed) bucket->failed = from_caf(reason);
            bucket->on_answer();
          });
  }};
}

} // namespace

void gradient_buckets::shared_state::leave(const std::shared_ptr<shared_state>& state,
                                           bool have_met) {
  std::lock_guard leaving{state->leaving};
  while (auto bucket = state->next(have_met)) {
    const auto* group = state->group();
    if (group == nullptr) {
      state->settle(*bucket, state->sums_of(*bucket, nullptr));
      continue;
    }
    process_exchange exchange{*group, "gradient", state->owner.run_count()};
    auto sums = state->sums_of(*bucket, &exchange);
    exchange.prepare({});
    auto packed = exchange.packed();
    // The courier may live longer than the buckets, but a bucket on its way keeps them.
    auto settled = [state = std::weak_ptr{state}, at = *bucket, sums](std::optional<error> failed) {
      if (auto alive = state.lock()) alive->settle(at, sums, failed);
    };
    caf::anon_send(state->courier, std::make_shared<leaving_bucket>(leaving_bucket{
                                     std::move(exchange), std::move(packed), settled}));
  }
}

task<void> gradient_buckets::shared_state::leave_devices(std::shared_ptr<shared_state> state,
                                                         cross_replica_context& context) {
  auto narrow = state->narrow_ones();
  auto bringing_narrow
    = context.bring_to_host(mapped(narrow, [](auto& one) { return one.second; }));
  co_await bringing_narrow;
  for (auto& [index, gradient] : narrow)
    *gradient = widened(state->variables[index], *gradient);
  auto rest = state->rest();
  if (state->group() != nullptr || !rest.is_on_devices) {
    auto bringing = context.bring_to_host(std::move(rest.for_the_host));
    co_await bringing;
    leave(state, true);
    co_return;
  }
  auto reducing = context.reducing().reduce_gradients({"gradient"}, std::move(rest.values));
  auto sums = co_await reducing;
  state->settle_rest(sums);
}

struct gradient_buckets::marker::place {
  std::shared_ptr<shared_state> state;
  uint32_t replica;
};

gradient_buckets::gradient_buckets(strategy& strategy, std::vector<variable> variables,
                                   size_t bytes_per_bucket) {
  if (variables.empty())
    throw_failure(errc::invalid_argument, "gradient buckets of no variables; give those to train");
  std::unordered_set<variable> seen;
  for (const auto& variable : variables) {
    check_made_by("gradient_buckets", strategy, variable);
    if (!seen.insert(variable).second)
      throw_failure(errc::invalid_argument, "variable '{}' is given twice", variable.name());
  }
  state_ = std::make_shared<shared_state>(strategy, std::move(variables), bytes_per_bucket);
  if (const auto* group = state_->group()) {
    state_->courier = strategy.world().system().spawn(carry, group->communicator);
    strategy.world().introduce(state_->courier.id(), "gradient buckets");
  }
}

const std::vector<variable>& gradient_buckets::variables() const {
  return state_->variables;
}

const std::vector<std::vector<size_t>>& gradient_buckets::layout() const {
  return state_->buckets;
}

size_t gradient_buckets::settled() const {
  std::lock_guard guard{state_->mutex};
  return state_->settled;
}

gradient_buckets::marker gradient_buckets::begin(replica_context& context) const {
  context_check::replica("begin", context);
  auto replica = state_->place_of(context);
  std::lock_guard guard{state_->mutex};
  if (state_->begun[replica])
    throw_failure(
      errc::failed_precondition,
      "replica {} begins a step whose gradients were not reduced before; await `reduced` "
      "first, and after a run that failed make new gradient_buckets",
      context.replica_id_in_sync_group());
  state_->begun[replica] = true;
  return marker{std::make_shared<const marker::place>(marker::place{state_, replica})};
}

void gradient_buckets::marker::ready(const variable& variable, const gradient& gradient) const {
  const auto& state = place_->state;
  auto index = state->index_of(variable);
  if (state->put(index, place_->replica, array_of(variable, gradient)))
    shared_state::leave(state, false);
}

task<std::vector<gradient_and_variable>> gradient_buckets::reduced(replica_context& context) const {
  auto collect = [state = state_](cross_replica_context& context)
    -> task<std::shared_ptr<const std::vector<std::vector<gradient_and_variable>>>> {
    state->check_complete();
    auto leaving = shared_state::leave_devices(state, context);
    co_await leaving;
    if (state->must_wait(context.host().handle())) {
      auto sleeping = context.host().woken();
      co_await sleeping;
    }
    auto results = std::make_shared<std::vector<std::vector<gradient_and_variable>>>();
    std::lock_guard guard{state->mutex};
    auto error = state->first_error;
    if (!error) *results = state->results();
    state->clear();
    if (error) throw failure{*error};
    co_return results;
  };
  auto replica = state_->place_of(context);
  auto merging = context.merge_call(collect);
  auto results = co_await merging;
  co_return (*results)[replica];
}

} // namespace troupe
