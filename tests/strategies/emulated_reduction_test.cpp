// SPDX-License-Identifier: Apache-2.0
// Goal: a GPU that has no memory for one reduction makes the next. Method: an emulated GPU that is
// starved, and collectives that count who asks.
#include "actors/gpu/cuda_device.hpp"
#include "kernels/elementwise.hpp"
#include "strategies/hierarchical_copy_all_reduce.hpp"
#include "strategies/nccl_all_reduce.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/strategies/refusal.hpp"

#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A group of one: its sum is what it brings.
class lone_participant final : public collective_participant {
public:
  explicit lone_participant(size_t& asked) : asked_(asked) {}

  [[nodiscard]] expected<bool> is_ready() override { return !is_aborted_; }

  [[nodiscard]] expected<void> ask(std::span<const device_collective> what,
                                   compute_stream& on) override {
    ++asked_;
    const auto& context = dynamic_cast<cuda_stream&>(on).context();
    auto output = what[0].output;
    if (output.data() != what[0].input.data())
      cuda::copy<float>(context, what[0].input.values<float>(on.where()),
                        output.mutable_values<float>(on.where()));
    return context.status();
  }

  void abort() override { is_aborted_ = true; }

private:
  size_t& asked_;
  bool is_aborted_ = false;
};

struct lone_collectives final : collective_library {
  [[nodiscard]] std::string_view name() const override { return "lone"; }

  [[nodiscard]] expected<collective_id> make_id() override { return collective_id{}; }

  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id&, uint32_t, uint32_t, compute_device&) override {
    return std::make_unique<lone_participant>(asked);
  }

  size_t asked = 0;
};

std::shared_ptr<compute_device> gpu(int index) {
  return value_or_throw(open_cuda_device(index, 1));
}

device_values two_values() {
  return {{make_tensor({3}, {1, 2, 3}), make_tensor({3}, {10, 20, 30})}, {"gpu:0", "gpu:1"}};
}

float third_of_sum(const cross_device_ops& ops) {
  auto values = two_values();
  auto sum = ops.reduce(reduce_op::sum, values, destinations{values.devices});
  return std::get<tensor>(sum).values<float>()[2];
}

} // namespace

TEST_SUITE("strategies/emulated_reduction") {
  TEST_CASE("after a reduction without memory of the device comes one with it") {
    for (bool by_nccl : {true, false}) {
      auto library = std::make_shared<lone_collectives>();
      std::unique_ptr<cross_device_ops> ops;
      if (by_nccl)
        ops = std::make_unique<nccl_all_reduce>(std::vector{gpu(0)}, library);
      else
        ops = std::make_unique<hierarchical_copy_all_reduce>(std::vector{gpu(0), gpu(1)});
      emulated::set_memory_bytes(emulated::device_bytes());
      auto refused = refusal_of([&] { static_cast<void>(third_of_sum(*ops)); });
      emulated::set_memory_bytes(size_t{1} << 30);
      CHECK(refused.code == errc::resource);
      CHECK(library->asked == 0);
      CHECK(third_of_sum(*ops) == 33);
    }
  }

  TEST_CASE("no device is asked before there is memory of the host for the result") {
    auto library = std::make_shared<lone_collectives>();
    nccl_all_reduce ops{{gpu(0)}, library};
    emulated::set_pinned_bytes(0);
    auto refused = refusal_of([&] { static_cast<void>(third_of_sum(ops)); });
    emulated::set_pinned_bytes(size_t{1} << 30);
    CHECK(refused.code == errc::resource);
    CHECK(library->asked == 0);
    CHECK(third_of_sum(ops) == 33);
  }
}
