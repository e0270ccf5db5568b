// SPDX-License-Identifier: Apache-2.0
// A function that is scheduled by name: its types, and how it is called where it runs.
#pragma once

#include "strategies/contexts/replica_function.hpp"
#include "strategies/coordinator/closure_registry.hpp"
#include "strategies/coordinator/per_worker.hpp"
#include "strategies/coordinator/remote_value.hpp"
#include "strategies/values/closure_leaves.hpp"

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// A function that all processes have made by the same name, as `schedule` takes it.
template <class Result, class... Parameters>
class coordinated_function {
public:
  coordinated_function(const closure_service* of, std::string name)
    : of_(of), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// The coordinator that it belongs to.
  [[nodiscard]] const closure_service* of() const { return of_; }

private:
  const closure_service* of_;
  std::string name_;
};

/// Reads a worker's own resource in a nest. Only arguments may hold one; a result with one does not
/// travel.
template <class T>
struct closure_codec<std::reference_wrapper<T>> {
  static std::reference_wrapper<T> read(closure_leaves& from) {
    const auto& which = from.next<worker_resource>("what each worker has of its own");
    return from.room().get<std::remove_const_t<T>>(which);
  }
};

/// Refuses values for each worker where a function has one of them.
template <class T>
struct closure_codec<per_worker_values<T>> {
  static_assert(sizeof(T) == 0, "a scheduled function takes and returns `T`, the value of its "
                                "worker; `per_worker_values<T>` is for its callers");

  static void write(const per_worker_values<T>& value, std::vector<closure_value>& to);
  static per_worker_values<T> read(closure_leaves& from);
};

namespace detail {

/// Whether a parameter `T&` stands for a worker's own resource. Arguments for all others travel
/// (worker_nest.hpp).
template <class Parameter>
inline constexpr bool takes_resource
  = std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>;

/// The type that a function gets for a parameter.
template <class Parameter>
using called_with
  = std::conditional_t<takes_resource<Parameter>, Parameter, std::decay_t<Parameter>>;

template <class Parameter>
called_with<Parameter> take_argument(closure_leaves& from, worker_room& room) {
  if constexpr (takes_resource<Parameter>)
    return room.get<std::remove_reference_t<Parameter>>(
      from.next<worker_resource>("what each worker has of its own"));
  else
    return read_leaves<std::decay_t<Parameter>>(from);
}

template <class... Parameters>
std::tuple<called_with<Parameters>...> take_arguments(const msg<wire::RunClosure>& call,
                                                      worker_room& room) {
  auto leaves = read_arguments(call);
  closure_leaves from{leaves, &room};
  std::tuple<called_with<Parameters>...> arguments{take_argument<Parameters>(from, room)...};
  from.end();
  return arguments;
}

/// Calls a function where it runs, with a copy of its own.
template <class Function, class Result, class... Parameters>
task<std::vector<closure_value>> call_closure(Function function, closure_context& context,
                                              msg<wire::RunClosure> call, worker_room& room) {
  auto running
    = call_erased(std::move(function), take_arguments<Parameters...>(call, room), context);
  auto result = co_await running;
  std::vector<closure_value> leaves;
  write_leaves(*std::static_pointer_cast<Result>(result), leaves);
  check_leaves(leaves);
  co_return leaves;
}

template <class Returned, class... Parameters>
struct closure_signature_of {
  using result = typename awaited<Returned>::type;
  using handle = coordinated_function<result, Parameters...>;

  template <class Function>
  static closure_registry::function registered(Function function) {
    return [function = std::move(function)](closure_context& context, msg<wire::RunClosure> call,
                                            worker_room& room) {
      return call_closure<Function, result, Parameters...>(function, context, std::move(call),
                                                           room);
    };
  }
};

template <class Function>
struct closure_signature : closure_signature<decltype(&Function::operator())> {};

template <class Returned, class... Parameters>
struct closure_signature<Returned (*)(closure_context&, Parameters...)>
  : closure_signature_of<Returned, Parameters...> {};

template <class Returned, class Class, class... Parameters>
struct closure_signature<Returned (Class::*)(closure_context&, Parameters...)>
  : closure_signature_of<Returned, Parameters...> {};

template <class Returned, class Class, class... Parameters>
struct closure_signature<Returned (Class::*)(closure_context&, Parameters...) const>
  : closure_signature_of<Returned, Parameters...> {};

} // namespace detail

} // namespace troupe
