// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <string>

#include "edl/author/checked_view.hpp"
#include "edl/author/fed.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_error.hpp"

namespace edl::author {
namespace detail {

/// Without a branch, so that it is vectorised.
inline bool all_finite(view<float> of) {
  constexpr std::uint32_t exponent = 0x7F80'0000;
  std::uint32_t odd = 0;
  for (float const x : of) odd |= std::uint32_t((std::bit_cast<std::uint32_t>(x) & exponent) == exponent);
  return odd == 0;
}

[[noreturn]] inline void refuse_unfed(nn::input_place const& of, std::size_t first, std::size_t unset,
                                      std::size_t all) {
  if (unset == all)
    throw data_error(fmt::format("the model's `feed` does not write {}", edl::detail::shown_input(of.name)));
  throw data_error(
      fmt::format("the model's `feed` leaves {} of the {} values of {} unwritten, the first is {}", unset,
                  all, edl::detail::shown_input(of.name), first));
}

/// Of a record whose values are none: the first feature that is not finite, if any is.
inline std::string culprit(example const& record) {
  for (std::size_t f = 0; f < record.size(); ++f) {
    if (record.kind_of(f) != example::kind::floats) continue;
    auto const values = record.float_values(record.name(f));
    auto const odd = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (odd == values.end()) continue;
    std::string const which = values.size() == 1 ? "" : fmt::format("value {} of ", odd - values.begin());
    return fmt::format("{}'{}' is {}", which, printable(record.name(f), 64), *odd);
  }
  return {};
}

}  // namespace detail

EDL_INLINE std::uint64_t poison_for(std::span<nn::input_place const> inputs, view<std::uint64_t> ids) {
  bool const unfed = std::ranges::any_of(inputs, [&](nn::input_place const& in) {
    auto const own = ids.subspan(in.first_id, in.ids);
    return std::ranges::find(own, unfed_id) != own.end();
  });
  std::uint64_t poison = unfed_id;
  while (unfed && std::ranges::find(ids, poison) != ids.end()) ++poison;
  return poison;
}

EDL_INLINE void check_inputs(example const& record, std::span<nn::input_place const> inputs, view<float> row,
                             view<std::uint64_t> ids, std::uint64_t poison) {
  for (nn::input_place const& in : inputs) {
    auto const own = ids.subspan(in.first_id, in.ids);
    if (auto const at = std::ranges::find(own, poison); at != own.end())
      detail::refuse_unfed(in, std::size_t(at - own.begin()), std::size_t(std::ranges::count(own, poison)),
                           own.size());
    auto const values = row.subspan(in.first, in.count);
    if (detail::all_finite(values)) continue;
    if (auto const at = std::ranges::find_if(values, is_unfed); at != values.end())
      detail::refuse_unfed(in, std::size_t(at - values.begin()),
                           std::size_t(std::ranges::count_if(values, is_unfed)), values.size());
    std::string const feature = detail::culprit(record);
    auto const odd = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    std::string const place =
        fmt::format("value {} of {}", odd - values.begin(), edl::detail::shown_input(in.name));
    throw data_error(feature.empty()
                         ? fmt::format("{} is {}, which `feed` made of finite numbers", place, *odd)
                         : fmt::format("{}, and so {} would be {}", feature, place, *odd));
  }
}

EDL_INLINE void refuse_record() {
  try {
    throw;
  } catch (data_error const&) {
    throw;
  } catch (storage_error const&) {
    throw;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (error const& e) {
    throw data_error(e.what());
  } catch (std::exception const& e) {
    throw data_error(fmt::format("the model's `feed` failed: {}", e.what()));
  } catch (...) {
    throw data_error("the model's `feed` failed: it threw something other than a std::exception");
  }
}

EDL_INLINE void refuse_unfed_label(std::string_view which) {
  throw data_error(
      fmt::format("the model's `feed` does not set {}, which training and evaluation need", which));
}

EDL_INLINE void refuse_unfed_places() {
  throw data_error(
      "the model's `feed` sets no place of `into.label`; where none of a record counts, it assigns an empty "
      "list: `into.label = std::vector<int>{}`");
}

EDL_INLINE void refuse_unused_input(std::string_view name) {
  throw error(fmt::format(
      "the model's `feed` does not use input '{0}': it does not call `into.input<\"{0}\">()`", name));
}

}  // namespace edl::author
