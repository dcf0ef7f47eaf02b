// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "edl/cluster/kubernetes/object_reader.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::kubernetes {
namespace detail {
inline nlohmann::json const no_object = nlohmann::json::object();

/// A value as shown in an error.
inline std::string shown(nlohmann::json const& v) {
  if (v.is_structured()) return v.is_array() ? "a list" : "an object";
  return printable(v.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80);
}
}  // namespace detail

EDL_INLINE object_reader::object_reader(nlohmann::json const& object, std::string whose, std::string path)
    : object_(&object), whose_(std::move(whose)), path_(std::move(path)) {
  if (!object.is_object())
    throw error(fmt::format("{}: {} is {}: expected an object", whose_, path_.empty() ? "it" : path_,
                            detail::shown(object)));
}

EDL_INLINE void object_reader::fail(std::string const& name, std::string const& what) const {
  throw error(fmt::format("{}: {}{}{} {}", whose_, path_, path_.empty() ? "" : ".", name, what));
}

EDL_INLINE nlohmann::json const* object_reader::find(char const* name) const {
  auto const it = object_->find(name);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

EDL_INLINE object_reader object_reader::object(char const* name) const {
  auto const* const v = find(name);
  return {v ? *v : detail::no_object, whose_, path_ + (path_.empty() ? "" : ".") + name};
}

EDL_INLINE std::vector<object_reader> object_reader::objects(char const* name, std::size_t most) const {
  std::vector<object_reader> all;
  auto const* const list = find(name);
  if (!list) return all;
  if (!list->is_array() || list->size() > most)
    fail(name,
         fmt::format("is {}: expected a list of at most {} objects",
                     list->is_array() ? fmt::format("a list of {}", list->size()) : detail::shown(*list),
                     most));
  for (auto const& v : *list)
    all.emplace_back(v, whose_, fmt::format("{}{}{}[{}]", path_, path_.empty() ? "" : ".", name, all.size()));
  return all;
}

EDL_INLINE void object_reader::take(char const* name, bool& into) const {
  auto const* const v = find(name);
  if (v && !v->is_boolean()) fail(name, fmt::format("is {}: expected true or false", detail::shown(*v)));
  if (v) into = v->get<bool>();
}

EDL_INLINE std::string object_reader::text(nlohmann::json const& v, std::string const& name,
                                           std::size_t most) const {
  if (!v.is_string()) fail(name, fmt::format("is {}: expected a string", detail::shown(v)));
  auto const& out = v.get_ref<std::string const&>();
  if (out.size() > most)
    fail(name, fmt::format("has {} bytes: expected a string of at most {}", out.size(), most));
  if (out.find('\0') != out.npos) fail(name, "holds a zero byte: leave it out");
  return out;
}

EDL_INLINE void object_reader::take(char const* name, std::string& into, std::size_t most) const {
  if (auto const* const v = find(name)) into = text(*v, name, most);
}

EDL_INLINE void object_reader::take(char const* name, std::vector<std::string>& into, std::size_t most,
                                    std::size_t longest) const {
  auto const* const list = find(name);
  if (!list) return;
  if (!list->is_array() || list->size() > most)
    fail(name,
         fmt::format("is {}: expected a list of at most {} strings",
                     list->is_array() ? fmt::format("a list of {}", list->size()) : detail::shown(*list),
                     most));
  into.clear();
  for (auto const& v : *list) into.push_back(text(v, fmt::format("{}[{}]", name, into.size()), longest));
}

EDL_INLINE void object_reader::take(char const* name, std::map<std::string, std::string>& into) const {
  auto const* const v = find(name);
  if (!v) return;
  object_reader const each = object(name);
  for (auto const& [key, value] : v->items()) {
    if (!value.is_string()) each.fail(printable(key, 80), "is not a string: put it in quotes");
    into[key] = value.get<std::string>();
  }
}

EDL_INLINE std::int64_t object_reader::number(char const* name, std::int64_t least, std::int64_t most) const {
  auto const* const v = find(name);
  if (!v) fail(name, fmt::format("is missing: expected a whole number from {} to {}", least, most));
  bool const fits =
      v->is_number_unsigned()
          ? most >= 0 && v->get<std::uint64_t>() <= std::uint64_t(most) &&
                (least < 0 || v->get<std::uint64_t>() >= std::uint64_t(least))
          : v->is_number_integer() && v->get<std::int64_t>() >= least && v->get<std::int64_t>() <= most;
  if (!fits)
    fail(name, fmt::format("is {}: expected a whole number from {} to {}", detail::shown(*v), least, most));
  return v->get<std::int64_t>();
}

EDL_INLINE double object_reader::fraction(char const* name) const {
  auto const* const v = find(name);
  if (!v) return 0;
  if (!v->is_number() || !std::isfinite(v->get<double>()) || v->get<double>() < 0)
    fail(name, fmt::format("is {}: expected a number that is not negative", detail::shown(*v)));
  return v->get<double>();
}

}  // namespace edl::kubernetes
