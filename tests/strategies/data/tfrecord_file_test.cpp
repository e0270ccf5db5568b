// SPDX-License-Identifier: Apache-2.0
// Goal: records come out as they went in, and damage is named with its place. Method: frames, cut
// and damaged everywhere; their own test holds them against tensorboard's.
#include "actors/recording/tfrecord.hpp"
#include "strategies/data/tfrecord_file.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/memory_file.hpp"

namespace tfrecord_file_test {

TEST_SUITE("strategies/data/tfrecord_file") {
  using namespace troupe;
  using test::complaint_about;
  using test::in_memory;

  using records = std::vector<std::string>;

  std::string three_records() {
    return tfrecord::frame("one") + tfrecord::frame("") + tfrecord::frame("three");
  }

  TEST_CASE("reads records") {
    test::scratch_folder folder;
    test::write(folder / "records", three_records());
    const auto source = tfrecord_file(folder / "records");
    auto iterator = source.iterate();
    CHECK(test::drain(iterator) == records{"one", "", "three"});
    CHECK(test::texts_of(tfrecord_dataset(in_memory(""))) == records{});
  }

  TEST_CASE("names the frame that is cut") {
    auto text = three_records();
    text.resize(text.size() - 1);
    CHECK(complaint_about(tfrecord_dataset(in_memory(text)))
          == "file: byte 35: record 2 is cut: it has 5 bytes, and 8 are left in the file");
    text.resize(40);
    CHECK(complaint_about(tfrecord_dataset(in_memory(text)))
          == "file: byte 35: record 2 is cut: 5 bytes are left of its frame");
  }

  TEST_CASE("names the length that is damaged") {
    auto text = three_records();
    text[19] = 1;
    CHECK(
      complaint_about(tfrecord_dataset(in_memory(text)))
      == "file: byte 19: record 1: its length does not match its checksum: damaged, compressed, "
         "or no TFRecord file");
    // A length that is meant to overflow, with a checksum that is right.
    auto huge = tfrecord::frame(std::string(8, '\xff')).substr(12, 8);
    const auto checksum = tfrecord::masked_checksum(std::as_bytes(std::span{huge}));
    huge.append(reinterpret_cast<const char*>(&checksum), sizeof checksum).append(100, 'x');
    CHECK(complaint_about(tfrecord_dataset(in_memory(huge)))
            .starts_with("file: byte 0: record 0 is cut"));
  }

  TEST_CASE("names the record that is damaged, and goes on behind it") {
    auto text = three_records();
    text[13] = 'x';
    CHECK(test::texts_of(tfrecord_dataset(in_memory(text)))
          == records{"file: byte 0: record 0 does not match its checksum: damaged", "", "three"});
  }

  TEST_CASE("survives every damage") {
    test::try_all_damages(three_records(), tfrecord_dataset);
  }
}

} // namespace tfrecord_file_test
