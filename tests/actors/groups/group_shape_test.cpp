// SPDX-License-Identifier: Apache-2.0
// Goal: members are counted along dimensions with names. Method: small shapes, counted by hand.
#include "actors/groups/group_shape.hpp"
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"

namespace group_shape_test {

using namespace troupe;
using members = std::vector<size_t>;

TEST_SUITE("actors/groups/group_shape") {
  TEST_CASE("members are counted by the last dimension first") {
    group_shape shape{{{"host", 2}, {"device", 3}}};
    CHECK(shape.size() == 6);
    CHECK(shape.member({1, 2}) == 5);
    CHECK(shape.member({0, 1}) == 1);
    CHECK(shape.name_of(4) == "host 1 device 1");
  }

  TEST_CASE("a slice has the members of some positions in one dimension") {
    group_shape shape{{{"host", 2}, {"device", 3}}};
    CHECK(shape.members_within("host", 1, 2) == members{3, 4, 5});
    CHECK(shape.members_within("device", 1, 3) == members{1, 2, 4, 5});
    CHECK(shape.within("device", 1, 3).dimensions()
          == std::vector<group_dimension>{{"host", 2}, {"device", 2}});
  }

  TEST_CASE("a shape that has no members, or too many, is refused") {
    CHECK_THROWS_WITH_AS((group_shape{std::vector<group_dimension>{}}),
                         R"(a group has no dimension: give {"member", count})", failure);
    CHECK_THROWS_WITH_AS((group_shape{{{"host", 2}, {"device", 0}}}),
                         "a group has no member: dimension 'device' is 0", failure);
    CHECK_THROWS_WITH_AS((group_shape{{{"", 2}}}), "a group has a dimension without a name",
                         failure);
    CHECK_THROWS_WITH_AS((group_shape{{{"host", 2}, {"host", 3}}}),
                         "a group has dimension 'host' twice", failure);
    CHECK_THROWS_WITH_AS((group_shape{{{"host", 2048}, {"device", 2048}}}),
                         "a group has more than 1048576 members", failure);
  }

  TEST_CASE("positions outside of a shape are refused by the dimension's name") {
    group_shape shape{{{"host", 2}, {"device", 3}}};
    CHECK_THROWS_WITH_AS(static_cast<void>(shape.member({1, 3})), "device 3 of a group that has 3",
                         failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(shape.member({1})),
                         "a position of 1 numbers in a group of 2 dimensions", failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(shape.within("host", 1, 3)),
                         "host 1 to below 3 of a group that has 2", failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(shape.members_within("rack", 0, 1)),
                         "a group without dimension 'rack'", failure);
  }
}

} // namespace group_shape_test
