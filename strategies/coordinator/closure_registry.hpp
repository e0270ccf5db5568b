// SPDX-License-Identifier: Apache-2.0
// The functions and inputs that all processes know by the same names, and the inputs of one worker.
#pragma once

#include "actors/world/task.hpp"
#include "messages/coordinator_message.hpp"
#include "strategies/coordinator/closure_context.hpp"
#include "strategies/data/input_context.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace troupe {

class worker_room;

/// C++ code does not travel. Each process registers the same functions, and the same makers of the
/// resources that each worker has one of; messages name them. Thread: any.
class closure_registry {
public:
  using function = std::function<task<std::vector<closure_value>>(
    closure_context&, msg<wire::RunClosure>, worker_room&)>;
  /// @param pass The pass that an iterator begins with, as in `worker_resource`.
  using maker = std::function<std::shared_ptr<void>(const input_context&, uint32_t pass)>;

  /// Something that each worker has one of.
  struct resource {
    maker make;
    const std::type_info* type = nullptr; ///< The type of the thing that `make` returns.
  };

  /// Errors: throws `failure` with invalid_argument if the name is empty, too long or taken.
  void add(const std::string& name, function call);

  /// @returns Its number, which counts from 0.
  [[nodiscard]] uint32_t add(resource made);

  /// Errors: throws `failure` with not_found.
  [[nodiscard]] function find(const std::string& name) const;

  /// Errors: throws `failure` with not_found, or type_mismatch.
  [[nodiscard]] maker find(uint32_t resource, const std::type_info& type) const;

private:
  mutable std::mutex mutex_;
  std::map<std::string, function> functions_;
  std::vector<resource> resources_;
};

/// The resources of one worker: iterators and the like, made when a function first needs them. A
/// worker that is started again has a new room. Thread: one at a time.
class worker_room {
public:
  worker_room(std::shared_ptr<const closure_registry> registry, input_context context)
    : registry_(std::move(registry)), context_(context) {}

  /// Errors: throws `failure`: of what the maker threw, each time; as `closure_registry::find`.
  template <class T>
  [[nodiscard]] T& get(const worker_resource& resource) {
    return *std::static_pointer_cast<T>(find(resource, typeid(T)));
  }

  /// Forgets all instances but these, and those with the number 0.
  void keep(capnp::List<uint32_t>::Reader instances);

private:
  [[nodiscard]] std::shared_ptr<void> find(const worker_resource& resource,
                                           const std::type_info& type);

  std::shared_ptr<const closure_registry> registry_;
  input_context context_;
  std::map<std::pair<uint32_t, uint32_t>, expected<std::shared_ptr<void>>> made_;
};

} // namespace troupe
