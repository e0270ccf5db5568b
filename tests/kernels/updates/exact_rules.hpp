// SPDX-License-Identifier: Apache-2.0
// Rules of every kind, for the tests that compare the twins of an update.
#pragma once

#include "kernels/updates/update_rules.hpp"

namespace troupe::test {

/// Rules of which all twins give the same bits, on a GPU too.
inline const update_rule exact_rules[] = {
  rules::sgd{.learning_rate = 0.1},
  rules::sgd{.learning_rate = 0.1, .weight_decay = 0.01},
  rules::momentum{.learning_rate = 0.1, .decay = 0.9},
  rules::momentum{.learning_rate = 0.1, .decay = 0.9, .nesterov = true, .weight_decay = 0.01},
  rules::lion{.learning_rate = 0.1},
  rules::lion{.decoupled_weight_decay = 0.1},
  rules::adagrad{.learning_rate = 0.1},
  rules::rmsprop{.momentum = 0.5},
  rules::centered_rmsprop{.momentum = 0.5, .epsilon = 10},
  rules::adadelta{},
  rules::adam{.step = 1},
  rules::adam{.learning_rate = 0.01, .step = 1000},
  rules::adamw{.step = 2},
  rules::amsgrad{.step = 1},
  rules::amsgrad{.beta2 = 0.5, .decoupled_weight_decay = 0.1, .step = 1000},
  rules::adamax{.step = 2},
  rules::nadam{.step = 1000},
  rules::ftrl{.l1 = 0.5, .l2 = 0.1, .l2_shrinkage = 0.1, .beta = 0.1},
  rules::lars{},
  rules::lars{.weight_decay = 0, .epsilon = 0.1, .nesterov = true},
  rules::lamb{.step = 1},
  rules::lamb{.weight_decay = 0.01, .step = 1000},
};

} // namespace troupe::test
