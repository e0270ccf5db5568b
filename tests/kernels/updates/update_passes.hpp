// SPDX-License-Identifier: Apache-2.0
// Updates of one variable in two contexts that have to come to the same bits.
#pragma once

#include "kernels/tensor/random.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::test {

/// Arrays of normally distributed numbers; the next one has others.
class drawn_arrays {
public:
  template <class T>
  tensor next(const shape& extents) {
    random_stream draw{random_key{1, "test", count_++}};
    tensor result{dtype_of<T>, extents};
    for (auto& value : result.mutable_values<T>())
      value = static_cast<T>(draw.normal());
    return result;
  }

  /// Rows of an array of such a shape.
  template <class T>
  indexed_slices next_rows(const std::vector<int64_t>& rows, const shape& whole) {
    auto dims = whole.dims();
    dims[0] = static_cast<int64_t>(rows.size());
    indexed_slices result{{dtype::i64, {dims[0]}}, next<T>(shape{dims}), whole};
    std::copy(rows.begin(), rows.end(), result.indices.mutable_values<int64_t>().begin());
    return result;
  }

private:
  uint32_t count_ = 0;
};

/// All rules at their defaults.
inline std::vector<update_rule> all_rules() {
  return mapped(choice_names<update_rule>(),
                [](auto name) { return choice_of_name<update_rule>("optimizer", name).value(); });
}

/// Whether a context adds up norms in the order of the CPU.
enum class norms { exact, close };

/// Three updates of a variable by `plan` here and in another context.
/// @param send,fetch Copy a tensor there, and back.
template <class T, class Context, class Send, class Fetch>
void check_updates(const Context& there, const update_plan& plan, const Send& send,
                   const Fetch& fetch, norms are) {
  const shape extents{7, 33};
  drawn_arrays drawn;
  variable_state mine{.value = drawn.next<T>(extents)};
  variable_state other{.value = send(mine.value.clone())};
  prepare(cpu::context{}, mine, plan);
  prepare(there, other, plan);
  auto are_same = [&](const tensor& here, const tensor& elsewhere) {
    auto copy = fetch(elsewhere);
    return std::memcmp(here.data(), copy.data(), here.bytes()) == 0;
  };
  auto dense = drawn.next<T>(extents);
  auto some = drawn.next_rows<T>({6, 0, 3}, extents), others = drawn.next_rows<T>({3, 5}, extents);
  const std::vector<std::vector<gradient>> steps{
    {dense, drawn.next<T>(extents)}, {some, others}, {others, dense}};
  for (const auto& gradients : steps) {
    const gradient_mean mean{gradients, 3, 0.5};
    const measured_mean measured[] = {{mine, mean}, {mine, {{}}}, {mine, {gradients}}};
    const measured_mean measured_there[] = {{other, mean}, {other, {{}}}, {other, {gradients}}};
    auto wanted = squared_norms(cpu::context{}, measured);
    auto got = squared_norms(there, measured_there);
    CHECK(got[1] == 0);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (are == norms::exact)
        CHECK(got[i] == wanted[i]);
      else
        CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
    update_variable(cpu::context{}, mine, plan, mean);
    update_variable(there, other, plan, mean);
    CHECK(are_same(mine.value, other.value));
    for (size_t slot = 0; slot < mine.slots.size(); ++slot)
      CHECK(are_same(mine.slots[slot].values, other.slots[slot].values));
    if (mine.average) CHECK(are_same(mine.average->values, other.average->values));
  }
}

/// The same by all rules, with clips, averages, and sparse updates that are exact or not.
template <class T, class Context, class Send, class Fetch>
void check_all_updates(const Context& there, const Send& send, const Fetch& fetch,
                       norms are = norms::exact) {
  for (const auto& rule : all_rules())
    for (auto clip :
         {gradient_clip{}, gradient_clip{.value_max = 0.1}, gradient_clip{.norm_max = 2}})
      for (auto is_exact : {false, true}) {
        if (clip.norm_max > 0 && are == norms::close) continue; // it is a factor of every element
        CAPTURE(name_of(rule));
        CAPTURE(clip.value_max);
        CAPTURE(clip.norm_max);
        CAPTURE(is_exact);
        update_plan plan{.rule = rule, .clip = clip, .sparse_exact = is_exact};
        if (is_exact) plan.average = moving_average{.decay = 0.75};
        check_updates<T>(there, plan, send, fetch, are);
      }
}

} // namespace troupe::test
