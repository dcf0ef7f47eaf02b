// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/float_tensor.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/other_model.hpp"
#include "edl/base/checkpoint/part.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {
namespace detail {

inline std::vector<std::uint64_t> extents_of(variable const& v) {
  return {v.dims.sizes.begin(), v.dims.sizes.begin() + v.dims.rank};
}

/// For each extent i of the tensor, the index of the corresponding extent of the variable.
inline std::array<std::size_t, 4> axes_of(weight_order order, std::size_t rank) {
  if (order == weight_order::same || rank < 2) return {0, 1, 2, 3};
  if (rank == 4) return {3, 2, 0, 1};
  return rank == 2 ? std::array<std::size_t, 4>{1, 0} : std::array<std::size_t, 4>{2, 1, 0};
}

inline std::vector<std::uint64_t> expected_dims(variable const& v, weight_order order) {
  auto const own = extents_of(v);
  auto const axes = axes_of(order, own.size());
  std::vector<std::uint64_t> dims(own.size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = own[axes[i]];
  return dims;
}

/// Calls visit(place) for each number of a tensor, in the tensor's order: its place in the variable.
template <class Visit>
void each_place(variable const& v, weight_order order, Visit const& visit) {
  auto const own = extents_of(v), dims = expected_dims(v, order);
  auto const axes = axes_of(order, own.size());
  std::vector<std::size_t> stride(own.size(), 1);  // of the variable
  for (std::size_t i = own.size(); i-- > 1;) stride[i - 1] = stride[i] * std::size_t(own[i]);
  std::vector<std::uint64_t> at(dims.size());
  for (std::size_t n = v.dims.size(); n > 0; --n) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place += std::size_t(at[i]) * stride[axes[i]];
    visit(place);
    for (std::size_t i = at.size(); i > 0 && ++at[i - 1] == dims[i - 1]; --i) at[i - 1] = 0;
  }
}

/// The numbers of a tensor in the order of the variable.
inline std::vector<float> in_own_order(variable const& v, weight_order order, std::vector<float> theirs) {
  if (order == weight_order::same || v.dims.rank < 2) return theirs;
  std::vector<float> ours(theirs.size());
  auto next = theirs.begin();
  each_place(v, order, [&](std::size_t place) { ours[place] = *next++; });
  return ours;
}

/// The same the other way round.
inline std::vector<float> in_their_order(variable const& v, weight_order order, view<float> ours) {
  if (order == weight_order::same || v.dims.rank < 2) return {ours.begin(), ours.end()};
  std::vector<float> theirs;
  each_place(v, order, [&](std::size_t place) { theirs.push_back(ours[place]); });
  return theirs;
}

inline std::size_t first_extent(variable const& v, weight_order order) {
  auto const dims = expected_dims(v, order);
  return dims.empty() ? 1 : std::size_t(dims[0]);
}

/// The names that one with braces stands for: "{q,k}_proj" for "q_proj" and "k_proj". Those behind the first
/// ones stay, and a name without braces stands for itself.
inline std::vector<std::string> choices_of(std::string_view name) {
  auto const open = name.find('{'), close = name.find('}', std::min(open, name.size()));
  if (close == name.npos) return {std::string(name)};
  std::vector<std::string> all;
  for (std::size_t at = open + 1, end = at; at <= close; at = end + 1) {
    end = std::min(name.find(',', at), close);
    all.push_back(
        fmt::format("{}{}{}", name.substr(0, open), name.substr(at, end - at), name.substr(close + 1)));
  }
  return all;
}

/// The names, theirs and ours, that an entry with braces in `ours` stands for.
inline std::vector<std::pair<std::string, std::string>> expanded(weight_name const& w) {
  std::vector<std::pair<std::string, std::string>> all{{std::string(w.theirs), std::string(w.ours)}};
  while (choices_of(all.front().second).size() > 1) {
    std::vector<std::pair<std::string, std::string>> next;
    for (auto const& [theirs, ours] : all) {
      auto const from = choices_of(theirs), to = choices_of(ours);
      if (from.size() != to.size())
        throw error(fmt::format(
            "weight_names of the model: '{}' and '{}' have to have as many choices in each pair of braces",
            w.theirs, w.ours));
      for (std::size_t i = 0; i < to.size(); ++i) next.emplace_back(from[i], to[i]);
    }
    all = std::move(next);
  }
  return all;
}

/// The name in other programs' files that an entry without braces in `ours` gives to a variable; empty: it is
/// about others.
inline std::optional<std::string> their_name_of(weight_name const& w, std::string_view variable) {
  auto const at = w.ours.find("_#");
  if (at == w.ours.npos) return w.ours == variable ? std::optional(std::string(w.theirs)) : std::nullopt;
  std::string_view const before = w.ours.substr(0, at), behind = w.ours.substr(at + 2);
  if (variable.size() < before.size() + behind.size() || !variable.starts_with(before) ||
      !variable.ends_with(behind))
    return std::nullopt;
  std::string_view number = variable.substr(before.size(), variable.size() - before.size() - behind.size());
  if (number.empty()) {
    number = "0";
  } else {
    if (!number.starts_with('_') || number.size() == 1 || number[1] == '0') return std::nullopt;
    number.remove_prefix(1);
    if (number.find_first_not_of("0123456789") != number.npos) return std::nullopt;
  }
  auto const place = w.theirs.find('#');
  return fmt::format("{}{}{}", w.theirs.substr(0, place), number, w.theirs.substr(place + 1));
}

inline std::optional<std::string> their_name(weight_name const& w, std::string_view variable) {
  for (auto const& [theirs, ours] : expanded(w))
    if (auto name = their_name_of({theirs, ours}, variable)) return name;
  return std::nullopt;
}

/// The same by the first entry that is about the variable, and that entry's order.
inline std::optional<std::pair<std::string, weight_order>> their_name(std::span<weight_name const> names,
                                                                      std::string_view variable) {
  for (weight_name const& w : names)
    if (auto name = their_name(w, variable)) return std::pair(std::move(*name), w.order);
  return std::nullopt;
}

/// The layout that a checkpoint's file describes; its variables have at most `most` elements in all.
inline parameter_layout layout_in(safetensors_file const& file, std::uint64_t most) {
  part_facts const facts(file);
  auto const all = facts.json("layout");
  for (char const* field : {"parameters", "state", "variables"})
    if (!all.is_object() || !all.contains(field)) facts.fail("layout");
  parameter_layout layout;
  std::uint64_t const parameters = facts.number(all["parameters"], "layout"),
                      state = facts.number(all["state"], "layout");
  if (parameters > most || state > most - parameters || !all["variables"].is_array()) facts.fail("layout");
  layout.parameters = std::size_t(parameters), layout.state = std::size_t(state);
  std::uint64_t at = 0;
  for (auto const& entry : all["variables"]) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array() ||
        entry[1].size() > 4)
      facts.fail("layout");
    variable v{.name = entry[0].get<std::string>(), .dims = {}, .offset = std::size_t(at)};
    std::uint64_t size = 1;
    for (auto const& n : entry[1]) {
      std::uint64_t const d = facts.number(n, "layout");
      if (d > std::uint64_t(std::numeric_limits<int>::max()) || (d > 0 && size > most / d))
        facts.fail("layout");
      size *= d;
      v.dims.sizes[std::size_t(v.dims.rank++)] = int(d);
    }
    if (size > most - at) facts.fail("layout");
    at += size;
    layout.variables.push_back(std::move(v));
  }
  if (at != parameters + state) facts.fail("layout");
  // The layout is compared with the content of the files, tables included.
  if (auto const tables = all.find("tables"); tables != all.end()) {
    if (!tables->is_array()) facts.fail("layout");
    for (auto const& t : *tables) {
      if (!t.is_array() || t.size() != 2 || !t[0].is_string()) facts.fail("layout");
      std::uint64_t const width = facts.number(t[1], "layout");
      if (width > std::uint64_t(std::numeric_limits<int>::max())) facts.fail("layout");
      layout.tables.push_back({t[0].get<std::string>(), int(width)});
    }
  }
  return layout;
}

/// The first names, separated by ", ", and the number of the others.
inline std::string listed(std::vector<std::string> const& names) {
  constexpr std::size_t most = 20;
  std::size_t const n = std::min(names.size(), most);
  std::string const more = names.size() > n ? fmt::format(" and {} more", names.size() - n) : "";
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(n), ", "), more);
}

}  // namespace detail

EDL_INLINE std::vector<std::string> tensors_of(std::span<weight_name const> names,
                                               std::string_view variable) {
  auto const theirs = detail::their_name(names, variable);
  return theirs ? detail::choices_of(theirs->first) : std::vector<std::string>{};
}

EDL_INLINE std::string variable_match::describe() const {
  auto const part = [](std::string_view what, std::vector<std::string> const& names) {
    return names.empty() ? fmt::format("{}: none", what)
                         : fmt::format("{}: {} ({})", what, names.size(), detail::listed(names));
  };
  return fmt::format("{}; {}; {}{}", part("found", found), part("not found", missing),
                     part("of another shape", other_shape), why.empty() ? "" : "; " + why);
}

EDL_INLINE other_model::other_model(std::string path, export_places const& places) : path_(std::move(path)) {
  if (is_onnx(path_)) {
    onnx_.emplace(path_);
    exported_ = onnx_->producer() == "edl";
    if (exported_ && places) restore(places());
    return;
  }
  if (std::error_code unknown; !std::filesystem::is_directory(path_, unknown)) {
    file_.emplace(path_);
    return;
  }
  std::uint64_t bytes = 0;
  for (manifest const contents = read_manifest(path_); auto const& listed : contents.files) {
    if (is_rows(listed.name)) continue;
    auto const part = detail::open_part(path_, listed, detail::part_format);
    bytes += part.file.size();
    if (part.elements.first == 0 && layout_.variables.empty())
      layout_ = detail::layout_in(part.file, std::numeric_limits<std::uint32_t>::max());
  }
  if (layout_.size() > bytes / sizeof(float))
    throw error(
        fmt::format("cannot read {}: {} elements in files of {} bytes", path_, layout_.size(), bytes));
}

EDL_INLINE void other_model::restore(std::vector<onnx::tensor_origin> const& places) {
  for (onnx::tensor_origin const& t : places) {
    auto const* const found = onnx_->find(t.name);
    if (!found || !found->floats() || found->dims != t.dims) continue;
    if (t.elements.empty()) {
      whole_.insert(t.name);
      continue;
    }
    auto const numbers = onnx_->read(*found);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      auto const [at, factor, offset] = t.elements[i];
      if (at == onnx::tensor_origin::none) continue;
      if (at >= values_.size()) values_.resize(at + 1), restored_.resize(at + 1);
      values_[at] = (numbers[i] - offset) / factor;
      restored_[at] = true;
    }
  }
}

EDL_INLINE bool other_model::is_restored(variable const& v) const {
  auto const first = restored_.begin() + std::ptrdiff_t(std::min(v.offset, restored_.size()));
  return restored_.size() >= v.offset + v.dims.size() &&
         std::find(first, first + std::ptrdiff_t(v.dims.size()), false) ==
             first + std::ptrdiff_t(v.dims.size());
}

EDL_INLINE std::optional<other_model::place> other_model::find(std::string_view name) const {
  if (onnx_) {
    auto const* const t = onnx_->find(name);
    if (!t) return std::nullopt;
    return place{.name = t->name, .dtype = t->dtype, .dims = t->dims};
  }
  if (file_) {
    tensor const* const t = file_->find(name);
    if (!t) return std::nullopt;
    return place{.name = t->name, .dtype = t->dtype, .dims = t->dims};
  }
  auto const it = std::ranges::find(layout_.variables, name, &variable::name);
  if (it == layout_.variables.end()) return std::nullopt;
  return place{.name = it->name, .dtype = "F32", .dims = detail::extents_of(*it)};
}

EDL_INLINE std::optional<other_model::place> other_model::find(variable const& v,
                                                               std::span<weight_name const> names) const {
  if (is_restored(v)) return place{.name = v.name, .dtype = "F32", .dims = detail::extents_of(v)};
  if (auto own = find(v.name)) {
    if (exported_ && own->dims == detail::extents_of(v) && !whole_.contains(v.name))
      return std::nullopt;  // it may be transposed
    return own;
  }
  auto const other = detail::their_name(names, v.name);
  if (!other) return std::nullopt;
  std::optional<place> found;
  for (std::string const& name : detail::choices_of(other->first)) {
    auto next = find(name);
    if (!next) return std::nullopt;
    if (!found) {
      found = std::move(next);
      continue;
    }
    bool const fit = !found->dims.empty() && next->dims.size() == found->dims.size() &&
                     next->dtype == found->dtype &&
                     std::equal(found->dims.begin() + 1, found->dims.end(), next->dims.begin() + 1);
    next->order = other->second;
    if (next->dtype != found->dtype) next->dtype = fmt::format("{} and {}", found->dtype, next->dtype);
    if (!fit) return next;  // the caller reports its shape, which is not the variable's
    found->dims[0] += next->dims[0];
    found->more.push_back(std::move(next->name));
  }
  if (found) found->order = other->second;
  return found;
}

EDL_INLINE variable_match other_model::match(parameter_layout const& layout,
                                             std::span<weight_name const> names) const {
  check_weight_names(layout, names);
  variable_match m;
  for (variable const& v : layout.variables) {
    auto const there = find(v, names);
    if (!there) {
      auto const other = detail::their_name(names, v.name);
      m.missing.push_back(other ? fmt::format("{} ('{}')", v.name, other->first) : v.name);
    } else if (auto const dims = detail::expected_dims(v, there->order);
               !widens_to_float(there->dtype) || there->dims != dims) {
      m.other_shape.push_back(fmt::format(
          "{} ({} [{}] there, F32 [{}] here)",
          there->name == v.name ? v.name : fmt::format("{} ('{}')", v.name, detail::shown(there->name)),
          there->dtype, fmt::join(there->dims, ", "), fmt::join(dims, ", ")));
    } else {
      m.found.push_back(v.name);
    }
  }
  if (!m.missing.empty() && onnx_ && onnx_->notes().contains("folded_batch_norms"))
    m.why =
        "batch normalisation is folded into other weights there: export it without --export_fold_batch_norm";
  return m;
}

EDL_INLINE void check_weight_names(parameter_layout const& layout, std::span<weight_name const> names) {
  std::vector<std::string> known;
  for (variable const& v : layout.variables) known.push_back(v.name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string const ours(names[i].ours);
    auto const numbers = [](std::string_view text) { return std::ranges::count(text, '#'); };
    if (numbers(ours) != numbers(names[i].theirs) || numbers(ours) > 1 ||
        (numbers(ours) == 1 && ours.find("_#") == ours.npos))
      throw error(
          fmt::format("weight_names of the model: '{}' and '{}' have to have one '#' each, as a number "
                      "of repeated layers and as '_#', or none",
                      ours, names[i].theirs));
    for (auto const& [theirs, one] : detail::expanded(names[i])) {
      auto const is = [&](std::string const& v) {
        return detail::their_name_of({theirs, one}, v).has_value();
      };
      if (std::ranges::any_of(known, is)) continue;
      std::string const near = cli::nearest(one, known);
      throw error(fmt::format(
          "weight_names of the model: it has no variable '{}'; {}", one,
          near.empty() ? "it has " + detail::listed(known) : fmt::format("did you mean '{}'?", near)));
    }
    for (weight_name const& earlier : names.first(i))
      if (earlier.ours == names[i].ours)
        throw error(fmt::format("weight_names of the model: variable '{}' occurs twice, as '{}' and '{}'",
                                ours, earlier.theirs, names[i].theirs));
  }
}

EDL_INLINE void other_model::read(parameter_layout const& layout, std::span<weight_name const> names,
                                  std::size_t first, std::span<float> into) const {
  std::vector<float> all(layout_.size());  // of a checkpoint
  if (!file_ && !onnx_) read_range(path_, layout_, 0, all);
  for (variable const& v : layout.variables) {
    std::size_t const begin = std::max(first, v.offset),
                      end = std::min(first + into.size(), v.offset + v.dims.size());
    if (begin >= end) continue;
    auto const found = find(v, names);
    if (!found || !widens_to_float(found->dtype) || found->dims != detail::expected_dims(v, found->order))
      continue;
    std::vector<float> values;
    auto const add = [&](std::string const& name) {
      auto const next = onnx_ ? onnx_->read(*onnx_->find(name)) : read_floats(*file_, *file_->find(name));
      values.insert(values.end(), next.begin(), next.end());
    };
    if (is_restored(v)) {
      auto const from = values_.begin() + std::ptrdiff_t(v.offset);
      values.assign(from, from + std::ptrdiff_t(v.dims.size()));
    } else if (onnx_ || file_) {
      add(found->name);
      for (std::string const& name : found->more) add(name);
    } else {
      auto const from = std::ranges::find(layout_.variables, found->name, &variable::name)->offset;
      values.assign(all.begin() + std::ptrdiff_t(from), all.begin() + std::ptrdiff_t(from + v.dims.size()));
    }
    values = detail::in_own_order(v, found->order, std::move(values));
    std::copy_n(values.begin() + std::ptrdiff_t(begin - v.offset), end - begin,
                into.begin() + std::ptrdiff_t(begin - first));
  }
}

EDL_INLINE std::vector<tensor_source> other_model::as_theirs(variable const& v,
                                                             std::span<weight_name const> names,
                                                             view<float> values) const {
  auto const there = find(v, names);
  if (!there) throw error(fmt::format("{} has no tensor for the variable '{}'", path_, v.name));
  std::vector<std::string> all{there->name};
  all.insert(all.end(), there->more.begin(), there->more.end());
  std::vector<tensor_source> made;
  std::uint64_t from = 0;  // of the first extent
  for (std::string const& name : all) {
    auto dims = there->dims;
    if (all.size() > 1) dims = find(name)->dims;
    std::uint64_t const rows = dims.empty() ? 1 : dims[0];
    made.push_back({.name = name,
                    .dims = std::move(dims),
                    .data = {},
                    .stream = [v, values, order = there->order, from, rows](tensor_source::sink const& to) {
                      auto const theirs = detail::in_their_order(v, order, values);
                      std::size_t const row = theirs.size() / detail::first_extent(v, order);
                      to(std::as_bytes(std::span(theirs).subspan(from * row, rows * row)));
                    }});
    from += rows;
  }
  return made;
}

EDL_INLINE bool other_model::has_rows(table_shape const& table) const {
  if (!file_) return false;
  tensor const* const rows = file_->find(fmt::format("tables/{}/embeddings", table.name));
  return rows && rows->dims.size() == 2 && rows->dims[1] == std::uint64_t(table.width);
}

}  // namespace edl::checkpoint
