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
#include "edl/core/text.hpp"
#include "edl/job/serve/protocol.hpp"
#include "edl/job/serve/tensor.hpp"

namespace edl::serve {
namespace detail {

using nlohmann::json;

/// Replaces each NaN by null. NaN is not JSON, but Python and NumPy write it for a missing value. Where a
/// value is required, null is refused, too.
inline std::string without_nan(std::string_view body) {
  constexpr std::string_view nan = "NaN";
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!in_string && body.substr(i, nan.size()) == nan) {
      out += "null";
      i += nan.size() - 1;
      continue;
    }
    if (body[i] == '"') in_string = !in_string;
    out += body[i];
    if (in_string && body[i] == '\\' && i + 1 < body.size()) out += body[++i];
  }
  return out;
}

/// Refuses an object with a repeated name, of which the parser would use the last. `body` is JSON.
inline void refuse_twice(std::string_view body) {
  struct member {
    std::string_view name, rest;
  };
  std::vector<std::vector<member>> open;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '{' || body[i] == '[') open.emplace_back();
    if (body[i] == '}' || body[i] == ']') {
      auto& all = open.back();
      std::ranges::stable_sort(all, {}, &member::name);
      auto const twice = std::ranges::adjacent_find(all, {}, &member::name);
      if (twice != all.end()) {
        auto const shown = [](std::string_view rest) {
          return printable(trimmed(rest.substr(0, rest.find_first_of(",}\n"))), 32);
        };
        throw http::failure(400,
                            fmt::format("'{}' occurs twice in one object of the body: with {} and with {}",
                                        printable(twice->name), shown(twice->rest), shown(twice[1].rest)));
      }
      open.pop_back();
    }
    if (body[i] != '"') continue;
    std::size_t const first = ++i;
    for (; body[i] != '"'; ++i) i += body[i] == '\\';
    auto const behind = body.find_first_not_of(" \t\r\n", i + 1);
    if (behind != body.npos && body[behind] == ':')
      open.back().push_back({body.substr(first, i - first), body.substr(behind + 1)});
  }
}

/// `byte`: where, counted from 1.
inline http::failure not_json(std::size_t byte) {
  return http::failure(
      400, fmt::format("the body is not JSON (at its byte {}); if binary tensors follow the JSON, "
                       "Inference-Header-Content-Length must give its length",
                       byte));
}

/// Limits nesting: lists within lists would need a hundred times the body's size in memory.
inline json parsed(std::string_view body) {
  if (nested_too_deeply(body))
    throw http::failure(400, fmt::format("the body is nested deeper than {} levels", most_nesting));
  // The parser would take a zero byte for the end of the body.
  if (auto const at = body.find('\0'); at != body.npos) throw not_json(at + 1);
  json all = body.find("NaN") == body.npos ? json::parse(body) : json::parse(without_nan(body));
  refuse_twice(body);
  return all;
}

/// A field of an object. Null counts as absent, because clients write it for fields that they do not set.
inline json const* field(json const& in, char const* name) {
  if (!in.is_object()) return nullptr;
  auto const at = in.find(name);
  return at == in.end() || at->is_null() ? nullptr : &*at;
}

inline json const& need(json const& in, char const* name, std::string const& of) {
  if (!in.is_object()) throw http::failure(400, of + " is not an object");
  if (auto const* const found = field(in, name)) return *found;
  throw http::failure(400, fmt::format("{} has no '{}'", of, name));
}

inline json const& list_field(json const& value, char const* name, std::string const& of) {
  if (!value.is_array()) throw http::failure(400, fmt::format("'{}' of {} is not a list", name, of));
  return value;
}

inline std::string const& text_field(json const& value, char const* name, std::string const& of) {
  if (!value.is_string()) throw http::failure(400, fmt::format("'{}' of {} is not a text", name, of));
  return value.get_ref<std::string const&>();
}

/// A field of the object's "parameters".
inline json const* parameter(json const& object, char const* name, std::string const& of) {
  auto const* const all = field(object, "parameters");
  if (all && !all->is_object())
    throw http::failure(400, fmt::format("'parameters' of {} is not an object", of));
  return all ? field(*all, name) : nullptr;
}

inline bool flag_in(json const& object, char const* name, std::string const& of, bool otherwise) {
  auto const* const p = parameter(object, name, of);
  if (!p) return otherwise;
  if (!p->is_boolean())
    throw http::failure(400, fmt::format("'{}' of {} is neither true nor false", name, of));
  return p->get<bool>();
}

inline std::string const the_request = "the request";

/// Runs `read`, and turns errors of absent or unexpected fields into failures of the request.
template <class Read>
std::shared_ptr<question const> checked(Read&& read) {
  auto const q = std::make_shared<question>();
  try {
    read(*q);
    return q;
  } catch (json::parse_error const& e) {
    throw not_json(e.byte);
  } catch (json::exception const& e) {
    if (e.id == 406) throw http::failure(400, "a number of the body is too large");
    throw http::failure(400, "a field of the body is missing, or has the wrong type");
  } catch (http::failure const&) {
    throw;
  } catch (error const& e) {
    throw http::failure(400, e.what());
  }
}

inline void check_rows(std::size_t rows, std::size_t most) {
  if (rows == 0) throw http::failure(400, "the request has no records");
  if (rows > most)
    throw http::failure(
        413, fmt::format("the request has {} records; at most {} are allowed: send fewer, or start the "
                         "server with a larger --max_batch",
                         rows, most));
}

/// The number of values in a shape, whose first extent is the number of records.
inline std::size_t count_of(json const& shape, std::string const& name, std::vector<std::size_t>& extents,
                            std::size_t& rows, std::size_t most) {
  std::size_t count = 1;
  if (!shape.is_array() || shape.empty())
    throw http::failure(400, fmt::format("input '{}' has no shape", name));
  for (json const& one : shape) {
    if (!one.is_number_unsigned())
      throw http::failure(400,
                          fmt::format("input '{}' has a shape with an element that is not an extent", name));
    auto const extent = one.get<std::uint64_t>();
    if (extent > (std::uint64_t(1) << 31) / std::max<std::size_t>(count, 1))
      throw http::failure(413, fmt::format("the shape of input '{}' is too large", name));
    count *= std::size_t(extent);
    extents.push_back(std::size_t(extent));
  }
  if (extents.size() > 8) throw http::failure(400, fmt::format("input '{}' has more than 8 extents", name));
  std::size_t const first = extents.front();
  if (rows != 0 && rows != first)
    throw http::failure(400, fmt::format("input '{}' has another number of records than the others", name));
  rows = first;
  check_rows(rows, most);
  return count;
}

/// Refuses numbers that are valid in JSON but not in the datatype.
inline void check_numbers(tensor const& t, std::string_view datatype) {
  struct range {
    std::string_view datatype;
    double least, most;
  };
  static constexpr range floating[] = {{"FP16", -65504, 65504}, {"BF16", -0x1.FEp127, 0x1.FEp127}};
  for (range const& of : floating)
    if (datatype == of.datatype)
      for (float const x : t.floats)
        if (x < of.least || x > of.most)
          throw http::failure(400, fmt::format("input '{}' has {}, which is no {}", t.name, x, datatype));
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
  auto const look = [&](auto const& values, auto least, auto most) {  // in the type of the values
    for (auto const given : values)
      if (auto const value = decltype(least)(given);
          !std::isnan(value) && (value < least || value > most || std::trunc(value) != value))
        throw http::failure(400, fmt::format("input '{}' has {}, which is no {}", t.name, given, datatype));
  };
  look(t.floats, float(of->least), float(of->most));
  look(t.integers, of->least, of->most);
}

inline void choose_outputs(question& q, json const& body, model_face const& of) {
  bool const binary = flag_in(body, "binary_data_output", the_request, false);
  auto const* const wanted = field(body, "outputs");
  if (wanted && !list_field(*wanted, "outputs", the_request).empty()) {
    for (json const& one : *wanted) {
      std::string const name = text_field(need(one, "name", "an output of the request"), "name", "an output");
      auto const found = std::ranges::find(of.outputs, name, &answer_output::name);
      if (found == of.outputs.end()) {
        std::string all;
        for (answer_output const& o : of.outputs) all += (all.empty() ? "" : ", ") + o.name;
        throw http::failure(400,
                            fmt::format("the model has no output '{}'; it has {}", printable(name), all));
      }
      if (std::ranges::find(q.outputs, name, &answer_output::name) != q.outputs.end())
        throw http::failure(400, fmt::format("output '{}' is requested twice", printable(name)));
      q.outputs.push_back(*found);
      q.binary.push_back(flag_in(one, "binary_data", fmt::format("output '{}'", printable(name)), binary));
    }
  } else {
    q.outputs = of.outputs;
    q.binary.assign(of.outputs.size(), binary);
  }
}

/// Writes null for a number that is not finite, because JSON has none.
inline void append_number(std::string& to, float x) {
  if (std::isfinite(x))
    fmt::format_to(std::back_inserter(to), "{}", x);
  else
    to += "null";
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

/// Appends texts; the compiler knows the lengths of literals.
void append(std::string& to, std::convertible_to<std::string_view> auto const&... pieces) {
  (..., to.append(std::string_view(pieces)));
}

inline std::string quoted(std::string const& text) {
  auto const plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain)) return '"' + text + '"';
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Whether an instance is the bytes of the only input, rather than an object of inputs.
inline bool is_bytes(json const& instance, model_face const& of) {
  return of.inputs.size() == 1 && of.inputs.front().name != "b64" && instance.size() == 1 &&
         instance.contains("b64");
}

inline std::vector<std::int64_t> shape_of(record_feature const& f) {
  std::vector<std::int64_t> shape{-1};
  if (f.extents.empty()) shape.push_back(1);
  for (std::size_t const e : f.extents) shape.push_back(e == 0 ? -1 : std::int64_t(e));  // 0: any number
  return shape;
}

/// A tensor in the form of a signature.
inline json tensor_info(std::string const& name, char const* type, std::vector<std::int64_t> const& shape) {
  json sizes = json::array();
  for (std::int64_t const extent : shape) sizes.push_back({{"size", std::to_string(extent)}, {"name", ""}});
  return {
      {"dtype", type}, {"tensor_shape", {{"dim", sizes}, {"unknown_rank", false}}}, {"name", name + ":0"}};
}

/// A record's outputs in the form of the answer.
inline std::vector<float> numbers_of(answer_output const& o, view<float> outputs, std::size_t row,
                                     std::size_t rows) {
  auto const own = o.of.of(outputs.subspan(row * (outputs.size() / rows), outputs.size() / rows));
  std::vector<float> values(own.begin(), own.end());
  if (o.how != answer_output::form::probabilities) return values;
  if (o.of.meaning == output_meaning::probabilities) {
    std::ranges::transform(own, values.begin(), probability_of);
  } else {
    double const most = *std::ranges::max_element(own);
    double sum = 0;
    for (float const x : own) sum += std::exp(double(x) - most);
    std::ranges::transform(own, values.begin(),
                           [&](float x) { return float(std::exp(double(x) - most) / sum); });
  }
  return values;
}

inline std::string const& class_of(answer_output const& o, model_face const& by, view<float> outputs,
                                   std::size_t row, std::size_t rows) {
  auto const all = o.of.of(outputs.subspan(row * (outputs.size() / rows), outputs.size() / rows));
  return by.classes[likeliest_class(all).number];
}

inline constexpr std::size_t most_remembered = 4096;  // bytes of a header

inline inference_head read_head(std::string_view text, model_face const& of, std::size_t most) {
  json const all = parsed(text);
  inference_head h{.text = std::string(text)};
  question& q = h.said;
  if (auto const* const id = field(all, "id")) q.id = text_field(*id, "id", the_request);
  for (json const& one : list_field(need(all, "inputs", the_request), "inputs", the_request)) {
    std::string const name = text_field(need(one, "name", "an input of the request"), "name", "an input");
    std::string const called = fmt::format("input '{}'", printable(name));
    std::string const& type = text_field(need(one, "datatype", called), "datatype", called);
    tensor t = tensor_for(name, of.inputs,
                          type == "BYTES"                 ? example::kind::strings
                          : type.find("INT") != type.npos ? example::kind::integers
                                                          : example::kind::floats);
    if (std::ranges::find(q.inputs, t.name, &tensor::name) != q.inputs.end())
      throw http::failure(400, fmt::format("input '{}' occurs twice", t.name));
    std::vector<std::size_t> extents;
    std::size_t const count = count_of(need(one, "shape", called), t.name, extents, q.rows, most);
    auto& tail = h.tails.emplace_back();
    t.append(type, {}, 0);  // throws if the type is invalid
    auto const* const data = field(one, "data");
    if (auto const* const size = parameter(one, "binary_data_size", called)) {
      if (data)
        throw http::failure(400, called + " has both 'data' and 'binary_data_size': send one of them");
      if (!size->is_number_unsigned())
        throw http::failure(400, fmt::format("'binary_data_size' of {} is not a number of bytes", called));
      tail.emplace(type, count, size->get<std::size_t>());
    } else {
      auto const nested = t.append(list_field(need(one, "data", called), "data", called));
      check_numbers(t, type);
      if (t.size() != count)
        throw http::failure(
            400, fmt::format("input '{}' has {} values, but its shape needs {}", t.name, t.size(), count));
      if (nested.size() > 1 && nested != extents)
        throw http::failure(400, fmt::format("input '{}' has lists of {}, but its shape is {}", t.name,
                                             shown_extents(nested), shown_extents(extents)));
    }
    t.extents.assign(extents.begin() + 1, extents.end());
    q.inputs.push_back(std::move(t));
  }
  check_rows(q.rows, most);
  if (of.complete) check_names(q.inputs, of.inputs);
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
        if (!header)
          throw http::failure(
              400, fmt::format("input '{}' has 'binary_data_size', but the request has no "
                               "Inference-Header-Content-Length field, which gives the length of the JSON",
                               t.name));
        if (tail->bytes > rest.size())
          throw http::failure(
              400, fmt::format("input '{}' is truncated: only {} of its {} bytes follow; is {}, the value of "
                               "Inference-Header-Content-Length, the length of the JSON?",
                               t.name, rest.size(), tail->bytes, *header));
        t.append(tail->datatype, rest.substr(0, tail->bytes), tail->values);
        rest.remove_prefix(tail->bytes);
      }
    if (!rest.empty()) throw http::failure(400, fmt::format("{} bytes follow the last input", rest.size()));
    share_out(q.inputs, q.rows);
  });
}

EDL_INLINE std::vector<answer_output> answers_of(std::vector<model_output> const& outputs,
                                                 std::vector<std::string> const& classes) {
  using enum answer_output::form;
  std::vector<answer_output> all;
  for (model_output const& o : outputs) {
    all.push_back({o, numbers, o.name});
    if (o.meaning == output_meaning::numbers) continue;
    all.push_back({o, probabilities, o.name + "_probabilities"});
    if (o.meaning == output_meaning::classes && classes.size() == o.size())
      all.push_back({o, name, o.name + "_class"});
  }
  return all;
}

EDL_INLINE http::response write_inference(question const& q, model_face const& by, view<float> outputs) {
  using namespace detail;
  std::size_t const rows = q.rows;
  std::string head, tail;
  head.reserve(256);
  auto const add = [&head](auto const&... pieces) { append(head, pieces...); };
  add("{\"model_name\":", quoted(by.name), ",\"model_version\":\"", std::to_string(by.version), "\"");
  if (!q.id.empty()) add(",\"id\":", quoted(q.id));
  add(",\"outputs\":[");
  std::vector<float> values;
  for (std::size_t k = 0; k < q.outputs.size(); ++k) {
    answer_output const& o = q.outputs[k];
    bool const texts = o.how == answer_output::form::name;
    add(k ? "," : "", "{\"name\":", quoted(o.name), ",\"datatype\":\"", texts ? "BYTES" : "FP32",
        "\",\"shape\":[", std::to_string(rows), ",", std::to_string(o.size()), "]");
    if (texts) {
      std::string text, bytes;
      for (std::size_t row = 0; row < rows; ++row) {
        std::string const& one = class_of(o, by, outputs, row, rows);
        auto const size = std::uint32_t(one.size());
        bytes.append(reinterpret_cast<char const*>(&size), sizeof size).append(one);
        append(text, row ? "," : "", quoted(one));
      }
      if (q.binary[k])
        add(",\"parameters\":{\"binary_data_size\":", std::to_string(bytes.size()), "}}"), tail += bytes;
      else
        add(",\"data\":[", text, "]}");
      continue;
    }
    values.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      auto const part = numbers_of(o, outputs, row, rows);
      values.insert(values.end(), part.begin(), part.end());
    }
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
    if (!all.is_object()) throw http::failure(400, "the body is not an object");
    auto const* const given_name = field(all, "signature_name");
    std::string const signature = given_name ? text_field(*given_name, "signature_name", the_request) : "";
    if (!signature.empty() && signature != "serving_default" && signature != "probabilities")
      throw http::failure(
          400, fmt::format("no signature '{}': the model has 'serving_default' and 'probabilities'",
                           printable(signature)));
    for (answer_output const& o : of.outputs)
      if (o.how == answer_output::form::numbers || signature == "probabilities") q.outputs.push_back(o);
    std::vector<tensor>& inputs = q.inputs;
    std::size_t& rows = q.rows;
    std::size_t row = 0;
    // If the model's inputs are unknown, the values determine the kind.
    auto const kind_of = [](json const& value) {
      json const* one = &value;
      while (one->is_array() && !one->empty()) one = &one->front();
      return one->is_string() || one->is_object() ? example::kind::strings
             : one->is_number_integer()           ? example::kind::integers
                                                  : example::kind::floats;
    };
    auto const into = [&](std::string const& name, json const& value) -> tensor& {
      auto const found = std::ranges::find(inputs, name, &tensor::name);
      if (found != inputs.end()) return *found;
      tensor& made = inputs.emplace_back(tensor_for(name, of.inputs, kind_of(value)));
      for (std::size_t i = 0; i < row; ++i) made.append_none();
      if (made.starts.empty()) made.starts.push_back(0);
      return made;
    };
    auto const only = [&]() -> std::string const& {
      if (of.inputs.size() != 1)
        throw http::failure(400,
                            fmt::format("the model takes {} inputs: name each value's", of.inputs.size()));
      return of.inputs.front().name;
    };
    auto const* const rows_given = field(all, "instances");
    auto const* const given = field(all, "inputs");
    if (rows_given && given) throw http::failure(400, "the body has both 'instances' and 'inputs'");
    if (rows_given) {
      rows = list_field(*rows_given, "instances", the_request).size();
      check_rows(rows, most);
      for (json const& one : *rows_given) {
        if (one.is_object() && !is_bytes(one, of))
          for (auto const& [name, value] : one.items()) into(name, value).append_record(value);
        else
          into(only(), one).append_record(one);
        ++row;
        for (tensor& t : inputs)
          if (t.starts.size() == row) t.append_none();
      }
    } else if (given) {
      q.columns = true;
      auto const take = [&](std::string const& name, json const& values) {
        std::size_t const mine = list_field(values, "inputs", the_request).size();
        if (rows != 0 && rows != mine)
          throw http::failure(400,
                              fmt::format("input '{}' has another number of records than the others", name));
        rows = mine;
        check_rows(rows, most);
        tensor& to = into(name, values);
        for (json const& one : values) to.append_record(one);
      };
      if (given->is_object())
        for (auto const& [name, values] : given->items()) take(name, values);
      else
        take(only(), *given);
      check_rows(rows, most);
    } else {
      throw http::failure(400, "the body has neither 'instances' nor 'inputs'");
    }
    if (of.complete) check_names(inputs, of.inputs);
  });
}

EDL_INLINE http::response write_predict(question const& q, model_face const& by, view<float> outputs) {
  using namespace detail;
  std::size_t const rows = q.rows;
  bool const several = q.outputs.size() > 1;
  std::string body = q.columns ? "{\"outputs\":" : "{\"predictions\":";
  auto const value = [&](answer_output const& o, std::size_t row) {
    if (o.how == answer_output::form::name)
      body += quoted(class_of(o, by, outputs, row, rows));
    else
      append_list(body, numbers_of(o, outputs, row, rows));
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
    named([&](answer_output const& o) { list([&](std::size_t row) { value(o, row); }); });
  else
    list([&](std::size_t row) { named([&](answer_output const& o) { value(o, row); }); });
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
  for (answer_output const& o : of.outputs)
    all["outputs"].push_back({{"name", o.name},
                              {"datatype", o.how == answer_output::form::name ? "BYTES" : "FP32"},
                              {"shape", {-1, o.size()}}});
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

EDL_INLINE std::string signature(model_face const& of) {
  using namespace detail;
  json inputs = json::object(), outputs = json::object(), more = json::object();
  for (record_feature const& f : of.inputs)
    inputs[f.name] = tensor_info(f.name,
                                 f.kind == example::kind::strings    ? "DT_STRING"
                                 : f.kind == example::kind::integers ? "DT_INT64"
                                                                     : "DT_FLOAT",
                                 shape_of(f));
  for (answer_output const& o : of.outputs) {
    using enum answer_output::form;
    more[o.name] =
        tensor_info(o.name, o.how == name ? "DT_STRING" : "DT_FLOAT", {-1, std::int64_t(o.size())});
    if (o.how == numbers) outputs[o.name] = more[o.name];
  }
  auto const told = [&](json const& made) {
    return json{{"inputs", inputs}, {"outputs", made}, {"method_name", "tensorflow/serving/predict"}};
  };
  json const all{
      {"model_spec", {{"name", of.name}, {"signature_name", ""}, {"version", std::to_string(of.version)}}},
      {"metadata",
       {{"signature_def",
         {{"signature_def", {{"serving_default", told(outputs)}, {"probabilities", told(more)}}}}}}}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace edl::serve
