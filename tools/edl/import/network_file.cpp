// SPDX-License-Identifier: Apache-2.0
#include "import/network_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "edl/compute/onnx/fields.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool::onnx_file {
namespace {

using edl::onnx::detail::fields;

constexpr std::size_t most_nodes = 1u << 18, most_numbers = 1u << 24;

/// A packed list of numbers, or one of its elements.
void append(fields& m, fields::field const& f, numbers& to) {
  if (f.type == 0) to.push_back(std::int64_t(f.value));
  if (f.type == 2)
    for (auto all = m.of(f); all.more();) to.push_back(std::int64_t(all.varint()));
  if (to.size() > most_numbers) m.fail("a list of numbers is too long");
}

/// A tensor of whole numbers. Those of floats are left to `edl::onnx::initializers`, but for `small` ones.
std::pair<std::string, tensor> integers(fields m, bool small = false) {
  std::pair<std::string, tensor> result;
  auto& [name, t] = result;
  std::uint64_t type = 0;
  std::vector<fields::field> raw;
  while (m.more()) {
    auto const f = m.next();
    if (f.number == 1) append(m, f, t.dims);
    if (f.number == 2) type = f.value;
    if (f.number == 4 && small && f.type == 2)
      for (auto all = m.of(f); all.more();) t.floats.push_back(std::bit_cast<float>(all.fixed32()));
    if (f.number == 5 || f.number == 7) append(m, f, t.ints);
    if (f.number == 8) name = m.text(f);
    if (f.number == 9) raw.push_back(f);
  }
  constexpr std::uint64_t int8 = 3, uint8 = 2, float32 = 1, int32 = 6, int64 = 7, boolean = 9, float64 = 11;
  t.of_ints = type == int64 || type == int32 || type == boolean || type == int8 || type == uint8;
  std::uint64_t const width = type == int64 || type == float64 ? 8 : type == int32 || type == float32 ? 4 : 1;
  if (!t.of_ints && type != float64 && !(small && type == float32)) return result;
  for (auto const& f : raw) {
    if (f.size > most_numbers * width) m.fail("a tensor of whole numbers is too long");
    auto bytes = m.of(f);
    for (std::uint64_t i = 0; i + width <= f.size; i += width) {
      std::uint64_t x = width == 1 ? std::uint64_t(bytes.byte()) : bytes.fixed32();
      if (width == 8) x |= std::uint64_t(bytes.fixed32()) << 32;
      if (type == float64)
        t.floats.push_back(float(std::bit_cast<double>(x)));
      else if (type == float32)
        t.floats.push_back(std::bit_cast<float>(std::uint32_t(x)));
      else
        t.ints.push_back(width == 4 ? std::int64_t(std::int32_t(x)) : std::int64_t(x));
    }
  }
  return result;
}

struct parser {
  edl::onnx::initializers weights;
  input_file file{weights.path()};
  edl::onnx::detail::window bytes{file};
  network result{};

  explicit parser(std::string const& path) : weights(path) {}

  void model() {
    result.producer = weights.producer();
    fields m(bytes, 0, file.size());
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 7) graph(m.of(f));
      if (f.number == 8) {
        std::string domain;
        std::int64_t version = 0;
        for (auto one = m.of(f); one.more();) {
          auto const g = one.next();
          if (g.number == 1) domain = one.text(g);
          if (g.number == 2) version = std::int64_t(g.value);
        }
        if (domain.empty() || domain == "ai.onnx") result.opset = version;
      }
    }
    for (auto const& t : weights.all()) {
      if (!t.floats()) continue;
      auto& to = result.constants[t.name];
      to = {.dims = {t.dims.begin(), t.dims.end()}, .floats = weights.read(t)};
    }
    for (auto const& [name, t] : result.constants) {
      if (t.dims.size() > 16)
        throw error(fmt::format("cannot import {}: tensor '{}' has {} axes", weights.path(),
                                printable(name, 200), t.dims.size()));
      if (std::uint64_t(t.size()) != t.floats.size() + t.ints.size())
        throw error(fmt::format("cannot import {}: tensor '{}' has {} elements, and {} numbers that are read",
                                weights.path(), printable(name, 200), t.size(),
                                t.floats.size() + t.ints.size()));
    }
    check();
  }

  void graph(fields m) {
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 1) {
        if (result.nodes.size() == most_nodes) m.fail(fmt::format("it has more than {} nodes", most_nodes));
        result.nodes.push_back(read_node(m.of(f)));
      }
      if (f.number == 5) {
        auto [name, t] = integers(m.of(f));
        if (t.of_ints || !t.floats.empty()) result.constants[name] = std::move(t);
      }
      if (f.number == 11) result.inputs.push_back(read_port(m.of(f)));
      if (f.number == 12) result.outputs.push_back(read_port(m.of(f)));
    }
  }

  node read_node(fields m) {
    node n;
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 1) n.inputs.push_back(m.text(f));
      if (f.number == 2) n.outputs.push_back(m.text(f));
      if (f.number == 3) n.name = m.text(f);
      if (f.number == 4) n.op = m.text(f);
      if (f.number == 7) n.domain = m.text(f);
      if (f.number == 5) read_attribute(m.of(f), n);
    }
    if (n.name.empty() && !n.outputs.empty()) n.name = n.outputs[0];
    // An operand that is not there has an empty name, so that who looks for it need not count.
    if (n.op != "Concat" && n.inputs.size() < 2) n.inputs.resize(2);
    return n;
  }

  void read_attribute(fields m, node& of) {
    attribute a;
    std::string name;
    while (m.more()) {
      auto const f = m.next();
      if (f.number == 1) name = m.text(f);
      if (f.number == 2 && f.type == 5) a.f = std::bit_cast<float>(m.fixed32(f));
      if (f.number == 3) a.i = std::int64_t(f.value);
      if (f.number == 4 && f.size <= fields::longest) a.s = m.text(f);
      if (f.number == 5 && f.type == 2 && !of.outputs.empty()) {
        auto t = integers(m.of(f), of.op != "Constant").second;
        a.i = 1;
        if (of.op != "Constant")
          a.ints = std::move(t.ints), a.floats = std::move(t.floats);
        else if (t.of_ints || !t.floats.empty())
          result.constants[of.outputs[0]] = std::move(t);
      }
      if (f.number == 7 && f.type == 5) a.floats.push_back(std::bit_cast<float>(m.fixed32(f)));
      if (f.number == 7 && f.type == 2)
        for (auto all = m.of(f); all.more();) a.floats.push_back(std::bit_cast<float>(all.fixed32()));
      if (f.number == 8) append(m, f, a.ints);
    }
    of.attributes[name] = std::move(a);
  }

  port read_port(fields m) {
    port p;
    auto const inside = [](fields from, std::uint32_t number, auto const& visit) {
      while (from.more())
        if (auto const f = from.next(); f.number == number) visit(from, f);
    };
    inside(m, 1, [&](fields& in, auto const& f) { p.name = in.text(f); });
    inside(m, 2, [&](fields& type, auto const& of_type) {
      inside(type.of(of_type), 1, [&](fields& t, auto const& of_tensor) {
        inside(t.of(of_tensor), 1, [&](fields&, auto const& f) { p.ids = f.value == 6 || f.value == 7; });
        inside(t.of(of_tensor), 2, [&](fields& s, auto const& of_shape) {
          inside(s.of(of_shape), 1, [&](fields& e, auto const& of_extent) {
            p.dims.push_back(-1);
            p.named.emplace_back();
            inside(e.of(of_extent), 1,
                   [&](fields&, auto const& f) { p.dims.back() = std::int64_t(f.value); });
            inside(e.of(of_extent), 2, [&](fields& n, auto const& f) { p.named.back() = n.text(f); });
          });
        });
      });
    });
    return p;
  }

  /// Constants are no inputs; names exist before they are used, so that nothing goes in circles.
  void check() {
    std::erase_if(result.inputs, [&](port const& p) { return result.constants.contains(p.name); });
    std::set<std::string> known{""};
    for (port const& p : result.inputs) known.insert(p.name);
    for (auto const& [name, t] : result.constants) known.insert(name);
    for (node const& n : result.nodes) {
      for (std::string const& i : n.inputs)
        if (!known.contains(i))
          throw error(
              fmt::format("cannot import {}: node '{}' ({}) reads '{}', which is no input, no tensor of the "
                          "file and no result of a node before it",
                          weights.path(), printable(n.name, 200), printable(n.op, 50), printable(i, 200)));
      for (std::string const& o : n.outputs)
        if (!o.empty() && !known.insert(o).second && !(n.op == "Constant" && result.constants.contains(o)))
          throw error(
              fmt::format("cannot import {}: two nodes make '{}'", weights.path(), printable(o, 200)));
    }
    for (port const& p : result.outputs)
      if (!known.contains(p.name))
        throw error(fmt::format("cannot import {}: nothing makes the output '{}'", weights.path(),
                                printable(p.name, 200)));
    if (result.outputs.empty() || result.inputs.empty())
      throw error(fmt::format("cannot import {}: it has no inputs or no outputs", weights.path()));
  }
};

}  // namespace

std::int64_t tensor::size() const {
  constexpr std::int64_t most = std::int64_t(1) << 40;
  std::int64_t all = 1;
  bool none = false;
  for (std::int64_t const d : dims) {
    if (d < 0 || (d > 0 && all > most / d)) return -1;
    none = none || d == 0;
    all *= std::max(d, std::int64_t(1));
  }
  return none ? 0 : all;
}

attribute const* node::find(std::string const& attribute) const {
  auto const found = attributes.find(attribute);
  return found == attributes.end() ? nullptr : &found->second;
}
std::int64_t node::number(std::string const& attribute, std::int64_t otherwise) const {
  auto const* const a = find(attribute);
  return a ? a->i : otherwise;
}
float node::real(std::string const& attribute, float otherwise) const {
  auto const* const a = find(attribute);
  return a ? a->f : otherwise;
}
numbers node::list(std::string const& attribute) const {
  auto const* const a = find(attribute);
  return a ? a->ints : numbers{};
}
std::string node::text(std::string const& attribute) const {
  auto const* const a = find(attribute);
  return a ? a->s : std::string();
}

network read_network(std::string const& path) {
  parser p(path);
  p.model();
  return std::move(p.result);
}

}  // namespace edl::tool::onnx_file
