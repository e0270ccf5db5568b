// SPDX-License-Identifier: Apache-2.0
// Errors on their way into CAF and out of it.
#include "actors/interfaces/caf_compat.hpp"

#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace troupe {

namespace {

constexpr auto our_category = caf::atom("troupe");

} // namespace

caf::error to_caf(const error& reason) {
  return {static_cast<uint8_t>(reason.code), our_category,
          caf::make_message(reason.message, reason.throw_site)};
}

void leave_unlogged() {
  caf::logger::set_current_actor_system(nullptr);
}

error from_caf(const caf::error& reason) {
  if (!reason) return {}; // it has no category, and CAF would look for one
  if (reason.category() == our_category) {
    const auto& context = reason.context();
    auto code = static_cast<errc>(reason.code());
    if (!context.match_elements<std::string, std::string>()) return {code, ""};
    return {code, context.get_as<std::string>(0), context.get_as<std::string>(1)};
  }
  auto receiver_gone
    = reason == caf::sec::request_receiver_down || reason.category() == caf::atom("exit");
  return {receiver_gone ? errc::unavailable : errc::resource, caf::to_string(reason)};
}

bool is_lost_node(const caf::error& reason) {
  return from_caf(reason).code == errc::unavailable && reason.category() != caf::atom("exit");
}

} // namespace troupe
