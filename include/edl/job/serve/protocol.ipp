// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/serve/protocol.hpp"
#include "edl/job/serve/tensor.hpp"

namespace edl::serve {
namespace detail {

using nlohmann::json;

/// A body of lists within lists would take a hundred times its bytes.
inline json parsed(std::string_view body) {
  if (nested_too_deeply(body))
    throw http::failure(400, fmt::format("the body is nested deeper than {} levels", most_nesting));
  return json::parse(body);
}

/// Runs `read`, whose JSON may lack fields or have others than it should.
template <class Read>
std::shared_ptr<question const> checked(Read&& read) {
  auto const q = std::make_shared<question>();
  try {
    read(*q);
    return q;
  } catch (json::parse_error const& e) {
    throw http::failure(400, fmt::format("the body is no JSON (at its byte {})", e.byte));
  } catch (json::exception const& e) {
    if (e.id == 406) throw http::failure(400, "a number of the body is too large");
    throw http::failure(400, "a field of the body is missing, or of another type than it should be");
  } catch (http::failure const&) {
    throw;
  } catch (error const& e) {
    throw http::failure(400, e.what());
  }
}

inline void check_rows(std::size_t rows, std::size_t most) {
  if (rows == 0) throw http::failure(400, "there is no record in the request");
  if (rows > most)
    throw http::failure(
        413, fmt::format("there are {} records in the request; at most {} are taken at once", rows, most));
}

/// Values that a shape has, whose first extent is the number of records.
inline std::size_t count_of(json const& shape, std::string const& name, std::size_t& rows, std::size_t most) {
  std::size_t count = 1;
  if (!shape.is_array() || shape.empty())
    throw http::failure(400, fmt::format("input '{}' has no shape", name));
  for (json const& one : shape) {
    if (!one.is_number_unsigned())
      throw http::failure(400, fmt::format("input '{}' has a shape of other things than extents", name));
    auto const extent = one.get<std::uint64_t>();
    if (extent > (std::uint64_t(1) << 31) / std::max<std::size_t>(count, 1))
      throw http::failure(413, fmt::format("the shape of input '{}' is too large", name));
    count *= std::size_t(extent);
  }
  auto const first = shape.front().get<std::size_t>();
  if (rows != 0 && rows != first)
    throw http::failure(400, fmt::format("input '{}' has another number of records than the others", name));
  rows = first;
  check_rows(rows, most);
  return count;
}

/// Refuses numbers that JSON can say and the datatype cannot.
inline void check_numbers(tensor const& t, std::string_view datatype) {
  struct range {
    std::string_view datatype;
    double least, most;
  };
  static constexpr range whole[] = {{"BOOL", 0, 1},
                                    {"INT8", -0x1p7, 0x1p7 - 1},
                                    {"INT16", -0x1p15, 0x1p15 - 1},
                                    {"INT32", -0x1p31, 0x1p31 - 1},
                                    {"INT64", -0x1p63, 0x1p63},
                                    {"UINT8", 0, 0x1p8 - 1},
                                    {"UINT16", 0, 0x1p16 - 1},
                                    {"UINT32", 0, 0x1p32 - 1},
                                    {"UINT64", 0, 0x1p64}};
  auto const of = std::ranges::find(whole, datatype, &range::datatype);
  if (of == std::end(whole)) return;
  auto const look = [&](auto const& values, auto least, auto most) {  // in the type that the values have
    for (auto const given : values)
      if (auto const value = decltype(least)(given);
          value < least || value > most || std::trunc(value) != value)
        throw http::failure(400, fmt::format("input '{}' has {}, which is no {}", t.name, given, datatype));
  };
  look(t.floats, float(of->least), float(of->most));
  look(t.integers, of->least, of->most);
}

inline bool flag_in(json const& object, char const* name, bool otherwise) {
  auto const p = object.find("parameters");
  return p != object.end() && p->is_object() ? p->value(name, otherwise) : otherwise;
}

inline void choose_outputs(question& q, json const& body, model_face const& of) {
  bool const binary = flag_in(body, "binary_data_output", false);
  if (auto const wanted = body.find("outputs"); wanted != body.end()) {
    for (json const& one : *wanted) {
      auto const name = one.at("name").get<std::string>();
      auto const found = std::ranges::find(of.outputs, name, &model_output::name);
      if (found == of.outputs.end())
        throw http::failure(400, fmt::format("the model has no output '{}'", printable(name)));
      if (std::ranges::find(q.outputs, name, &model_output::name) != q.outputs.end())
        throw http::failure(400, fmt::format("output '{}' is asked for twice", printable(name)));
      q.outputs.push_back(*found);
      q.binary.push_back(flag_in(one, "binary_data", binary));
    }
  } else {
    q.outputs = of.outputs;
    q.binary.assign(of.outputs.size(), binary);
  }
}

inline void append_number(std::string& to, float x) {
  if (std::isfinite(x))
    fmt::format_to(std::back_inserter(to), "{}", x);
  else
    to += std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}

inline void append_list(std::string& to, view<float> values) {
  to += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i) to += ',';
    append_number(to, values[i]);
  }
  to += ']';
}

inline std::string datatype(example::kind k) {
  return k == example::kind::strings ? "BYTES" : k == example::kind::integers ? "INT64" : "FP32";
}

/// Appends texts, of whose literals the compiler knows the length.
void append(std::string& to, std::convertible_to<std::string_view> auto const&... pieces) {
  (..., to.append(std::string_view(pieces)));
}

inline std::string quoted(std::string const& text) {
  auto const plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain)) return '"' + text + '"';
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Whether an instance is the bytes of the only input, and no input by its name.
inline bool is_bytes(json const& instance, model_face const& of) {
  return of.inputs.size() == 1 && of.inputs.front().name != "b64" && instance.size() == 1 &&
         instance.contains("b64");
}

inline std::vector<std::int64_t> shape_of(record_feature const& f) {
  std::vector<std::int64_t> shape{-1};
  if (f.extents.empty()) shape.push_back(1);
  shape.insert(shape.end(), f.extents.begin(), f.extents.end());
  return shape;
}

/// A tensor as a signature has it.
inline json tensor_info(std::string const& name, char const* type, std::vector<std::int64_t> const& shape) {
  json sizes = json::array();
  for (std::int64_t const extent : shape) sizes.push_back({{"size", std::to_string(extent)}, {"name", ""}});
  return {
      {"dtype", type}, {"tensor_shape", {{"dim", sizes}, {"unknown_rank", false}}}, {"name", name + ":0"}};
}

inline view<float> row_of(view<float> outputs, std::size_t row, std::size_t rows) {
  return outputs.subspan(row * (outputs.size() / rows), outputs.size() / rows);
}

inline constexpr std::size_t most_remembered = 4096;  // bytes of a head

inline inference_head read_head(std::string_view text, model_face const& of, std::size_t most) {
  json const all = parsed(text);
  inference_head h{.text = std::string(text)};
  question& q = h.said;
  if (auto const id = all.find("id"); id != all.end()) q.id = id->get<std::string>();
  for (json const& one : all.at("inputs")) {
    tensor t = tensor_for(one.at("name").get<std::string>(), of.inputs);
    if (std::ranges::find(q.inputs, t.name, &tensor::name) != q.inputs.end())
      throw http::failure(400, fmt::format("input '{}' stands there twice", t.name));
    std::size_t const count = count_of(one.at("shape"), t.name, q.rows, most);
    auto const parameters = one.find("parameters");
    auto& tail = h.tails.emplace_back();
    t.append(one.at("datatype").get_ref<std::string const&>(), {}, 0);  // throws what is wrong with it
    if (parameters != one.end() && parameters->contains("binary_data_size")) {
      tail.emplace(one.at("datatype").get<std::string>(), count,
                   parameters->at("binary_data_size").get<std::size_t>());
    } else {
      t.append(one.at("data"));
      check_numbers(t, one.at("datatype").get_ref<std::string const&>());
      if (t.size() != count)
        throw http::failure(
            400, fmt::format("input '{}' has {} values, and its shape wants {}", t.name, t.size(), count));
    }
    q.inputs.push_back(std::move(t));
  }
  check_rows(q.rows, most);
  choose_outputs(q, all, of);
  return h;
}

}  // namespace detail

EDL_INLINE std::shared_ptr<question const> read_inference(std::string body, std::optional<std::size_t> header,
                                                          model_face const& of, std::size_t most,
                                                          inference_head& last) {
  using namespace detail;
  return checked([&](question& q) {
    if (header && *header > body.size())
      throw http::failure(400, "Inference-Header-Content-Length is more than the whole body");
    std::string_view const text = std::string_view(body).substr(0, header.value_or(body.size()));
    inference_head once;
    bool const remembers = header && text.size() <= most_remembered;
    inference_head& h = remembers ? last : once;
    if (h.text.empty() || text != h.text) h = read_head(text, of, most);
    q = h.said;
    q.body = std::move(body);
    std::string_view rest = std::string_view(q.body).substr(header.value_or(q.body.size()));
    for (std::size_t k = 0; k < q.inputs.size(); ++k)
      if (auto const& tail = h.tails[k]) {
        tensor& t = q.inputs[k];
        if (tail->bytes > rest.size()) throw http::failure(400, fmt::format("input '{}' is cut off", t.name));
        t.append(tail->datatype, rest.substr(0, tail->bytes), tail->values);
        rest.remove_prefix(tail->bytes);
      }
    if (!rest.empty())
      throw http::failure(400, fmt::format("{} bytes behind the last input belong to none", rest.size()));
    check_shares(q.inputs, q.rows);
  });
}

EDL_INLINE http::response write_inference(question const& q, std::string const& name, std::uint64_t version,
                                          view<float> outputs) {
  using namespace detail;
  std::size_t const rows = q.rows;
  std::string head, tail;
  head.reserve(256);
  auto const add = [&head](auto const&... pieces) { append(head, pieces...); };
  add("{\"model_name\":", quoted(name), ",\"model_version\":\"", std::to_string(version), "\"");
  if (!q.id.empty()) add(",\"id\":", quoted(q.id));
  add(",\"outputs\":[");
  std::vector<float> values;
  for (std::size_t k = 0; k < q.outputs.size(); ++k) {
    model_output const& o = q.outputs[k];
    values.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      auto const part = o.of(row_of(outputs, row, rows));
      values.insert(values.end(), part.begin(), part.end());
    }
    add(k ? "," : "", "{\"name\":", quoted(o.name), ",\"datatype\":\"FP32\",\"shape\":[",
        std::to_string(rows), ",", std::to_string(o.size()), "]");
    if (q.binary[k]) {
      auto const bytes = std::as_bytes(std::span(values));
      add(",\"parameters\":{\"binary_data_size\":", std::to_string(bytes.size()), "}}");
      tail.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    } else {
      add(",\"data\":");
      append_list(head, values);
      add("}");
    }
  }
  add("]}");
  if (tail.empty()) return {.body = std::move(head)};
  http::response r{.type = "application/octet-stream"};
  r.headers.reserve(3);
  r.headers.emplace_back("Inference-Header-Content-Length", std::to_string(head.size()));
  r.body = std::move(head.append(tail));
  return r;
}

EDL_INLINE std::shared_ptr<question const> read_predict(std::string_view body, model_face const& of,
                                                        std::size_t most) {
  using namespace detail;
  return checked([&](question& q) {
    json const all = parsed(body);
    if (auto const name = all.find("signature_name"); name != all.end() && *name != "serving_default")
      throw http::failure(400, "of signatures there is 'serving_default' alone");
    q.outputs = of.outputs;
    std::vector<tensor>& inputs = q.inputs;
    std::size_t& rows = q.rows;
    auto const into = [&](std::string const& name) -> tensor& {
      auto const found = std::ranges::find(inputs, name, &tensor::name);
      if (found != inputs.end()) return *found;
      return inputs.emplace_back(tensor_for(name, of.inputs));
    };
    auto const only = [&]() -> std::string const& {
      if (of.inputs.size() != 1)
        throw http::failure(400,
                            fmt::format("the model takes {} inputs: name each value's", of.inputs.size()));
      return of.inputs.front().name;
    };
    if (all.contains("instances") && all.contains("inputs"))
      throw http::failure(400, "the body has both 'instances' and 'inputs'");
    if (auto const rows_given = all.find("instances"); rows_given != all.end()) {
      rows = rows_given->is_array() ? rows_given->size() : 0;
      check_rows(rows, most);
      std::size_t row = 0;
      std::vector<std::size_t> each;  // values of an instance, by input
      for (json const& one : *rows_given) {
        ++row;
        if (one.is_object() && !is_bytes(one, of))
          for (auto const& [name, value] : one.items()) into(name).append(value);
        else
          into(only()).append(one);
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          tensor const& t = inputs[k];
          if (k == each.size()) each.push_back(row == 1 ? t.size() : 0);
          if (t.size() != each[k] * row)
            throw http::failure(
                400, fmt::format("instance {} has not as many values of input '{}' as the first", row - 1,
                                 t.name));
        }
      }
    } else if (auto const given = all.find("inputs"); given != all.end()) {
      q.columns = true;
      auto const take = [&](std::string const& name, json const& values) {
        std::size_t const mine = values.is_array() ? values.size() : 0;
        if (rows != 0 && rows != mine)
          throw http::failure(400,
                              fmt::format("input '{}' has another number of records than the others", name));
        rows = mine;
        check_rows(rows, most);
        into(name).append(values);
      };
      if (given->is_object())
        for (auto const& [name, values] : given->items()) take(name, values);
      else
        take(only(), *given);
      check_rows(rows, most);
    } else {
      throw http::failure(400, "the body has neither 'instances' nor 'inputs'");
    }
    check_shares(inputs, rows);
  });
}

EDL_INLINE http::response write_predict(question const& q, view<float> outputs) {
  using namespace detail;
  std::size_t const rows = q.rows;
  bool const several = q.outputs.size() > 1;
  std::string body = q.columns ? "{\"outputs\":" : "{\"predictions\":";
  auto const value = [&](model_output const& o, std::size_t row) {
    append_list(body, o.of(row_of(outputs, row, rows)));
  };
  auto const named = [&](auto const& each) {
    body += '{';
    for (std::size_t k = 0; k < q.outputs.size(); ++k) {
      body += (k ? "," : "") + quoted(q.outputs[k].name) + ':';
      each(q.outputs[k]);
    }
    body += '}';
  };
  auto const list = [&](auto const& each) {
    body += '[';
    for (std::size_t row = 0; row < rows; ++row) {
      if (row) body += ',';
      each(row);
    }
    body += ']';
  };
  if (!several)
    list([&](std::size_t row) { value(q.outputs.front(), row); });
  else if (q.columns)
    named([&](model_output const& o) { list([&](std::size_t row) { value(o, row); }); });
  else
    list([&](std::size_t row) { named([&](model_output const& o) { value(o, row); }); });
  return {.body = body + "}"};
}

EDL_INLINE std::string metadata(model_face const& of, std::vector<std::string> const& versions) {
  using namespace detail;
  json all{{"name", of.name},
           {"versions", versions},
           {"platform", "edl"},
           {"inputs", json::array()},
           {"outputs", json::array()}};
  for (record_feature const& f : of.inputs)
    all["inputs"].push_back({{"name", f.name}, {"datatype", datatype(f.kind)}, {"shape", shape_of(f)}});
  for (model_output const& o : of.outputs)
    all["outputs"].push_back({{"name", o.name}, {"datatype", "FP32"}, {"shape", {-1, o.size()}}});
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

EDL_INLINE std::string signature(model_face const& of) {
  using namespace detail;
  json inputs = json::object(), outputs = json::object();
  for (record_feature const& f : of.inputs)
    inputs[f.name] = tensor_info(f.name,
                                 f.kind == example::kind::strings    ? "DT_STRING"
                                 : f.kind == example::kind::integers ? "DT_INT64"
                                                                     : "DT_FLOAT",
                                 shape_of(f));
  for (model_output const& o : of.outputs)
    outputs[o.name] = tensor_info(o.name, "DT_FLOAT", {-1, std::int64_t(o.size())});
  json const serving{{"inputs", inputs}, {"outputs", outputs}, {"method_name", "tensorflow/serving/predict"}};
  json const all{
      {"model_spec", {{"name", of.name}, {"signature_name", ""}, {"version", std::to_string(of.version)}}},
      {"metadata", {{"signature_def", {{"signature_def", {{"serving_default", serving}}}}}}}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace edl::serve
