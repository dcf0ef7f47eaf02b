// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>

#include "edl/compute/onnx/graph.hpp"
#include "edl/compute/onnx/message.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/version.hpp"

namespace edl::onnx {
namespace detail {

// TensorProto.DataType, AttributeProto.AttributeType
enum data_type : std::uint8_t { of_float = 1, of_int64 = 7 };
enum attribute_type : std::uint8_t { float_one = 1, int_one = 2, text_one = 3, float_list = 6, int_list = 7 };

inline std::string attribute_proto(attribute const& a) {
  message m;
  m.text(1, a.name);
  if (auto const* const i = std::get_if<std::int64_t>(&a.value))
    m.number(3, std::uint64_t(*i)).number(20, int_one);
  else if (auto const* const f = std::get_if<float>(&a.value))
    m.real(2, *f).number(20, float_one);
  else if (auto const* const s = std::get_if<std::string_view>(&a.value))
    m.text(4, *s).number(20, text_one);
  else if (auto const* const all = std::get_if<std::vector<std::int64_t>>(&a.value))
    m.packed(8, *all).number(20, int_list);
  else
    m.packed(7, std::get<std::vector<float>>(a.value)).number(20, float_list);
  return m.bytes();
}

/// A batch's extents after the number of samples, which is unknown.
inline std::vector<std::int64_t> dims_of(shape s, form as) {
  switch (as) {
    case form::rows:
      return {std::int64_t(s.size())};
    case form::places:
      return {s.height * s.width, s.channels};
    case form::pictures:
      return {s.height, s.width, s.channels};
    default:
      return {s.channels, s.height, s.width};
  }
}

inline std::string value_info(std::string_view name, value const& of) {
  message extents;
  extents.text(1, message().text(2, "n").bytes());
  for (std::int64_t const d : dims_of(of.extents, of.as))
    extents.text(1, message().number(1, std::uint64_t(d)).bytes());
  message tensor;
  tensor.number(1, of.ids ? of_int64 : of_float).text(2, extents.bytes());
  return message().text(1, name).text(2, message().text(1, tensor.bytes()).bytes()).bytes();
}

}  // namespace detail

EDL_INLINE graph::graph(parameter_layout const& layout, view<float> variables,
                        std::span<table_rows const> tables)
    : layout_(layout), variables_(variables), tables_(tables) {}

EDL_INLINE std::string graph::unique(std::string name) {
  std::string own = name;
  for (int i = 1; !taken_.insert(own).second; ++i) own = fmt::format("{}_{}", name, i);
  return own;
}

EDL_INLINE std::vector<std::string> graph::add(std::string_view op, std::size_t outputs,
                                               std::vector<std::string> const& inputs,
                                               std::vector<attribute> const& attributes,
                                               std::string_view domain) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < outputs; ++i) all.push_back(unique(path_ + std::string(op)));
  message rest;
  for (attribute const& a : attributes) rest.text(5, detail::attribute_proto(a));
  if (!domain.empty()) rest.text(7, domain), ml_ = true;
  nodes_.push_back({.op = std::string(op), .inputs = inputs, .outputs = all, .rest = rest.bytes()});
  for (attribute const& a : attributes)
    if (op == "Gemm" && a.name == "transB") nodes_.back().turned = std::get<std::int64_t>(a.value) != 0;
  if (op == "Transpose") nodes_.back().order = std::get<std::vector<std::int64_t>>(attributes.at(0).value);
  return all;
}

EDL_INLINE std::string graph::add(std::string_view op, std::vector<std::string> const& inputs,
                                  std::vector<attribute> const& attributes, std::string_view domain) {
  return add(op, 1, inputs, attributes, domain)[0];
}

EDL_INLINE value graph::as(value const& x, form wanted) {
  if (x.as == wanted) return x;
  auto const known = forms_.find({x.name, wanted});
  value y{.name = known == forms_.end() ? std::string() : known->second,
          .extents = x.extents,
          .as = wanted,
          .ids = x.ids,
          .weights = x.weights};
  if (!y.name.empty()) return y;
  bool const from = x.as == form::channels_first, to = wanted == form::channels_first;
  if ((from || to) && !x.extents.flat()) {
    if (from) {
      value const rows{add("Transpose", {x.name}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}}),
                       x.extents, form::pictures};
      y.name = as(rows, wanted).name;
    } else {
      y.name =
          add("Transpose", {as(x, form::pictures).name}, {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}});
    }
  } else {
    std::vector<std::int64_t> dims{0};  // 0 keeps the number of samples
    for (std::int64_t const d : detail::dims_of(x.extents, wanted)) dims.push_back(d);
    y.name = add("Reshape", {x.name, numbers(dims)});
  }
  forms_[{x.name, wanted}] = y.name;
  return y;
}

/// The same numbers with other extents.
EDL_INLINE value graph::as_sample(value const& x, shape of, form as) {
  auto dims = detail::dims_of(of, as);
  if (detail::dims_of(x.extents, x.as) == dims) return {.name = x.name, .extents = of, .as = as};
  dims.insert(dims.begin(), 0);
  return {.name = add("Reshape", {x.name, numbers(dims)}), .extents = of, .as = as};
}

EDL_INLINE std::string graph::store(stored s) {
  std::uint64_t n = 1;
  for (std::int64_t const d : s.dims) n *= std::uint64_t(d);
  s.bytes = n * (s.ids ? sizeof(std::int64_t) : sizeof(float));
  bool const exists = std::ranges::any_of(
      stored_, [&](stored const& o) { return o.name == s.name && o.dims == s.dims && o.ids == s.ids; });
  if (exists) return s.name;
  std::string name = s.name = unique(s.name);  // a shared layer may have others for other extents
  stored_.push_back(std::move(s));
  return name;
}

EDL_INLINE edl::variable const& graph::find(std::string_view name) const {
  std::string const full = path_ + std::string(name);
  auto const found = std::ranges::find(layout_.variables, full, &edl::variable::name);
  if (found == layout_.variables.end())
    throw error(fmt::format("the model has no variable '{}', which its layer's `to_onnx` requests", full));
  return *found;
}

EDL_INLINE std::vector<float> graph::elements(std::string_view name) const {
  edl::variable const& v = find(name);
  read_.insert(v.name);
  if (variables_.empty()) return std::vector<float>(v.dims.size());
  auto const all = variables_.subspan(v.offset, v.dims.size());
  return {all.begin(), all.end()};
}

EDL_INLINE std::string graph::variable(std::string_view name, std::vector<int> const& order) {
  edl::variable const& v = find(name);
  auto const rank = std::size_t(v.dims.rank);
  std::vector<std::int64_t> dims(v.dims.sizes.begin(), v.dims.sizes.begin() + v.dims.rank);
  if (order.empty()) {
    if (!taken_.contains(v.name)) whole_.insert(v.name);
    return store({.name = v.name,
                  .dims = dims,
                  .each = [part = std::pair(v.offset, v.dims.size()), all = variables_](auto const& to) {
                    to(std::as_bytes(all.subspan(part.first, part.second)));
                  }});
  }
  std::vector<std::size_t> stride(rank, 1), steps(rank);
  std::vector<std::int64_t> turned(rank);
  for (std::size_t i = rank - 1; i-- > 0;) stride[i] = stride[i + 1] * std::size_t(dims[i + 1]);
  for (std::size_t i = 0; i < rank; ++i) {
    turned[i] = dims[std::size_t(order[i])];
    steps[i] = stride[std::size_t(order[i])];
  }
  std::vector<float> const from = elements(name);
  std::vector<float> to;
  to.reserve(from.size());
  auto const copy = [&](auto const& self, std::size_t axis, std::size_t at) -> void {
    if (axis == rank) return to.push_back(from[at]);
    for (std::int64_t i = 0; i < turned[axis]; ++i) self(self, axis + 1, at + std::size_t(i) * steps[axis]);
  };
  copy(copy, 0, 0);
  return tensor(name, turned, std::move(to));
}

EDL_INLINE std::string graph::tensor(std::string_view name, std::vector<std::int64_t> dims,
                                     std::vector<float> elements) {
  auto const all = std::make_shared<std::vector<float> const>(std::move(elements));
  return store({.name = path_ + std::string(name), .dims = std::move(dims), .each = [all](auto const& to) {
                  to(std::as_bytes(std::span(*all)));
                }});
}

EDL_INLINE std::string graph::numbers(std::vector<std::int64_t> const& of) {
  return store({.name = fmt::format("numbers/{}", fmt::join(of, "_")),
                .dims = {std::int64_t(of.size())},
                .ids = true,
                .each = [of](auto const& to) { to(std::as_bytes(std::span(of))); }});
}

EDL_INLINE std::string graph::number(float of) {
  return store({.name = fmt::format("number/{}", of), .dims = {}, .each = [of](auto const& to) {
                  to(std::as_bytes(std::span(&of, 1)));
                }});
}

EDL_INLINE void graph::enter(std::string_view name) { path_ += std::string(name) + '/'; }

EDL_INLINE void graph::leave() {
  path_.pop_back();
  path_.resize(path_.find_last_of('/') + 1);  // npos + 1 is 0
}

EDL_INLINE void graph::scales_channels(std::string const& output, std::vector<double> factor,
                                       std::vector<double> shift) {
  scales_[output] = {std::move(factor), std::move(shift)};
}

EDL_INLINE value graph::input(std::string_view name, shape of, form as, bool ids) {
  if (auto const p = preprocessed_.find(name); p != preprocessed_.end() && !ids)
    return prepared(p->first, p->second, of, as);
  return declare({.name = std::string(name), .extents = of, .as = as, .ids = ids});
}

EDL_INLINE value graph::declare(value v) {
  if (!taken_.insert(v.name).second)
    throw error(
        fmt::format("two inputs of the ONNX file would be called '{}': give one of them another name in the "
                    "model{}",
                    v.name, preprocessed_.empty() ? "" : ", or leave --export_preprocess out"));
  ends_ += message().text(11, detail::value_info(v.name, v)).bytes();
  return v;
}

EDL_INLINE void graph::output(std::string_view name, value const& of) {
  // Names are unique within a file, and an autoencoder's heads have the names of its inputs.
  std::string const own =
      unique(taken_.contains(std::string(name)) ? fmt::format("{}_output", name) : std::string(name));
  // An extra node, so that the output has its name whatever produces it.
  nodes_.push_back({.op = "Identity", .inputs = {of.name}, .outputs = {own}, .rest = {}});
  ends_ += message().text(12, detail::value_info(own, of)).bytes();
}

EDL_INLINE std::string graph::rows_for(std::string_view name, std::string_view table, int ids, int width) {
  if (!rows_are_inputs_) return rows_of(table, input(name, {1, 1, ids}, form::rows, true).name);
  return input(std::string(name) + "_rows", {ids, 1, width}, form::places).name;
}

EDL_INLINE std::string graph::rows_of(std::string_view table, std::string const& ids) {
  auto const from = std::ranges::find(tables_, table, &table_rows::name);
  if (from == tables_.end()) throw error(fmt::format("table '{}' has no rows to write", table));
  std::size_t const n = from->ids.size();
  std::string const rows = store({.name = fmt::format("tables/{}/embeddings", table),
                                  .dims = {std::int64_t(n) + 1, from->width},
                                  .each = [of = &*from](auto const& to) {
                                    if (of->each)
                                      of->each([&](view<float> some) { to(std::as_bytes(some)); });
                                    std::vector<float> const last(std::size_t(of->width), of->absent);
                                    to(std::as_bytes(std::span(last)));
                                  }});
  if (n == 0)  // every id maps to the last row
    return add("Gather", {rows, add("Mul", {ids, numbers({0})})});
  std::vector<std::int64_t> places(n);
  std::iota(places.begin(), places.end(), std::int64_t(0));
  std::string const at = add(
      "LabelEncoder", {ids},
      {{"keys_int64s", from->ids}, {"values_int64s", std::move(places)}, {"default_int64", std::int64_t(n)}},
      "ai.onnx.ml");
  return add("Gather", {rows, at});
}

EDL_INLINE value const* graph::placed(int first) const {
  auto const found = inputs_.find(first);
  return found == inputs_.end() ? nullptr : &found->second;
}

EDL_INLINE value graph::whole_row() {
  if (row_) return *row_;
  std::vector<std::string> parts;
  int size = 0;
  for (auto const& [first, v] : inputs_) {
    value const flat = as(v, form::rows);
    parts.push_back(v.ids ? add("Cast", {flat.name}, {{"to", std::int64_t(detail::of_float)}}) : flat.name);
    if (!v.weights.empty()) parts.push_back(v.weights);
    size += int(v.extents.size());
  }
  row_ = value{add("Concat", parts, {{"axis", std::int64_t(1)}}), {1, 1, size}};
  return *row_;
}

EDL_INLINE void graph::each_tensor(
    std::function<void(std::string const& name, std::vector<std::int64_t> const& dims, view<float>)> const&
        to,
    bool computed_only) const {
  for (stored const& s : stored_) {
    if (s.ids || s.name.starts_with("tables/") || (computed_only && whole_.contains(s.name))) continue;
    std::vector<float> elements;
    s.each([&](bytes some) {
      std::size_t const before = elements.size();
      elements.resize(before + some.size() / sizeof(float));
      std::memcpy(elements.data() + before, some.data(), some.size());
    });
    to(s.name, s.dims, elements);
  }
}

EDL_INLINE void graph::refuse(std::string_view layer) const {
  throw error(fmt::format(
      "layer '{}' cannot be exported: its type '{}' has no function `to_onnx`; write one beside it "
      "(docs/models.md, own layers)",
      path_.empty() ? std::string(layer) : path_.substr(0, path_.size() - 1), layer));
}

EDL_INLINE std::string graph::nodes() const {
  std::string all;
  for (node const& n : nodes_) {
    message m;
    for (std::string const& i : n.inputs) m.text(1, i);
    for (std::string const& o : n.outputs) m.text(2, o);
    m.text(3, n.outputs[0]).text(4, n.op);
    all += message().begin(1, m.bytes().size() + n.rest.size()).bytes() + m.bytes() + n.rest;
  }
  return all;
}

EDL_INLINE std::string graph::of_model(std::string const& names_and_nodes, std::uint64_t tensors) const {
  message head;
  head.number(1, 8).text(2, "edl").text(3, package_version);
  head.text(8, message().text(1, "").number(2, 17).bytes());
  if (ml_) head.text(8, message().text(1, "ai.onnx.ml").number(2, 3).bytes());
  for (auto const& [key, text] : notes_) head.text(14, message().text(1, key).text(2, text).bytes());
  head.begin(7, names_and_nodes.size() + tensors);
  return head.bytes() + names_and_nodes;
}

namespace detail {

/// The file with the large tensors of the model at this path; empty: it has none, or there is no model. A
/// model with such a file is small itself, so larger models are not searched.
inline std::filesystem::path data_of(std::string const& model) {
  namespace fs = std::filesystem;
  constexpr std::uintmax_t most = std::uintmax_t(64) << 20;
  constexpr std::string_view digits = "0123456789abcdef", end = ".data";
  std::error_code code;
  if (!fs::is_regular_file(model, code) || fs::file_size(model, code) > most) return {};
  std::ifstream in(model, std::ios::binary);
  std::string const all{std::istreambuf_iterator<char>(in), {}};
  std::string const begin = fs::path(model).filename().native() + '.';
  for (auto at = all.find(begin); at != all.npos; at = all.find(begin, at + 1))
    if (std::string const name = all.substr(at, begin.size() + 8 + end.size());
        name.ends_with(end) && name.find_first_not_of(digits, begin.size()) == begin.size() + 8)
      return fs::path(model).parent_path() / name;
  return {};
}

}  // namespace detail

EDL_INLINE std::uint64_t graph::write(std::string const& path, std::uint64_t most,
                                      std::uint64_t longest) const {
  constexpr std::uint64_t small = 1024, aligned = 4096;  // readers can map tensors that begin on a page
  std::filesystem::path const parent = std::filesystem::path(path).parent_path(),
                              earlier = detail::data_of(path);
  for (char const* const end : {"", ".data"})
    remove_dead_temporaries(parent.empty() ? "." : parent.native(),
                            std::filesystem::path(path).filename().native() + end);
  std::string const nodes = this->nodes();
  std::uint64_t all = nodes.size();
  for (stored const& s : stored_) all += s.bytes;
  std::optional<durable_file> data;
  if (all > most) data.emplace(path + ".data");
  auto const outside = [&](stored const& s) { return data && s.bytes > small; };
  std::vector<std::uint64_t> places;  // of the tensors outside
  for (stored const& s : stored_) {
    if (!outside(s)) continue;
    data->write(std::string((aligned - data->size() % aligned) % aligned, '\0'));
    places.push_back(data->size());
    s.each([&](bytes some) { data->write(some); });
  }
  if (data) data->rename(fmt::format("{}.{:08x}.data", path, data->crc32()));
  std::vector<std::string> heads;
  std::uint64_t tensors = 0;
  auto place = places.begin();
  for (stored const& s : stored_) {
    message m;
    m.packed(1, s.dims).number(2, s.ids ? detail::of_int64 : detail::of_float).text(8, s.name);
    if (outside(s)) {
      auto const entry = [&](std::string_view key, std::string const& is) {
        m.text(13, message().text(1, key).text(2, is).bytes());
      };
      entry("location", std::filesystem::path(data->path()).filename().native());
      entry("offset", std::to_string(*place++));
      entry("length", std::to_string(s.bytes));
      m.number(14, 1);
    } else {
      m.begin(9, s.bytes);
    }
    std::uint64_t const size = m.bytes().size() + (outside(s) ? 0 : s.bytes);
    heads.push_back(message().begin(5, size).bytes() + m.bytes());
    tensors += heads.back().size() + (outside(s) ? 0 : s.bytes);
  }
  if (nodes.size() + tensors > longest)
    throw error(
        fmt::format("{} would have {} bytes beside its tensors, most of them ids of tables, and a model of "
                    "ONNX has room for "
                    "{}: train with fewer rows (`.rows = {{.most_rows = N}}`), or hash ids in `feed` for an "
                    "`nn::embedding`",
                    path, nodes.size() + tensors, longest));
  durable_file file(path);
  file.write(of_model(nodes + message().text(2, "edl").bytes() + ends_, tensors));
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    file.write(heads[i]);
    if (!outside(stored_[i])) stored_[i].each([&](bytes some) { file.write(some); });
  }
  if (data) data->commit();
  file.commit();  // from here on it is this model
  std::error_code code;
  if (!earlier.empty() && (!data || earlier != data->path()) &&
      std::filesystem::is_regular_file(earlier, code))
    std::filesystem::remove(earlier, code);
  return file.size() + (data ? data->size() : 0);
}

}  // namespace edl::onnx
