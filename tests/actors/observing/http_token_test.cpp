// SPDX-License-Identifier: Apache-2.0
// Goal: a client without the token learns nothing. Method: requests with tokens at their places,
// and nearly.
#include "actors/observing/http_token.hpp"
#include "tests/doctest.hpp"

namespace http_token_test {

using namespace troupe;

namespace {

constexpr const char* token = "0123456789abcdef";

} // namespace

TEST_SUITE("actors/observing/http_token") {
  TEST_CASE("a token is drawn anew each time, and can be one") {
    auto one = draw_token();
    CHECK(one.size() == 32);
    CHECK(is_token(one));
    CHECK(one != draw_token());
  }

  TEST_CASE("a token that is short, long, or has letters that an address would change is none") {
    CHECK(is_token("Az09-._~Az09-._~"));
    for (const auto& text : {std::string{}, std::string(15, 'a'), std::string(129, 'a'),
                             std::string{"0123456789abcde "}, std::string{"0123456789abcd&x"},
                             std::string{"0123456789abcd%4"}, std::string{"0123456789abcde\n"}})
      CHECK_FALSE(is_token(text));
  }

  TEST_CASE("a request shows the token in a header or behind its path") {
    CHECK(knows_token(token, "Bearer 0123456789abcdef", "/"));
    CHECK(knows_token(token, "bEARER 0123456789abcdef", "/"));
    CHECK(knows_token(token, "", "/?token=0123456789abcdef"));
    CHECK(knows_token(token, "", "/x?a=b&token=0123456789abcdef&c=d"));
    CHECK(knows_token("", "", "/"));
  }

  TEST_CASE("anything else does not") {
    for (const auto* authorization :
         {"", "0123456789abcdef", "bearer", "Bearer ", "Bearer 0123456789abcdeX",
          "Bearer 0123456789abcdef ", "Basic 0123456789abcdef"})
      CHECK_FALSE(knows_token(token, authorization, "/"));
    for (const auto* target :
         {"", "?", "/?token", "/?token=", "/?token=0123456789abcde", "/?token=0123456789abcdefa",
          "/token=0123456789abcdef", "/?atoken=0123456789abcdef", "/?&&&", "/?token=x&token="})
      CHECK_FALSE(knows_token(token, "", target));
  }
}

} // namespace http_token_test
