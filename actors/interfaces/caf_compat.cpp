// SPDX-License-Identifier: Apache-2.0
// Converting errors to CAF's and back.
#include "actors/interfaces/caf_compat.hpp"

#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include <string>
#include <string_view>

namespace troupe {

namespace {

constexpr auto our_category = caf::atom("troupe");

// The errors of CAF that users meet, in words; empty for any other.
std::string_view words_for(const caf::error& reason) {
  if (reason == caf::sec::request_receiver_down)
    return "the actor that was asked has ended (was its strategy, or what else holds it, "
           "destroyed?)";
  if (reason == caf::sec::request_timeout) return "the actor that was asked did not answer in time";
  if (reason == caf::sec::unexpected_message)
    return "an actor was sent a message that it does not take";
  if (reason == caf::sec::unexpected_response)
    return "an actor gave an answer of another type than it was asked for";
  if (reason == caf::sec::invalid_argument) // of CAF's calls, only a request to no actor gives it
    return "a request was made to an empty handle: spawn the actor, or look for it, before";
  if (reason == caf::sec::runtime_error) return "an actor has thrown an exception";
  if (reason == caf::exit_reason::user_shutdown) return "it was told to end";
  if (reason == caf::exit_reason::kill) return "it was killed";
  return {};
}

// The line for an error of CAF's own, with the particulars that CAF gives beside the code.
std::string describe(const caf::error& reason) {
  auto words = words_for(reason);
  if (words.empty()) return caf::to_string(reason);
  std::string line{words};
  if (!reason.context().empty()) line += ": " + caf::to_string(reason.context());
  return line;
}

// The code of ours for an error of CAF's own.
errc code_of(const caf::error& reason) {
  if (reason == caf::sec::request_receiver_down || reason.category() == caf::atom("exit"))
    return errc::unavailable;
  if (reason == caf::sec::request_timeout) return errc::deadline_exceeded;
  if (reason == caf::sec::invalid_argument) return errc::invalid_argument;
  if (reason == caf::sec::runtime_error) return errc::user_code;
  return errc::resource;
}

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
  return {code_of(reason), describe(reason)};
}

bool is_lost_node(const caf::error& reason) {
  return from_caf(reason).code == errc::unavailable && reason.category() != caf::atom("exit");
}

} // namespace troupe
