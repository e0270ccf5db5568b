// SPDX-License-Identifier: Apache-2.0
// The context of a call: that of a replica, of all replicas, of an update, or none of these.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

class replica_context;
class strategy;

/// Where user code is. Many calls are possible in some contexts only, or mean different things.
enum class context_kind : uint8_t {
  default_replica, ///< Nowhere: outside every scope and run. Counts as cross-replica, too.
  cross_replica,   ///< In a scope, or in a merge function: for all replicas together.
  replica,         ///< In a function that `run` runs: for one replica.
  update,          ///< In a function that `extended().update` runs: for one copy of a variable.
  computing,       ///< In work that `compute` runs: no call to a strategy is possible there.
  closure,         ///< In a function that a coordinator has scheduled: no call is possible, either.
};

/// One context. A new thread begins in the default one; a coroutine takes its own along, whatever
/// thread resumes it.
struct context_frame {
  context_kind kind = context_kind::default_replica;
  strategy* owner = nullptr;           ///< Null in the default context.
  replica_context* replica = nullptr;  ///< In a replica context.
  std::optional<uint32_t> component{}; ///< In an update context: the copy that is updated.
  bool is_set = false;                 ///< Whether `experimental_set_strategy` set it.
  /// The `index` of the variable that new ones are held beside: set by `colocate_vars_with`.
  std::optional<size_t> beside{};
  uint64_t number = 0; ///< Counts the frames that its stack has entered, from 1.
};

/// The contexts that a thread or a coroutine has entered and not left, the innermost last.
class context_stack {
public:
  /// The stack of the coroutine that runs on this thread, else the stack of the thread.
  [[nodiscard]] static context_stack& current();

  [[nodiscard]] context_frame top() const {
    return frames_.empty() ? context_frame{} : frames_.back();
  }

  /// @returns The number of the frame, by which it is left.
  uint64_t push(context_frame frame) {
    frame.number = ++entered_;
    frames_.push_back(frame);
    return frame.number;
  }

  /// Leaves a context, and all that were entered in it. Does nothing if it was left before.
  void leave(uint64_t number);

  /// Whether this is the stack of a thread, where a call may block. A coroutine may not block.
  [[nodiscard]] bool may_block() const { return may_block_; }

  explicit context_stack(bool may_block = false) : may_block_(may_block) {}

private:
  friend class strategy;
  friend class strategy_scope;
  friend void experimental_set_strategy(strategy*);

  std::vector<context_frame> frames_;
  uint64_t entered_ = 0;
  bool may_block_;
};

/// Enters a context until the end of a block.
class context_guard {
public:
  explicit context_guard(context_frame frame)
    : stack_(context_stack::current()), number_(stack_.push(frame)) {}

  ~context_guard() { stack_.leave(number_); }

  context_guard(const context_guard&) = delete;
  context_guard& operator=(const context_guard&) = delete;

private:
  context_stack& stack_;
  uint64_t number_;
};

/// A result as it is kept; work that returns nothing leaves a `std::monostate`.
template <class Result>
using kept_result = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;

/// Work that a coroutine has done on computing threads, and where its result will be.
template <class Run, class Result>
struct handed_over_work {
  Run run;
  std::shared_ptr<std::optional<kept_result<Result>>> result;

  /// Returns the result, and may be called once. @pre The work is done.
  Result take() {
    if constexpr (!std::is_void_v<Result>) return std::move(**result);
  }
};

/// Work as it is handed over: calls to a strategy are refused inside. @param work `R
/// work(Given...)`
template <class... Given, class Work>
[[nodiscard]] auto hand_over(strategy* owner, Work work) {
  using result_type = std::invoke_result_t<Work&, Given...>;
  auto result = std::make_shared<std::optional<kept_result<result_type>>>();
  auto run = [work = std::move(work), result, owner](Given... given) mutable {
    context_guard entered{{context_kind::computing, owner}};
    if constexpr (std::is_void_v<result_type>)
      work(std::forward<Given>(given)...);
    else
      result->emplace(work(std::forward<Given>(given)...));
  };
  return handed_over_work<decltype(run), result_type>{std::move(run), std::move(result)};
}

/// "cross-replica context", "replica context (replica 2)": for errors.
[[nodiscard]] std::string describe(const context_frame& frame);

// Questions that are allowed in every context; the answers are those of tf.distribute.
//
// | asked                    | nowhere | in a scope | in run | in a merge function | in update |
// |--------------------------|---------|------------|--------|---------------------|-----------|
// | has_strategy             | no      | yes        | yes    | yes                 | yes       |
// | in_cross_replica_context | no      | yes        | no     | yes                 | yes       |
// | get_replica_context      | null    | null       | its    | null                | null      |
// | get_update_replica_id    | none    | none       | none   | none                | the copy  |

/// True where a strategy other than the default one was chosen.
[[nodiscard]] bool has_strategy();

/// The strategy of this context; in the default one, the `default_strategy` that there is.
/// Errors: throws `failure` with failed_precondition if there is none.
[[nodiscard]] strategy& get_strategy();

[[nodiscard]] bool in_cross_replica_context();

/// The replica that this code runs for; null in other contexts.
[[nodiscard]] replica_context* get_replica_context();

/// The copy that this code updates, in an update context.
[[nodiscard]] std::optional<uint32_t> get_update_replica_id();

/// Like a scope that is never left; another call replaces the strategy, and null or the end of the
/// strategy ends it.
/// Errors: throws `failure` with wrong_context inside a scope.
void experimental_set_strategy(strategy* chosen);

/// Makes a strategy the current one of this thread, until the scope ends.
class strategy_scope {
public:
  /// Errors: throws `failure` with wrong_context inside another strategy's scope ("Mixing different
  /// tf.distribute.Strategy objects"), or in a replica context.
  explicit strategy_scope(strategy& entered);

  /// Leaves the scope, if `exit` has not.
  ~strategy_scope();

  strategy_scope(const strategy_scope&) = delete;
  strategy_scope& operator=(const strategy_scope&) = delete;

  /// Leaves the scope now. Errors: throws `failure` with wrong_context ("scope nesting error") if
  /// another scope, entered later, has not been left.
  void exit();

  /// The strategy that the scope belongs to.
  [[nodiscard]] strategy& operator*() const { return strategy_; }

  [[nodiscard]] strategy* operator->() const { return &strategy_; }

private:
  strategy& strategy_;
  context_stack* stack_;
  uint64_t number_ = 0; ///< The number of its frame.
};

/// Refuses a call that is made in the wrong context.
/// Errors: throws `failure` with wrong_context; the line names the call, the context that it was
/// made in and the one that it needs. Every check lets the default context pass.
namespace context_check {

/// For a call that concerns all replicas: `owner`'s cross-replica or update context.
void cross_replica(std::string_view call, const strategy& owner);

/// For a call that concerns all replicas and blocks: as `cross_replica`, but not in a coroutine.
/// @param awaited The call that a merge function awaits instead.
void blocking(std::string_view call, const strategy& owner, std::string_view awaited);

inline void blocking(std::string_view call, const strategy& owner) {
  blocking(call, owner, call);
}

/// For a call that blocks, and means the same in every context.
/// @param remedy The call to make instead.
void waiting(std::string_view call, std::string_view remedy);

/// For a call of a replica: its own replica context.
void replica(std::string_view call, const replica_context& context);

} // namespace context_check

} // namespace troupe
