// SPDX-License-Identifier: Apache-2.0
// Goal: TensorBoard finds in the file what was put there, at every moment. Method: the beginning
// of a file as the record writer of the Python package tensorboard 2.21 makes it; a reader of a few
// lines that shares nothing with ours.
#include "actors/recording/event_file.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <cmath>
#include <cstring>
#include <map>

namespace event_file_test {

TEST_SUITE("actors/recording/event_file") {
  using namespace troupe;
  using namespace std::chrono_literals;
  using namespace std::string_literals;

  const event_origin origin{std::chrono::system_clock::time_point{1'700'000'000s + 250ms}, "host"};

  // The fields of a message by their numbers.
  using fields = std::multimap<int, std::string>;

  uint64_t take_varint(std::string_view & bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }

  fields fields_of(std::string_view bytes) {
    fields all;
    while (!bytes.empty()) {
      const auto key = take_varint(bytes);
      std::string value;
      size_t count = 0;
      switch (key & 7) {
      case 0:
        value = std::to_string(take_varint(bytes));
        break;
      case 1:
        count = 8;
        break;
      case 2:
        count = take_varint(bytes);
        break;
      case 5:
        count = 4;
        break;
      default:
        FAIL("a field of no known kind");
      }
      REQUIRE(count <= bytes.size());
      if (count > 0) value = bytes.substr(0, count);
      bytes.remove_prefix(count);
      all.emplace(static_cast<int>(key >> 3), value);
    }
    return all;
  }

  std::string field(const fields& from, int number) {
    const auto found = from.find(number);
    return found == from.end() ? "" : found->second;
  }

  template <class Number>
  Number number(const std::string& bytes) {
    REQUIRE(bytes.size() == sizeof(Number));
    Number result{};
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  }

  // The messages of a file; the length of each lies in front of it.
  std::vector<fields> events_in(const std::filesystem::path& path) {
    const auto content = test::content(path);
    std::vector<fields> events;
    for (size_t offset = 0; offset < content.size();) {
      REQUIRE(offset + 16 <= content.size());
      const auto length = number<uint64_t>(content.substr(offset, 8));
      REQUIRE(offset + 16 + length <= content.size());
      events.push_back(fields_of(std::string_view{content}.substr(offset + 12, length)));
      offset += 16 + length;
    }
    return events;
  }

  event_file created(const std::filesystem::path& folder) {
    auto file = event_file::create(folder, origin);
    REQUIRE(file);
    return std::move(*file);
  }

  TEST_CASE("a long run has points for fewer and fewer of its steps") {
    uint64_t count = 0;
    for (uint64_t step = 1; step <= 3'000'000; ++step)
      count += event_file::has_points(step);
    CHECK(count == 100'000 + 90'000 + 20'000);
    CHECK(event_file::has_points(0));
    CHECK_FALSE(event_file::has_points(UINT64_MAX));
  }

  TEST_CASE("begins with the version, under a name that TensorBoard looks for") {
    test::scratch_folder folder;
    const auto file = created(folder.path());
    CHECK(file.path() == folder / "events.out.tfevents.1700000000.host");
    CHECK(test::content(file.path())
          == "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\x10\x40\xfc\x54\xd9\x41\x1a\x0d"
             "brain.Event:2\x33\x8d\x2f\xe9"s);
  }

  TEST_CASE("writes the figures of a step as curves") {
    test::scratch_folder folder;
    auto file = created(folder.path());
    REQUIRE(file.append(test::step_with_a_straggler()));
    REQUIRE(file.flush());
    const auto events = events_in(file.path());
    REQUIRE(events.size() == 3);
    CHECK(field(events[1], 2) == "8");
    CHECK(number<double>(field(events[1], 1)) == 1'700'000'001.75);
    std::map<std::string, float> curves;
    const auto summary = fields_of(field(events[1], 5));
    for (const auto& [key, bytes] : summary) {
      const auto value = fields_of(bytes);
      curves[field(value, 1)] = number<float>(field(value, 2));
    }
    CHECK(curves
          == std::map<std::string, float>{{"gradients/accepted", 3.0F},
                                          {"gradients/cancelled", 0.0F},
                                          {"gradients/stale", 1.0F},
                                          {"loss", 3.0F},
                                          {"replicas/live", 4.0F},
                                          {"speed/apply_seconds", 0.05F},
                                          {"speed/examples_per_second", 192.0F},
                                          {"speed/step_seconds", 0.5F}});
  }

  TEST_CASE("writes how the computing times of a step are distributed") {
    test::scratch_folder folder;
    auto file = created(folder.path());
    REQUIRE(file.append(test::step_with_a_straggler()));
    REQUIRE(file.flush());
    const auto events = events_in(file.path());
    REQUIRE(events.size() == 3);
    const auto value = fields_of(field(fields_of(field(events[2], 5)), 1));
    CHECK(field(value, 1) == "speed/compute_seconds");
    const auto histogram = fields_of(field(value, 5));
    CHECK(number<double>(field(histogram, 1)) == 0.1);
    CHECK(number<double>(field(histogram, 2)) == 0.1);
    CHECK(number<double>(field(histogram, 3)) == 4);
    CHECK(number<double>(field(histogram, 4)) == doctest::Approx(0.4));
    CHECK(number<double>(field(histogram, 5)) == doctest::Approx(0.04));
    const auto limits = field(histogram, 6);
    const auto counts = field(histogram, 7);
    REQUIRE(limits.size() == 3 * sizeof(double));
    REQUIRE(counts.size() == limits.size());
    CHECK(number<double>(counts.substr(8, 8)) == 4);
    CHECK(number<double>(limits.substr(0, 8)) <= 0.1);
    CHECK(number<double>(limits.substr(8, 8)) > 0.1);
  }

  TEST_CASE("leaves out what is no number") {
    test::scratch_folder folder;
    auto file = created(folder.path());
    const event_scalar scalars[] = {{"known", 2}, {"unknown", std::nan("")}};
    REQUIRE(file.add(1, 1s, scalars));
    REQUIRE(file.add(2, 2s, {scalars + 1, 1}));
    REQUIRE(file.add_histogram(3, 3s, "none", {}));
    REQUIRE(file.flush());
    const auto events = events_in(file.path());
    REQUIRE(events.size() == 2);
    CHECK(fields_of(field(events[1], 5)).size() == 1);
  }

  TEST_CASE("brings what is new to the file every few seconds") {
    test::scratch_folder folder;
    auto file = created(folder.path());
    const event_scalar one[] = {{"one", 1}};
    REQUIRE(file.add(1, 4s, one));
    CHECK(events_in(file.path()).size() == 1);
    REQUIRE(file.add(2, 5s, one));
    CHECK(events_in(file.path()).size() == 3);
    REQUIRE(file.add(3, 9s, one));
    CHECK(events_in(file.path()).size() == 3);
    REQUIRE(file.add(4, 11s, one));
    CHECK(events_in(file.path()).size() == 5);
  }

  TEST_CASE("leaves a file of the same second as it is, and takes the next name") {
    test::scratch_folder folder;
    {
      auto first = created(folder.path());
      REQUIRE(first.append(test::step_with_a_straggler()));
    }
    const auto before = test::content(folder / "events.out.tfevents.1700000000.host");
    CHECK(created(folder.path()).path() == folder / "events.out.tfevents.1700000000.host.1");
    CHECK(created(folder.path()).path() == folder / "events.out.tfevents.1700000000.host.2");
    CHECK(test::content(folder / "events.out.tfevents.1700000000.host") == before);
  }

  TEST_CASE("reports a folder that cannot be written") {
    const auto file = event_file::create("/missing", origin);
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }
}

} // namespace event_file_test
