// SPDX-License-Identifier: Apache-2.0
// The precompiled header of all that sends messages: CAF, Cap'n Proto, fmt, and every actor's
// interface.
#ifndef TROUPE_ACTORS_PCH
#define TROUPE_ACTORS_PCH

#include "actors/interfaces/interfaces.hpp"
#include "kernels/pch/formatting.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <capnp/message.h>

#include <mutex>

#endif
