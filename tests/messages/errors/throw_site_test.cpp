// SPDX-License-Identifier: Apache-2.0
// Goal: an exception says which functions threw. Method: functions of this file, which no compiler
// can put into each other.
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_site.hpp"
#include "tests/doctest.hpp"

#include <future>
#include <stdexcept>
#include <vector>

namespace throw_site_test {

using namespace troupe;

namespace {

[[gnu::noinline, gnu::noipa]] int read_record(int number) {
  if (number == 4) throw std::runtime_error{"record 4 is broken"};
  return number;
}

[[gnu::noinline, gnu::noipa]] int read_batch(int first) {
  int sum = 0;
  for (int number = first; number < first + 3; ++number)
    sum += read_record(number);
  return sum;
}

std::exception_ptr thrown_by_reading() {
  try {
    static_cast<void>(read_batch(3));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

} // namespace

TEST_SUITE("messages/errors/throw_site") {
  TEST_CASE("functions are named, the innermost first") {
    auto site = throw_site_of(thrown_by_reading());
    auto inner = site.find("read_record");
    auto outer = site.find("read_batch");
    INFO(site);
    CHECK(inner < outer);
    CHECK(outer != std::string::npos);
  }

  TEST_CASE("another thread may ask, later, and after another throw") {
    auto first = thrown_by_reading();
    auto expected = throw_site_of(first);
    CHECK_THROWS(static_cast<void>(std::vector<int>{}.at(1)));
    auto asked = std::async(std::launch::async, [&] { return throw_site_of(first); });
    CHECK(asked.get() == expected);
  }

  TEST_CASE("an exception whose place is forgotten, or none, has no site") {
    CHECK(throw_site_of(nullptr).empty());
    auto first = thrown_by_reading();
    for (int i = 0; i < 100; ++i)
      CHECK_THROWS(read_batch(4));
    CHECK(throw_site_of(first).empty());
  }

  TEST_CASE("an exception that was not thrown has no site, though it lies where another one lay") {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(thrown_by_reading());
      auto made = std::make_exception_ptr(std::runtime_error{"not thrown"});
      CHECK(throw_site_of(made).empty());
    }
  }

  TEST_CASE("the reason of what a program throws has it, and a failure has none of its own") {
    auto why = reason_of(thrown_by_reading());
    CHECK(why == error{errc::user_code, "record 4 is broken"});
    CHECK(why.throw_site.find("read_record") != std::string::npos);
    CHECK(with_throw_site(why) == "record 4 is broken; thrown by " + why.throw_site);
    auto refused
      = reason_of(std::make_exception_ptr(failure{{errc::not_found, "no such variable"}}));
    CHECK(refused.throw_site.empty());
    CHECK(with_throw_site(refused) == "no such variable");
  }

  TEST_CASE("names are short") {
    auto name = short_function_name;
    CHECK(name("main") == "main");
    CHECK(name("(anonymous namespace)::reader(int)") == "reader");
    CHECK(name("trial::reader::next(unsigned long) const") == "trial::reader::next");
    CHECK(name("int reader::next<int>(int)") == "reader::next");
    CHECK(name("std::vector<int, std::allocator<int> > read<int>(std::map<int, int>)") == "read");
    CHECK(name("reader(int)::{lambda(int const&)#1}::operator()(int const&) const") == "reader");
    CHECK(name("twice::operator()(int) const") == "twice::operator()");
    CHECK(name("step(int) [clone .actor]") == "step");
    CHECK(name("main.cold") == "main");
  }
}

} // namespace throw_site_test
