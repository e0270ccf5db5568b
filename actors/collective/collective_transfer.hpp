// SPDX-License-Identifier: Apache-2.0
// One collective as one process sees it: how far it is, and what it has.
#pragma once

#include "actors/collective/collective_plan.hpp"
#include "actors/net/array_places.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/collective_message.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// Carries a plan out: no actor, no clock, and parts may come in any order.
///
/// Memory is written once and read from then on: own contributions are not written, a sum that
/// travels on has memory of its own, and final values go into the result. So messages refer to all
/// of it, and nothing is copied to be sent. Only final values are copied when they arrive, unless
/// they were read to where they belong. In place, the result is the contribution: its elements are
/// final when all have read them, whichever way they go, but for those that go directly.
class collective_transfer {
public:
  /// Takes a part to a rank, or to `everybody`; rank and call are not filled in.
  using send_function = std::function<void(uint32_t peer, collective_part part)>;

  /// @param contributions Contiguous; as `meaning` says. @param in_place As in `collective_call`.
  collective_transfer(group_place place, collective_meaning meaning,
                      std::vector<tensor> contributions, bool in_place = false);

  [[nodiscard]] const collective_meaning& meaning() const { return meaning_; }

  /// Calls `body(collective_part_key, array_place)` for each result that will come, without the
  /// call's number, and the memory where it belongs.
  template <class Body>
  void for_awaited_results(const Body& body) {
    for (uint32_t i = 0; i < strands_.size(); ++i)
      for (const auto& step : strands_[i].steps) {
        if (step.action != step_action::copy_result) continue;
        auto to = result_elements(step.range);
        body(collective_part_key{.rank = step.peer, .strand = i, .begin = step.range.begin},
             array_place{{static_cast<std::byte*>(to.data), to.count * element_bytes(to.type)},
                         result_.owner()});
      }
  }

  /// Does all that needs no peer.
  void begin(const send_function& send);

  /// A part has come; does all that it makes possible. A part that has come before is passed over.
  /// Errors: malformed, if it is none that its sender could have sent: with what is wrong.
  [[nodiscard]] expected<void> take(collective_part part, const send_function& send);

  [[nodiscard]] bool is_done() const { return open_strands_ == 0; }

  /// Whether it waits for something of a peer, or has still something to send.
  [[nodiscard]] bool needs(uint32_t peer) const;

  /// The result for this process. @pre `is_done()`.
  [[nodiscard]] tensor result() const;

private:
  /// Elements in memory of their own.
  struct piece {
    element_range range;
    tensor values;
  };

  /// How far a strand is.
  struct strand_state {
    plan_strand steps;
    size_t next = 0;                      ///< Step.
    std::optional<piece> partial;         ///< Once something was added, or folded.
    std::vector<collective_part> arrived; ///< And not needed yet.
    /// Contributions that `sum_kept` adds up, by rank; our own, as we sent it, is one of them.
    std::vector<std::vector<tensor>> kept;
  };

  [[nodiscard]] dtype type() const { return static_cast<dtype>(meaning_.dtype); }

  [[nodiscard]] dtype partial_type() const;
  [[nodiscard]] bool folds(uint32_t rank) const;
  [[nodiscard]] expected<void> check(const collective_part& part, const plan_step& step) const;
  [[nodiscard]] expected<void> check_gathered(const collective_part& part) const;
  void begin_more(const send_function& send);
  void advance(strand_state& strand, const send_function& send);
  bool perform(strand_state& strand, const plan_step& step, const send_function& send);
  bool receive(strand_state& strand, const plan_step& step);
  void add(strand_state& strand, const plan_step& step, const tensor& received);
  [[nodiscard]] bool may_overwrite() const;
  void sum_into_result(std::span<const elements> sources, element_range range);
  void sum_kept(strand_state& strand, element_range range);
  void gather();
  [[nodiscard]] std::vector<tensor> own(element_range range) const;
  [[nodiscard]] std::vector<tensor> contributions(element_range range) const;
  [[nodiscard]] tensor partial(strand_state& strand, element_range range);
  [[nodiscard]] tensor result(element_range range) const;
  [[nodiscard]] mutable_elements result_elements(element_range range);

  group_place place_;
  collective_meaning meaning_;
  std::vector<tensor> contributions_;
  std::vector<strand_state> strands_;
  size_t strands_at_once_ = 1;
  size_t begun_strands_ = 0;
  size_t open_strands_ = 0;
  bool in_place_ = false;     ///< The result is our contribution.
  tensor result_;             ///< Written part by part; what is not written is seen only here.
  uint64_t result_begin_ = 0; ///< Position of its first element in the whole array.
};

} // namespace troupe
