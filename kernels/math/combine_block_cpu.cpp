// SPDX-License-Identifier: Apache-2.0
// The inner loop of every pass over gradients: a block of each source, added up.
#include "kernels/tensor/gradient_sum.hpp"
#include "kernels/tensor/parallel.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace troupe::cpu {

namespace {

/// Sources that are read side by side. All at once would need a loop for every number of sources;
/// fewer would write the sum to the cache and read it again more often.
constexpr size_t group_size_max = 4;

/// The last step of a sum before it is stored. After all groups but the last, `unfinished` takes
/// its place: a division by 1 would cost as much as any other.
template <class T>
struct finished {
  T divisor;
  T scale;

  T operator()(T sum) const { return sum / divisor * scale; }
};

template <class T>
struct unfinished {
  T operator()(T sum) const { return sum; }
};

/// out = end(first + rest...), in this order.
template <class T, class End, class From, class... Rest>
void begin_sum(T* out, size_t count, End end, const From* first, const Rest*... rest) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    T sum = widen<T>(first[i]);
    ((sum += widen<T>(rest[i])), ...);
    out[i] = end(sum);
  }
}

/// out = end(out + sources...), in this order.
template <class T, class End, class... From>
void continue_sum(T* out, size_t count, End end, const From*... sources) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    T sum = out[i];
    ((sum += widen<T>(sources[i])), ...);
    out[i] = end(sum);
  }
}

/// Blocks of some sources of one type, and where their sum goes.
template <class T, class From>
struct group {
  std::array<const From*, group_size_max> from;
  size_t size;
  size_t count;
  T* out;
  bool is_first;
};

/// Captures by value: what a closure refers to would be read from memory again and again.
template <class T, class From, class End, size_t... Source>
void add_side_by_side(const group<T, From>& in, End end, std::index_sequence<Source...>) {
  if (in.is_first)
    with_widest_vectors([=] { begin_sum(in.out, in.count, end, in.from[Source]...); });
  else
    with_widest_vectors([=] { continue_sum(in.out, in.count, end, in.from[Source]...); });
}

template <class T, class From, class End>
void add_group(const group<T, From>& in, End end) {
  switch (in.size) {
  case 1:
    return add_side_by_side(in, end, std::make_index_sequence<1>{});
  case 2:
    return add_side_by_side(in, end, std::make_index_sequence<2>{});
  case 3:
    return add_side_by_side(in, end, std::make_index_sequence<3>{});
  default:
    return add_side_by_side(in, end, std::make_index_sequence<4>{});
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

/// A pass of its own, because gradients are hardly ever limited.
template <class T>
void limit_block(T* out, size_t count, T limit) {
  with_widest_vectors([=] {
    TROUPE_INDEPENDENT
    for (size_t i = 0; i < count; ++i)
      out[i] = limited(out[i], limit);
  });
}

} // namespace

template <class T>
void combine_block(const gradient_sum& gradient, size_t begin, size_t count, T* out) {
  const finished<T> end{static_cast<T>(gradient.divisor), static_cast<T>(gradient.scale)};
  auto sources = gradient.sources;
  for (size_t first = 0; first < sources.size();) {
    size_t size = size_of_group(sources, first);
    bool is_last = first + size == sources.size();
    visit_floating(sources[first].type, [&]<class From>(From) {
      if constexpr (widens_to(dtype_of<From>, dtype_of<T>)) {
        group<T, From> in{{}, size, count, out, first == 0};
        for (size_t i = 0; i < size; ++i)
          in.from[i] = static_cast<const From*>(sources[first + i].data) + begin;
        is_last ? add_group(in, end) : add_group(in, unfinished<T>{});
      }
    });
    first += size;
  }
  if (std::isfinite(gradient.limit)) limit_block(out, count, static_cast<T>(gradient.limit));
}

template void combine_block(const gradient_sum&, size_t, size_t, float*);
template void combine_block(const gradient_sum&, size_t, size_t, double*);

} // namespace troupe::cpu
