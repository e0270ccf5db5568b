// SPDX-License-Identifier: Apache-2.0
// Goal: a job that reads its batches from a dataset goes on from a checkpoint with the very next
// one. Method: the same job in one piece and in two, with a file between them; the replicas note
// which rows they were given.
#include "strategies/data/text_file.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"

namespace data_resume_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint32_t replicas = 3;
constexpr uint64_t cut = 7;
constexpr uint64_t all_steps = 20;

/// The lines that the replicas read, and the variable's value in the end.
struct course_of_data {
  std::vector<std::vector<std::string>> lines{replicas};
  std::vector<float> value;
};

/// Trains by the lines of a file, 5 to a batch; each replica has every third one.
course_of_data train_piece(const std::filesystem::path& text, const std::filesystem::path& folder,
                           uint64_t steps, bool resumes) {
  auto world = world::virtual_time({.seed = 3});
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto sum = strategy.make_variable("sum", zeros({1}));
  sync_replicas_optimizer optimizer{
    rules::sgd{.learning_rate = 1},
    {.replicas_to_aggregate = replicas, .total_num_replicas = replicas}};
  auto elsewhere = [&](std::function<void()> work) { world.submit(std::move(work)); };
  auto seen = std::make_shared<course_of_data>();
  auto batches = std::make_shared<std::vector<dataset_iterator>>();
  for (uint32_t replica = 0; replica < replicas; ++replica) {
    auto lines = text_file(text).shard(replicas, replica).shuffle(10, replica);
    batches->push_back(lines.batch(5).repeat().prefetch(2, elsewhere).iterate());
  }
  auto step = [=](replica_context& context) -> task<void> {
    auto replica = context.replica_id_in_sync_group();
    auto& mine = (*batches)[replica];
    if (auto place = context.kept("batches")) value_or_throw(mine.restore(*place));
    auto batch = value_or_throw(mine.next());
    context.keep("batches", mine.position());
    float total = 0;
    for (const auto& line : batch->texts) {
      total += std::stof(line);
      seen->lines[replica].push_back(line);
    }
    auto computing
      = context.compute([total](std::stop_token) { return make_tensor({1}, {-total}); });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, sum);
    co_await applying;
  };
  training_options options;
  options.steps = steps;
  options.pace = [](uint32_t, uint64_t, job_time) { return job_time{1000}; };
  options.hooks.push_back(std::make_shared<checkpoint_saver_hook>(
    folder, checkpoint_options{.every_steps = cut, .keep = 9}));
  if (resumes) options.resume = find_checkpoint(folder)->snapshot;
  auto report = train(strategy, optimizer, step, options);
  REQUIRE_MESSAGE(!report.failure, report.failure->message);
  auto value = strategy.read(sum);
  seen->value.assign(value.values<float>().begin(), value.values<float>().end());
  return *seen;
}

} // namespace

TEST_SUITE("strategies/data/data_resume") {
  TEST_CASE("a resumed job reads on where it was") {
    scratch_folder folder;
    std::string numbers;
    for (int i = 0; i < 100; ++i)
      numbers += std::to_string(i) + "\n";
    write(folder / "numbers", numbers);
    auto whole = train_piece(folder / "numbers", folder / "whole", all_steps, false);
    auto first = train_piece(folder / "numbers", folder / "halves", cut, false);
    auto second = train_piece(folder / "numbers", folder / "halves", all_steps - cut, true);
    CHECK(second.value == whole.value);
    for (uint32_t replica = 0; replica < replicas; ++replica) {
      const auto& all = whole.lines[replica];
      const auto& rest = second.lines[replica];
      REQUIRE(rest.size() <= all.size());
      CHECK(std::equal(rest.begin(), rest.end(), all.end() - static_cast<ptrdiff_t>(rest.size())));
      CHECK(rest.size() < all.size());
    }
  }
}

} // namespace data_resume_test
