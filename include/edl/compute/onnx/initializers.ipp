// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "edl/compute/onnx/fields.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/error.hpp"
#include "edl/core/float16.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::onnx {
struct initializers_parser {
  initializers& result;
  detail::window bytes{result.file_};

  [[noreturn]] void fail(initializer const& t, std::string const& why) const {
    throw error(fmt::format("cannot read {}: tensor '{}' {}", result.path(), printable(t.name, 200), why));
  }

  void model() {
    detail::fields m(bytes, 0, result.file_.size());
    bool graph = false;
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 2)
        result.producer_ = m.text(f);
      else if (f.number == 14)
        note(m.of(f));
      else if (f.number == 7)
        graph = true, tensors(m.of(f));
    }
    if (!graph) m.fail("it has no graph");
    std::ranges::sort(result.all_, {}, &initializer::name);
    auto const twice = std::ranges::adjacent_find(result.all_, {}, &initializer::name);
    if (twice != result.all_.end()) fail(*twice, "occurs twice");
  }

  void note(detail::fields m) {
    auto const [key, value] = pair(m);
    if (result.notes_.size() < 1024) result.notes_[key] = value;
  }

  static std::pair<std::string, std::string> pair(detail::fields m) {
    std::pair<std::string, std::string> both;
    while (m.more()) {
      auto const f = m.next();
      if (f.size > detail::fields::longest) continue;  // no field that we read is that long
      if (f.number == 1) both.first = m.text(f);
      if (f.number == 2) both.second = m.text(f);
    }
    return both;
  }

  void tensors(detail::fields graph) {
    constexpr std::size_t most = 1u << 20;
    while (graph.more()) {
      auto const f = graph.next();
      if (f.number != 1 && f.number != 5) continue;
      if (result.all_.size() == most) graph.fail(fmt::format("it has more than {} tensors", most));
      if (f.number == 5)
        tensor(graph.of(f));
      else
        node(graph.of(f));
    }
  }

  /// Reads the tensor of a `Constant` node, under the name of the node's output.
  void node(detail::fields m) {
    std::string output, op;
    std::vector<detail::fields::field> attributes;
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 2 && output.empty()) output = m.text(f);
      if (f.number == 4) op = m.text(f);
      if (f.number == 5) attributes.push_back(f);
    }
    if (op != "Constant") return;
    for (auto const& a : attributes)
      for (auto one = m.of(a); one.more();)
        if (auto const f = one.next(); f.number == 5) tensor(one.of(f), output);
  }

  void tensor(detail::fields m, std::string const& name = {}) {
    initializer t;
    std::uint64_t type = 0, location = 0;
    std::map<std::string, std::string> external;
    std::optional<detail::fields::field> raw, floats, narrow;
    auto const only = [&](auto& kept, auto const& f) {
      if (kept || f.type != 2) m.fail("a tensor's numbers are not in one piece");
      kept = f;
    };
    // Protocol Buffers may store repeated numbers in one packed field, in several, or one by one.
    auto const more = [&](auto& kept, auto const& f) {
      if (f.type == 2 && !kept && t.loose.empty()) {
        kept = f;
        return;
      }
      bool const real = f.number == 4;
      auto const spread = [&](auto const& piece) {
        for (auto all = m.of(piece); all.more();)
          t.loose.push_back(real ? all.fixed32()
                                 : std::uint32_t(std::min<std::uint64_t>(all.varint(), 1u << 31)));
      };
      if (kept) spread(*kept);
      kept.reset();
      if (f.type == 2)
        spread(f);
      else if (f.type != (real ? 5u : 0u))
        m.fail("a tensor's numbers have another type");
      else
        t.loose.push_back(real ? m.fixed32(f) : std::uint32_t(std::min<std::uint64_t>(f.value, 1u << 31)));
    };
    auto const extent = [&](std::uint64_t n) {
      if (t.dims.size() == 8) m.fail("a tensor has more than 8 extents");
      t.dims.push_back(n);
    };
    while (m.more()) {
      auto const f = m.next();
      switch (f.number) {
        case 1:
          if (f.type == 0)
            extent(f.value);
          else
            for (auto all = m.of(f); all.more();) extent(all.varint());
          break;
        case 2:
          type = f.value;
          break;
        case 4:
          more(floats, f);
          break;
        case 5:
          more(narrow, f);
          break;
        case 8:
          t.name = m.text(f);
          break;
        case 9:
          only(raw, f);
          break;
        case 13:
          if (external.size() < 16) external.insert(pair(m.of(f)));
          break;
        case 14:
          location = f.value;
          break;
        default:
          break;
      }
    }
    t.dtype = type == 1    ? "F32"
              : type == 7  ? "I64"
              : type == 10 ? "F16"
              : type == 16 ? "BF16"
                           : fmt::format("type {}", type);
    if (!name.empty()) t.name = name;
    if (t.name.empty()) return;
    if (t.floats()) place(t, location == 1, external, raw, floats, narrow);
    result.all_.push_back(std::move(t));
  }

  /// Determines where the numbers are, and checks their count against the extents.
  void place(initializer& t, bool outside, std::map<std::string, std::string> const& external,
             std::optional<detail::fields::field> const& raw,
             std::optional<detail::fields::field> const& floats,
             std::optional<detail::fields::field> const& narrow) {
    constexpr std::uint64_t most = std::uint64_t(1) << 40;
    std::uint64_t count = 1;
    for (std::uint64_t const d : t.dims) {
      if (d != 0 && count > most / d) fail(t, "has more elements than a file can have");
      count *= d;
    }
    std::uint64_t const wanted = count * (t.dtype == "F32" ? 4 : 2);
    if (!outside && !raw && !t.loose.empty()) {
      if (t.loose.size() != count)
        fail(t, fmt::format("has {} elements, and {} numbers", count, t.loose.size()));
      if (t.dtype != "F32" && std::ranges::any_of(t.loose, [](std::uint32_t x) { return x > 0xffff; }))
        fail(t, "has a number of more than 16 bits");
      return;
    }
    t.loose.clear();
    if (outside) {
      beside(t, external, wanted);
    } else if (auto const& in = raw ? raw : t.dtype == "F32" ? floats : narrow) {
      t.offset = in->at, t.size = in->size;
      t.varints = !raw && t.dtype != "F32";
    }
    if (t.varints) {
      std::uint64_t n = 0;
      for (detail::fields all(bytes, t.offset, t.offset + t.size); all.more(); ++n)
        if (all.varint() > 0xffff) fail(t, "has a number of more than 16 bits");
      if (n != count) fail(t, fmt::format("has {} elements, and {} numbers", count, n));
    } else if (t.size != wanted) {
      fail(t, fmt::format("has {} elements of {}, and {} bytes", count, t.dtype, t.size));
    }
  }

  void beside(initializer& t, std::map<std::string, std::string> const& external, std::uint64_t wanted) {
    auto const entry = [&](char const* key) {
      auto const found = external.find(key);
      return found == external.end() ? std::string() : found->second;
    };
    auto const number = [&](char const* key, std::uint64_t otherwise) {
      std::string const text = entry(key);
      if (text.empty()) return otherwise;
      auto const n = number_from<std::uint64_t>(text);
      if (!n) fail(t, fmt::format("has '{}' as its {}", printable(text, 50), key));
      return *n;
    };
    std::string const given = entry("location"),
                      name = std::filesystem::path(given).lexically_normal().native();
    bool const odd =
        std::ranges::any_of(given, [](char c) { return (c >= 0 && c < ' ') || c == 127 || c == '\\'; });
    if (odd || name.empty() || name == "." || name.starts_with('/') || name.starts_with("..") ||
        name.ends_with('/'))
      fail(t, fmt::format("is in the file '{}'; only one beside or below the model is read",
                          printable(given, 200)));
    constexpr std::size_t most_files = 256;
    if (result.beside_.size() == most_files && !result.beside_.contains(name))
      fail(t, fmt::format("is in one more file than {}", most_files));
    auto const parent = std::filesystem::path(result.path()).parent_path();
    // A link may lead elsewhere only as the model's own does: in a cache all of them may be links.
    std::error_code none;
    auto const to = std::filesystem::canonical(parent / name, none);
    auto const inside = [&](std::filesystem::path const& folder) {
      return !folder.empty() && std::ranges::mismatch(folder, to).in1 == folder.end();
    };
    if (!to.empty() && !inside(std::filesystem::canonical(parent.empty() ? "." : parent, none)) &&
        !inside(std::filesystem::canonical(result.path(), none).parent_path()))
      fail(t, fmt::format("is in the file '{}', a link to {}; only a file beside or below the model is read",
                          printable(given, 200), printable(to.native(), 200)));
    auto const file = result.beside_.try_emplace(name, (parent / name).native()).first;
    t.file = name;
    t.offset = number("offset", 0);
    if (t.offset > file->second.size())
      fail(t, fmt::format("begins behind the end of {}", printable(file->second.path())));
    t.size = number("length", 0);
    if (t.size == 0) t.size = wanted;  // some producers write 0 for the rest of the file
    if (t.size > file->second.size() - t.offset)
      fail(t, fmt::format("ends behind the end of {}", printable(file->second.path())));
  }
};

EDL_INLINE initializers::initializers(std::string path) : file_(std::move(path)) {
  initializers_parser{*this}.model();
}

EDL_INLINE initializer const* initializers::find(std::string_view name) const {
  auto const at =
      std::ranges::lower_bound(all_, name, {}, [](initializer const& t) { return std::string_view(t.name); });
  return at != all_.end() && at->name == name ? &*at : nullptr;
}

EDL_INLINE std::vector<float> initializers::read(initializer const& t) const {
  if (!t.floats())
    throw error(fmt::format("tensor '{}' of {} is {}; numbers are read of F32, F16 and BF16",
                            printable(t.name, 200), path(), t.dtype));
  auto const widen = [&](std::uint64_t x) {
    return t.dtype == "F16" ? from_float16(std::uint16_t(x)) : from_bfloat16(std::uint16_t(x));
  };
  input_file const& from = t.file.empty() ? file_ : beside_.at(t.file);
  std::vector<float> values;
  if (!t.loose.empty()) {
    for (std::uint32_t const x : t.loose)
      values.push_back(t.dtype == "F32" ? std::bit_cast<float>(x) : widen(x));
  } else if (t.varints) {
    detail::window bytes(from);
    for (detail::fields all(bytes, t.offset, t.offset + t.size); all.more();)
      values.push_back(widen(all.varint()));
  } else if (t.dtype == "F32") {
    values.resize(std::size_t(t.size / sizeof(float)));
    from.read(t.offset, std::as_writable_bytes(std::span(values)));
  } else {
    values.resize(std::size_t(t.size / 2));
    std::array<std::uint16_t, 4096> piece;
    for (std::size_t at = 0; at < values.size(); at += piece.size()) {
      auto const some = std::span(piece).first(std::min(piece.size(), values.size() - at));
      from.read(t.offset + at * 2, std::as_writable_bytes(some));
      std::ranges::transform(some, values.begin() + std::ptrdiff_t(at), widen);
    }
  }
  return values;
}

}  // namespace edl::onnx
