// SPDX-License-Identifier: Apache-2.0
// The worker that calls a scheduled function, as that function sees it.
#pragma once

#include "actors/world/activity.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/contexts/variable_access.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class closure_context;

/// While it lives, all reads of a variable in this call give the value of the first one, whatever
/// changes the variable meanwhile.
class variable_read_cache {
public:
  /// @param context Outlives it. Errors: throws `failure` with invalid_argument inside another one.
  explicit variable_read_cache(closure_context& context);
  ~variable_read_cache();
  variable_read_cache(const variable_read_cache&) = delete;
  variable_read_cache& operator=(const variable_read_cache&) = delete;

private:
  closure_context& context_;
};

/// A scheduled function reads variables, computes, and changes variables, while other workers do
/// the same: changes interleave, each is made as a whole, and there are no locks. A function that
/// is not needed any more, since another has failed, stops at the next call of this context, which
/// throws `failure` with cancelled; it need not be caught.
///
/// Thread: only the function that it was given to.
class closure_context final : public variable_access {
public:
  /// Which call this is, and where.
  struct place {
    uint32_t worker = 0;
    uint32_t workers = 1;
    uint64_t closure = 0; ///< Counts from 1.
    troupe::strategy* owner = nullptr;
  };

  closure_context(activity& activity, place at) : activity_(activity), place_(at) {}

  closure_context(const closure_context&) = delete;
  closure_context& operator=(const closure_context&) = delete;

  /// The worker that calls the function: 0 to below `num_workers`.
  [[nodiscard]] uint32_t worker_index() const { return place_.worker; }

  [[nodiscard]] uint32_t num_workers() const { return place_.workers; }

  /// The number of the scheduled call, from 1; the same if another worker has to call it again.
  [[nodiscard]] uint64_t closure() const { return place_.closure; }

  [[nodiscard]] troupe::strategy& strategy() const { return *place_.owner; }

  /// A random stream of this call: the same numbers if another worker has to call it again.
  [[nodiscard]] random_key random(std::string_view purpose) const;

  /// Whether the result is needed no more.
  [[nodiscard]] bool is_cancelled() const { return activity_.is_cancelled(); }

  /// The values of variables as they are now: immutable views. A variable that is named twice has
  /// one value. Cost: one request for each variable, all at once.
  [[nodiscard]] task<std::vector<tensor>> read(std::vector<variable> variables);

  [[nodiscard]] task<tensor> read(variable source) override;

  /// See `variable_read_cache`. Errors: as there.
  [[nodiscard]] variable_read_cache cache_variable_reads() { return variable_read_cache{*this}; }

  /// Runs `work(std::stop_token)` on the world's computing threads and gives back what it returns.
  /// Errors: rethrows what `work` threw; throws `failure` with cancelled, as all calls.
  template <class Work>
  [[nodiscard]] task<std::invoke_result_t<Work, std::stop_token>> compute(Work work);

  /// Asks an actor and waits for its `Reply`; an awaitable of `expected<Reply>`.
  template <class Reply, class Handle, class Message>
  [[nodiscard]] auto request(Handle to, Message message) {
    return activity_.request<Reply>(std::move(to), std::move(message));
  }

  /// The coroutine's actor, for optimizers and the like.
  [[nodiscard]] activity& host() { return activity_; }

  /// Errors: throws `failure` with cancelled if the result is needed no more.
  void check_wanted() const;

protected:
  [[nodiscard]] task<tensor> apply(variable target, change operation,
                                   variable_operand operand) override;

private:
  friend class variable_read_cache;

  [[nodiscard]] const tensor* cached(const variable& source) const;
  tensor remember(const variable& source, tensor value);

  activity& activity_;
  place place_;
  std::optional<std::map<size_t, tensor>> cache_; ///< By the variable's index, inside a cache.
};

template <class Work>
task<std::invoke_result_t<Work, std::stop_token>> closure_context::compute(Work work) {
  check_given("compute", work);
  check_wanted();
  auto there = hand_over<std::stop_token>(place_.owner, std::move(work));
  auto computing = activity_.compute(std::move(there.run));
  auto outcome = co_await computing;
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  check_wanted();
  co_return there.take();
}

} // namespace troupe
