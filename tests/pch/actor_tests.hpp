// SPDX-License-Identifier: Apache-2.0
// The precompiled header of the large tests of actors: CAF's headers take 2 s a file without it.
#ifndef TROUPE_ACTOR_TESTS_PCH
#define TROUPE_ACTOR_TESTS_PCH

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
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#endif
