// SPDX-License-Identifier: Apache-2.0
// Casts on vectors and all cores.
#include "kernels/math/cast.hpp"

#include "kernels/tensor/parallel.hpp"
#include "messages/errors/failure.hpp"

#include <string>

namespace troupe::cpu {

namespace {

template <class From, class To>
void cast_all(const context& on, std::span<const From> from, std::span<To> to) {
  auto loop = [](const From* source, size_t count, To* out) {
    TROUPE_INDEPENDENT
    for (size_t i = 0; i < count; ++i)
      out[i] = narrow<To>(source[i]);
  };
  parallel_chunks(on, to.size(), [&](size_t begin, size_t end) {
    with_widest_vectors([&] { loop(from.data() + begin, end - begin, to.data() + begin); });
  });
}

} // namespace

void cast(const context& on, const elements& from, const mutable_elements& to) {
  TROUPE_ASSERT(from.count == to.count, from.count, to.count);
  visit_floating(from.type, [&]<class From>(From) {
    visit_floating(to.type, [&]<class To>(To) { cast_all(on, from.as<From>(), to.as<To>()); });
  });
}

} // namespace troupe::cpu

namespace troupe {

tensor cast(const tensor& from, dtype type) {
  if (from.type() == type) return from;
  if (!is_floating(from.type()) || !is_floating(type))
    throw failure{{errc::type_mismatch, "a tensor of " + std::string{to_string(from.type())}
                                          + " cannot be cast to " + std::string{to_string(type)}
                                          + ": casts are between floating types"}};
  from.check_on_host();
  tensor result{type, from.extents()};
  cpu::cast({}, elements{from.contiguous()}, mutable_elements{result});
  return result;
}

} // namespace troupe
