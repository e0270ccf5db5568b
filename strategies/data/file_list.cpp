// SPDX-License-Identifier: Apache-2.0
// Finds the file, and the record in it, of an element of many files.
#include "strategies/data/file_list.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/shuffle_order.hpp"

#include <algorithm>
#include <memory>

namespace troupe {

namespace {

// The order of the files in one pass, and where each begins in it.
class file_places {
public:
  file_places(const std::vector<dataset>& files, std::optional<uint64_t> shuffle_seed)
    : is_shuffled_(shuffle_seed),
      shuffled_(shuffle_seed.value_or(0), std::max<size_t>(files.size(), 1), files.size()) {
    for (const auto& file : files) {
      sizes_.push_back(file.size());
      readers_.push_back(file.open());
    }
    arrange(0);
  }

  expected<element> read(uint64_t epoch, uint64_t index) {
    if (epoch != epoch_ && is_shuffled_) arrange(epoch);
    const auto behind = std::ranges::upper_bound(begins_, index);
    const auto turn = static_cast<size_t>(behind - begins_.begin()) - 1;
    return readers_[order_[turn]](epoch, index - begins_[turn]);
  }

private:
  void arrange(uint64_t epoch) {
    epoch_ = epoch;
    order_.resize(sizes_.size());
    begins_.resize(sizes_.size());
    uint64_t begin = 0;
    for (size_t turn = 0; turn < order_.size(); ++turn) {
      order_[turn] = is_shuffled_ ? shuffled_.at(epoch, turn) : turn;
      begins_[turn] = begin;
      begin += sizes_[order_[turn]];
    }
  }

  bool is_shuffled_;
  shuffle_order shuffled_;
  uint64_t epoch_ = 0;
  std::vector<uint64_t> sizes_;
  std::vector<element_reader> readers_;
  std::vector<uint64_t> order_;  ///< Which file comes in each turn.
  std::vector<uint64_t> begins_; ///< The first element of each turn.
};

} // namespace

dataset read_files(const std::vector<std::filesystem::path>& paths,
                   const std::function<dataset(const std::filesystem::path&)>& open,
                   std::optional<uint64_t> shuffle_seed) {
  require(!paths.empty(), "read_files: there is no file");
  require(open != nullptr, "read_files: the function that opens is empty");
  return files_in_turn(mapped(paths, open), shuffle_seed);
}

dataset files_in_turn(std::vector<dataset> files, std::optional<uint64_t> shuffle_seed) {
  uint64_t size = 0;
  for (const auto& file : files) {
    require(file.size() != dataset::infinite,
            "read_files: nothing comes after a file without end: repeat all of them");
    size += file.size();
  }
  auto again = [shuffle_seed](const std::vector<dataset>& inputs) {
    return files_in_turn(inputs, shuffle_seed);
  };
  dataset_stage made_by{.kind = stage_kind::files, .inputs = files, .again = again};
  auto open = [files = std::move(files), shuffle_seed]() -> element_reader {
    auto places = std::make_shared<file_places>(files, shuffle_seed);
    return [places](uint64_t epoch, uint64_t index) { return places->read(epoch, index); };
  };
  return {size, std::move(open), std::move(made_by)};
}

} // namespace troupe
