// SPDX-License-Identifier: Apache-2.0
// The inner loop of every pass over gradients: a block of each source, added up.
#include "kernels/gradient_sum.hpp"
#include "kernels/parallel.hpp"

#include <cstring>

namespace troupe::cpu {

namespace {

/// Sources that are read side by side. More would be more streams than prefetchers follow; fewer
/// would write the sum to the cache and read it again more often.
constexpr size_t group_size_max = 4;

/// What a sum is divided by and multiplied with before it is stored.
template <class T>
struct finish {
  T divisor = 1;
  T scale = 1;

  T operator()(T sum) const { return sum / divisor * scale; }
};

/// out = end(first + rest...), in this order.
template <class T, class From, class... Rest>
void begin_sum(T* out, size_t count, finish<T> end, const From* first, const Rest*... rest) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    T sum = widen<T>(first[i]);
    ((sum += widen<T>(rest[i])), ...);
    out[i] = end(sum);
  }
}

/// out = end(out + sources...), in this order.
template <class T, class... From>
void continue_sum(T* out, size_t count, finish<T> end, const From*... sources) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    T sum = out[i];
    ((sum += widen<T>(sources[i])), ...);
    out[i] = end(sum);
  }
}

/// Some sources of one type, side by side.
template <class T, class From>
struct group {
  const elements* sources;
  size_t begin;
  size_t count;
  bool is_first;
  finish<T> end;

  [[nodiscard]] const From* source(size_t i) const {
    return static_cast<const From*>(sources[i].data) + begin;
  }

  template <class... Index>
  void add(T* out, Index... index) const {
    vectorised([&] {
      if (is_first)
        begin_sum(out, count, end, source(index)...);
      else
        continue_sum(out, count, end, source(index)...);
    });
  }
};

template <class T, class From>
void add_group(const group<T, From>& from, size_t group_size, T* out) {
  switch (group_size) {
  case 1:
    return from.add(out, 0);
  case 2:
    return from.add(out, 0, 1);
  case 3:
    return from.add(out, 0, 1, 2);
  default:
    return from.add(out, 0, 1, 2, 3);
  }
}

/// How many of the sources from `first` on are of one type, at most a group.
size_t size_of_group(std::span<const elements> sources, size_t first) {
  size_t size = 1;
  while (size < group_size_max && first + size < sources.size()
         && sources[first + size].type == sources[first].type)
    ++size;
  return size;
}

} // namespace

template <class T>
void combine_block(const gradient_sum& gradient, size_t begin, size_t count, T* out) {
  const finish<T> at_the_end{static_cast<T>(gradient.divisor), static_cast<T>(gradient.scale)};
  auto sources = gradient.sources;
  for (size_t first = 0; first < sources.size();) {
    size_t size = size_of_group(sources, first);
    bool is_last = first + size == sources.size();
    visit_floating(sources[first].type, [&](auto zero) {
      using from = decltype(zero);
      if constexpr (widens_to(dtype_of<from>, dtype_of<T>))
        add_group(group<T, from>{&sources[first], begin, count, first == 0,
                                 is_last ? at_the_end : finish<T>{}},
                  size, out);
    });
    first += size;
  }
}

template void combine_block(const gradient_sum&, size_t, size_t, float*);
template void combine_block(const gradient_sum&, size_t, size_t, double*);

} // namespace troupe::cpu
