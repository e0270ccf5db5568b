// SPDX-License-Identifier: Apache-2.0
// The precompiled header of messages: Cap'n Proto, and the schemas that all messages are made of.
#ifndef TROUPE_MESSAGES_PCH
#define TROUPE_MESSAGES_PCH

#include "messages/envelope.capnp.h"

#include <capnp/message.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#endif
