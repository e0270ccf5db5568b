// SPDX-License-Identifier: Apache-2.0
// Which messages of a trainer's own schemas travel between processes.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "messages/errors/failure.hpp"
#include "messages/link_message.hpp"
#include "messages/own_schema.hpp"

#include <caf/message.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

namespace troupe {

/// A process understands the messages of its own build only. A network that is given these sends
/// and receives them as it does Troupe's; and it refuses, before anything else is said, a peer that
/// does not know the same ones in the same version.
///
/// Thread: a network keeps a copy, which does not change any more and may be used by any thread.
class network_messages {
public:
  /// How a message of one type is taken out of CAF's hands and given into them.
  struct form {
    own_schema schema;
    std::shared_ptr<const message_storage> (*storage_of)(const caf::message&) = nullptr;
    caf::message (*make)(std::shared_ptr<const message_storage>) = nullptr;
  };

  /// `msg<T>` may travel. Every process of a job adds the same messages, in any order.
  /// @param T A struct of a schema: `trial::Opinion`. @param name For people: "trial.Opinion".
  /// @returns This.
  /// Errors: throws `failure`: invalid_argument for a name that is empty, too long, or another
  /// message's, or for one message too many; unimplemented, as `read_own_schema`.
  template <class T>
  network_messages& add(std::string name) {
    add({value_or_throw(read_own_schema(capnp::Schema::from<T>(), std::move(name))),
         [](const caf::message& content) { return content.get_as<msg<T>>(0).owner(); },
         [](std::shared_ptr<const message_storage> storage) {
           return caf::make_message(msg<T>{std::move(storage)});
         }},
        typeid(msg<T>));
    return *this;
  }

  /// A copy, which a network keeps.
  operator std::shared_ptr<const network_messages>() const { // NOLINT: `.messages = known`
    return std::make_shared<const network_messages>(*this);
  }

  /// How a message of a C++ type travels; null if it is not known.
  [[nodiscard]] const form* find(const std::type_info& type) const;

  /// How a message travels, by the type id of its struct; null if it is not known.
  [[nodiscard]] const form* find(uint64_t schema) const;

  /// The messages as a peer is told of them, by ascending type ids.
  [[nodiscard]] std::vector<known_message> list() const;

private:
  void add(form added, std::type_index type);

  std::map<uint64_t, form> forms_;              ///< By type id.
  std::map<std::type_index, uint64_t> schemas_; ///< By C++ type.
};

/// Whether two processes know the same messages. @param here, there Their names. @param own, other
/// What they know.
/// Errors: failed_precondition, naming the message, the process that is to be mended, and how.
[[nodiscard]] expected<void> compare_known(const std::string& here,
                                           const std::vector<known_message>& own,
                                           const std::string& there,
                                           const std::vector<known_message>& other);

} // namespace troupe
