// SPDX-License-Identifier: Apache-2.0
// Hides the types of users' functions, plain or coroutines, from code that is no template.
#pragma once

#include "actors/training/rendezvous.hpp"
#include "actors/world/task.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/values/nest.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

class cross_replica_context;
class replica_context;
class update_context;

namespace detail {

template <class T>
struct awaited {
  using type = T;
  static constexpr bool is_task = false;
};

template <>
struct awaited<void> {
  using type = std::monostate;
  static constexpr bool is_task = false;
};

template <class T>
struct awaited<task<T>> {
  using type = typename awaited<T>::type;
  static constexpr bool is_task = true;
};

} // namespace detail

namespace detail {

template <class Function>
inline constexpr bool may_be_empty = std::is_pointer_v<Function>;

template <class Signature>
inline constexpr bool may_be_empty<std::function<Signature>> = true;

} // namespace detail

/// Refuses an empty `std::function`, or a null pointer to a function, where it is given: a call of
/// it would not say which one it is. Errors: throws `failure` with invalid_argument.
template <class Function>
void check_given(const char* call, const Function& function) {
  if constexpr (detail::may_be_empty<Function>)
    if (!function)
      throw failure{{errc::invalid_argument, std::string{call} + " was given an empty function"}};
}

/// The type of the result of `Function`, called with a context and arguments, and awaited if it is
/// a coroutine; `std::monostate` if it returns nothing.
template <class Function, class Context, class... Arguments>
using awaited_result_t =
  typename detail::awaited<std::invoke_result_t<Function&, Context&, Arguments&...>>::type;

/// Calls a function, awaits it if it is a coroutine, and hides the type of its result. The
/// function and its arguments live until it is done.
template <class Function, class Context, class... Arguments>
task<std::shared_ptr<void>> call_erased(Function function, std::tuple<Arguments...> arguments,
                                        Context& context) {
  using returned = std::invoke_result_t<Function&, Context&, Arguments&...>;
  using result_type = awaited_result_t<Function, Context, Arguments...>;
  auto call = [&]() -> returned {
    return std::apply([&](Arguments&... each) -> returned { return function(context, each...); },
                      arguments);
  };
  if constexpr (!detail::awaited<returned>::is_task) {
    if constexpr (std::is_void_v<returned>) {
      call();
      co_return std::make_shared<result_type>();
    } else {
      co_return std::make_shared<result_type>(call());
    }
  } else {
    auto running = call();
    if constexpr (std::is_same_v<result_type, std::monostate>) {
      co_await running;
      co_return std::make_shared<result_type>();
    } else {
      auto result = co_await running;
      co_return std::make_shared<result_type>(std::move(result));
    }
  }
}

/// The function that one replica of a run executes.
using replica_body = std::function<task<std::shared_ptr<void>>(replica_context&)>;

/// A function in the cross-replica context, once for all replicas.
using cross_replica_body = std::function<task<std::shared_ptr<void>>(cross_replica_context&)>;

/// The type that each replica of a run returns.
template <class Function, class... Arguments>
using run_result_t = awaited_result_t<Function, replica_context, selected_t<Arguments>...>;

/// The function for each replica, with the replica's part of the arguments.
/// Errors: throws `failure` with invalid_argument for an empty function.
template <class Function, class... Arguments>
[[nodiscard]] std::vector<replica_body> bodies_for(uint32_t replicas, const Function& function,
                                                   const Arguments&... arguments) {
  check_given("a run on all replicas", function);
  std::vector<replica_body> bodies;
  bodies.reserve(replicas);
  for (uint32_t i = 0; i < replicas; ++i) {
    std::tuple<selected_t<Arguments>...> own{select_replica(arguments, i)...};
    bodies.emplace_back([function, own = std::move(own)](replica_context& context) {
      return call_erased(function, own, context);
    });
  }
  return bodies;
}

/// The function that is executed for one copy of a variable.
using update_body = std::function<task<std::shared_ptr<void>>(update_context&)>;

/// The replica that gives its part of a distributed value to an update of one of `copies`: the one
/// that has this copy. Where `replicas` share fewer copies: `no_replica`.
[[nodiscard]] constexpr size_t taker_of(uint32_t copy, uint32_t copies, uint32_t replicas) {
  return copies < replicas ? no_replica : copy;
}

/// The function for each copy, with the copy's part of the arguments.
/// @param replicas The number of replicas of this process.
/// Errors: throws `failure` with invalid_argument for an empty function, and for a value for each
/// replica, at any depth of the arguments, if there are fewer copies than replicas.
template <class Function, class... Arguments>
[[nodiscard]] std::vector<update_body> update_bodies(uint32_t copies, uint32_t replicas,
                                                     const Function& function,
                                                     const Arguments&... arguments) {
  check_given("an update", function);
  std::vector<update_body> bodies;
  for (uint32_t i = 0; i < copies; ++i) {
    [[maybe_unused]] auto taker = taker_of(i, copies, replicas); // unused without arguments
    std::tuple<selected_t<Arguments>...> own{select_replica(arguments, taker)...};
    bodies.emplace_back([function, own = std::move(own)](update_context& context) {
      return call_erased(function, own, context);
    });
  }
  return bodies;
}

/// Results of the type `Result`, as one nest. Errors: as `regroup`.
template <class Result>
[[nodiscard]] regrouped_t<Result> regroup_erased(const std::vector<std::shared_ptr<void>>& erased) {
  std::vector<Result> results;
  results.reserve(erased.size());
  for (const auto& result : erased)
    results.push_back(std::move(*std::static_pointer_cast<Result>(result)));
  return regroup(std::move(results));
}

/// The results of the replicas, as one nest. Errors: rethrows what a replica threw; as `regroup`.
template <class Result>
auto regroup_results(const run_outcome& outcome) {
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  if constexpr (!std::is_same_v<Result, std::monostate>)
    return regroup_erased<Result>(outcome.results);
}

} // namespace troupe
