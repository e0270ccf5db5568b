// SPDX-License-Identifier: Apache-2.0
// The values that exist twice, in a schema and in a header, are the same.
#include "kernels/tensor/dtype.hpp"
#include "messages/checks/limits.hpp"
#include "messages/envelope.capnp.h"
#include "messages/errors/errc.hpp"
#include "tests/doctest.hpp"

#include <capnp/schema.h>

#include <cctype>
#include <string>

namespace limits_test {

using namespace troupe;

namespace {

/// "invalidArgument" as "invalid_argument".
std::string snake_case(std::string_view camel_case) {
  std::string result;
  for (char letter : camel_case) {
    if (std::isupper(static_cast<unsigned char>(letter))) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

/// Calls `check(value, name)` for every enumerator of a schema's enum.
template <class Enum, class Check>
void for_each_enumerator(Check check) {
  for (auto enumerant : capnp::Schema::from<Enum>().getEnumerants())
    check(enumerant.getOrdinal(), snake_case(enumerant.getProto().getName().cStr()));
}

} // namespace

TEST_SUITE("messages/checks/limits") {
  TEST_CASE("the schema's element types are those of kernels") {
    size_t count = 0;
    for_each_enumerator<wire::DType>([&](uint16_t value, const std::string& name) {
      REQUIRE(value < dtype_count);
      CHECK(to_string(static_cast<dtype>(value)) == name);
      ++count;
    });
    CHECK(count == dtype_count);
  }

  TEST_CASE("the schema's error codes are those of errc") {
    uint16_t last = 0;
    for_each_enumerator<wire::Errc>([&](uint16_t value, const std::string& name) {
      CHECK(to_string(static_cast<errc>(value)) == name);
      last = value;
    });
    CHECK(to_string(static_cast<errc>(last + 1)) == "unknown");
  }

  TEST_CASE("the schema's verdicts are those of payloads") {
    CHECK(static_cast<uint16_t>(wire::Verdict::ACCEPTED)
          == static_cast<uint16_t>(verdict::accepted));
    CHECK(static_cast<uint16_t>(wire::Verdict::STALE) == static_cast<uint16_t>(verdict::stale));
    CHECK(capnp::Schema::from<wire::Verdict>().getEnumerants().size() == 2);
  }
}

} // namespace limits_test
