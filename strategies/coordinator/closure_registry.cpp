// SPDX-License-Identifier: Apache-2.0
// Finds the functions and inputs that messages name, and makes inputs.
#include "strategies/coordinator/closure_registry.hpp"

#include "messages/checks/limits.hpp"
#include "messages/errors/throw_failure.hpp"

#include <set>

namespace troupe {

namespace {

expected<std::shared_ptr<void>> try_to_make(const closure_registry::maker& make,
                                            const input_context& context, uint32_t pass) {
  try {
    return make(context, pass);
  } catch (...) {
    auto reason = reason_of(std::current_exception());
    reason.message = "its input could not be made: " + reason.message;
    return tl::unexpected<error>{std::move(reason)};
  }
}

} // namespace

void closure_registry::add(const std::string& name, function call) {
  require(!name.empty(), "a function needs a name");
  if (name.size() > limits::text_bytes_max)
    throw_failure(errc::invalid_argument,
                  "a function has a name of {} bytes; at most {} can travel", name.size(),
                  limits::text_bytes_max);
  std::lock_guard guard{mutex_};
  if (!functions_.emplace(name, std::move(call)).second)
    throw_failure(errc::invalid_argument,
                  "there is a function '{}' already; give this one another name", name);
}

uint32_t closure_registry::add(resource made) {
  std::lock_guard guard{mutex_};
  resources_.push_back(std::move(made));
  return static_cast<uint32_t>(resources_.size() - 1);
}

closure_registry::function closure_registry::find(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto found = functions_.find(name);
  if (found == functions_.end())
    throw_failure(errc::not_found,
                  "there is no function '{}' here; make it in all processes, before they serve",
                  name);
  return found->second;
}

closure_registry::maker closure_registry::find(uint32_t resource,
                                               const std::type_info& type) const {
  std::lock_guard guard{mutex_};
  if (resource >= resources_.size())
    throw_failure(errc::not_found,
                  "there is no input {} here, only {}; make it in all processes, before they serve",
                  resource, resources_.size());
  const auto& found = resources_[resource];
  if (*found.type != type)
    throw_failure(
      errc::type_mismatch,
      "input {} is of another type than the function takes; make inputs in the same order in "
      "all processes",
      resource);
  return found.make;
}

void worker_room::keep(capnp::List<uint32_t>::Reader instances) {
  std::set<uint32_t> kept{0};
  for (auto instance : instances)
    kept.insert(instance);
  std::erase_if(made_, [&](const auto& each) { return !kept.contains(each.first.second); });
}

std::shared_ptr<void> worker_room::find(const worker_resource& resource,
                                        const std::type_info& type) {
  auto make = registry_->find(resource.resource, type);
  std::pair key{resource.resource, resource.instance};
  auto found = made_.find(key);
  if (found == made_.end())
    found = made_.emplace(key, try_to_make(make, context_, resource.pass)).first;
  return value_or_throw(found->second);
}

} // namespace troupe
