// SPDX-License-Identifier: Apache-2.0
// The list of messages, and two of them side by side.
#include "actors/net/network_messages.hpp"

#include "messages/errors/throw_failure.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

const known_message* find_in(const std::vector<known_message>& list, uint64_t schema) {
  auto found = std::ranges::find(list, schema, &known_message::schema);
  return found == list.end() ? nullptr : &*found;
}

tl::unexpected<error> lacks(const std::string& process, const std::string& message,
                            const std::string& other) {
  return fail(errc::failed_precondition,
              fmt::format("{} does not know the message {}, which {} knows; add it to the "
                          "network_messages of every process",
                          process, message, other));
}

} // namespace

void network_messages::add(form added, std::type_index type) {
  auto id = added.schema.type.getProto().getId();
  for (const auto& [other, form] : forms_)
    if (other != id && form.schema.name == added.schema.name)
      throw_failure(errc::invalid_argument, "two messages have the name {}: give each its own",
                    added.schema.name);
  if (!forms_.contains(id) && forms_.size() == limits::own_messages_max)
    throw_failure(errc::invalid_argument,
                  "the message {} is one too many: a process knows at most {}", added.schema.name,
                  limits::own_messages_max);
  forms_.insert_or_assign(id, std::move(added));
  schemas_.insert_or_assign(type, id);
}

const network_messages::form* network_messages::find(const std::type_info& type) const {
  auto found = schemas_.find(type);
  return found == schemas_.end() ? nullptr : find(found->second);
}

const network_messages::form* network_messages::find(uint64_t schema) const {
  auto found = forms_.find(schema);
  return found == forms_.end() ? nullptr : &found->second;
}

std::vector<known_message> network_messages::list() const {
  std::vector<known_message> result;
  for (const auto& [id, form] : forms_)
    result.push_back({id, form.schema.version, form.schema.name});
  return result;
}

expected<void> compare_known(const std::string& here, const std::vector<known_message>& own,
                             const std::string& there, const std::vector<known_message>& other) {
  for (const auto& message : own) {
    const auto* theirs = find_in(other, message.schema);
    if (theirs == nullptr) return lacks(there, message.name, here);
    if (theirs->version != message.version)
      return fail(errc::failed_precondition,
                  fmt::format("{} and {} have two versions of the message {}; build both from the "
                              "same schema",
                              there, here, message.name));
  }
  for (const auto& message : other)
    if (find_in(own, message.schema) == nullptr) return lacks(here, message.name, there);
  return {};
}

} // namespace troupe
