// SPDX-License-Identifier: Apache-2.0
// Each message of links, field by field.
#include "messages/link_message.hpp"

#include "messages/message_builder.hpp"

namespace troupe {

msg<wire::Unimplemented> make_unimplemented(uint16_t body) {
  message_builder<wire::Unimplemented> message;
  message.body.setBody(body);
  return std::move(message).finish();
}

msg<wire::Abort> make_abort(errc code, std::string_view reason) {
  message_builder<wire::Abort> message;
  message.body.setCode(static_cast<wire::Errc>(code));
  write_reason(message.body, reason);
  return std::move(message).finish();
}

} // namespace troupe
