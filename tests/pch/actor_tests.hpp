// SPDX-License-Identifier: Apache-2.0
// The precompiled header of everything that is made of actors: CAF's headers take 3 s a file
// without it.
#ifndef TROUPE_ACTORS_PCH
#define TROUPE_ACTORS_PCH

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/error.hpp>
#include <caf/replies_to.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <capnp/message.h>

#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#endif
