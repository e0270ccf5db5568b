// SPDX-License-Identifier: Apache-2.0
// Which changes an owner has made that may be asked for again.
#pragma once

#include "messages/payload.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// An asker of a change that loses the owner before there is an answer asks its mirror, which may
/// have made the change already: to add twice is not to add once. So owner and mirror remember, for
/// each asker, the changes that it may ask for again, which it says with every new one, and what
/// they were answered.
///
/// Bounded by `limits::changes_of_asker_max`, beyond which an asker's earliest changes are refused
/// rather than made twice, and by `limits::askers_max`, beyond which the asker that has not asked
/// for longest is unknown again.
class made_changes {
public:
  /// A change that was made; null if it was not.
  [[nodiscard]] const made_change* find(const change_id& id) const;

  /// Whether the asker has said that it has the answer already, or it is not known any more.
  [[nodiscard]] bool is_over(const change_id& id) const;

  /// Remembers a change, and forgets what its asker has no use for any more.
  void add(made_change change);

  /// All that are remembered; those of the asker that asked last come last.
  [[nodiscard]] std::vector<made_change> all() const;

  /// Remembers these, as `all` gives them, and no others.
  void restore(std::vector<made_change> changes);

private:
  struct asker {
    uint64_t oldest = 0; ///< Earlier ones are over.
    uint64_t asked = 0;  ///< When last, by the count of all changes.
    std::map<uint64_t, made_change> made;
  };

  void forget_one();

  std::map<uint64_t, asker> askers_;
  uint64_t count_ = 0; ///< Of all changes that were added.
};

} // namespace troupe
