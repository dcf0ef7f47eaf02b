// SPDX-License-Identifier: Apache-2.0
#include "import/view.hpp"

#include <algorithm>
#include <numeric>

namespace edl::tool::lifting {

numbers view::dims() const {
  numbers all;
  for (auto const& axis : axes) {
    all.push_back(1);
    for (int const i : axis) all.back() *= sizes[std::size_t(i)];
  }
  return all;
}

std::int64_t view::size() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t(1), std::multiplies<>());
}

std::vector<int> view::order() const {
  std::vector<int> all;
  for (auto const& axis : axes) all.insert(all.end(), axis.begin(), axis.end());
  return all;
}

bool view::in_memory_order() const { return std::ranges::is_sorted(order()); }

std::vector<std::size_t> view::places() const {
  if (std::ranges::find(sizes, 0) != sizes.end()) return {};
  numbers stride(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) stride[i - 1] = stride[i] * sizes[i];
  std::vector<std::size_t> all{0};
  for (int const i : order()) {
    std::vector<std::size_t> next;
    next.reserve(all.size() * std::size_t(sizes[std::size_t(i)]));
    for (std::size_t const from : all)
      for (std::int64_t k = 0; k < sizes[std::size_t(i)]; ++k)
        next.push_back(from + std::size_t(k * stride[std::size_t(i)]));
    all = std::move(next);
  }
  return all;
}

view view::joined() const {
  view result;
  std::vector<int> after(sizes.size(), -1), name(sizes.size(), -1);
  for (auto const& axis : axes)
    for (std::size_t k = 0; k + 1 < axis.size(); ++k) after[std::size_t(axis[k])] = axis[k + 1];
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && after[i - 1] == int(i)) {
      result.sizes.back() *= sizes[i];
    } else {
      name[i] = int(result.sizes.size());
      result.sizes.push_back(sizes[i]);
    }
  }
  for (auto const& axis : axes) {
    result.axes.emplace_back();
    for (int const i : axis)
      if (name[std::size_t(i)] >= 0) result.axes.back().push_back(name[std::size_t(i)]);
  }
  return result;
}

std::optional<view> view::reshaped(numbers const& dims) const {
  view result{sizes, {}};
  std::vector<int> rest = order();
  std::size_t next = 0;
  for (std::int64_t left : dims) {
    result.axes.emplace_back();
    while (left > 1) {
      if (next == rest.size()) return std::nullopt;
      int const i = rest[next];
      std::int64_t& size = result.sizes[std::size_t(i)];
      if (left % size != 0) {  // a part of this one
        if (size % left != 0) return std::nullopt;
        std::int64_t const inner = size / left;
        size = left;
        result.sizes.insert(result.sizes.begin() + i + 1, inner);
        for (auto* const list : {&rest})
          for (int& k : *list) k += k > i;
        for (auto& axis : result.axes)
          for (int& k : axis) k += k > i;
        rest.insert(rest.begin() + std::ptrdiff_t(next) + 1, i + 1);
      }
      left /= result.sizes[std::size_t(i)];
      result.axes.back().push_back(i);
      ++next;
    }
  }
  if (next != rest.size()) return std::nullopt;
  return result;
}

int view::places_of(int channels) const {
  std::int64_t inner = 1;
  std::size_t first = sizes.size();
  while (inner < channels && first > 0) inner *= sizes[--first];
  return inner == channels ? int(first) : -1;
}

bool view::is_channels(std::size_t axis, int channels) const {
  int const first = places_of(channels);
  if (first < 0 || axis >= axes.size() || axes[axis].size() != sizes.size() - std::size_t(first))
    return false;
  for (std::size_t k = 0; k < axes[axis].size(); ++k)
    if (axes[axis][k] != first + int(k)) return false;
  return true;
}

view in_order(numbers const& dims) {
  view result;
  for (std::int64_t const d : dims) {
    result.axes.emplace_back();
    if (d == 1) continue;
    result.axes.back().push_back(int(result.sizes.size()));
    result.sizes.push_back(d);
  }
  return result;
}

view channels_first(shape of, std::size_t rank) {
  view result =
      in_order(rank == 2 ? numbers{of.width, of.channels} : numbers{of.height, of.width, of.channels});
  std::ranges::rotate(result.axes, result.axes.end() - 1);
  return result;
}

}  // namespace edl::tool::lifting
