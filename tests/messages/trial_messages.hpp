// SPDX-License-Identifier: Apache-2.0
// Messages of trial.capnp, as a trainer's author would make them.
#pragma once

#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "tests/messages/trial.capnp.h"

namespace troupe {

/// Every field is set: an array, a sparse one two structs deep, a gradient in a union.
[[nodiscard]] inline msg<trial::Opinion> make_opinion(uint32_t replica, const tensor& gradient) {
  own_message_builder<trial::Opinion> made;
  made.body.setReplica(replica);
  made.body.setMood(trial::Mood::CROSS);
  write_tensor(*made.storage, made.body.initGradient(), gradient);
  auto remark = made.body.initRemarks(2)[1];
  remark.setText("rows");
  auto next = remark.initNext();
  auto rows = next.initRows();
  write_tensor(*made.storage, rows.initIndices(), zeros({1}, dtype::i64));
  write_tensor(*made.storage, rows.initValues(), zeros({1, 2}));
  rows.initDenseShape(2).set(0, 4);
  rows.getDenseShape().set(1, 2);
  write_gradient(*made.storage, made.body.getVerdict().initChange(), gradient);
  return std::move(made).finish();
}

[[nodiscard]] inline msg<trial::Count> make_count(uint64_t value) {
  own_message_builder<trial::Count> made;
  made.body.setValue(value);
  return std::move(made).finish();
}

} // namespace troupe
