// SPDX-License-Identifier: Apache-2.0
#include "common/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/core/json.hpp"
#include "edl/core/text.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

constexpr std::size_t most_documents = 1000;

/// 0400, 0o400, 0x1f, 0b11, as YAML 1.1 has them.
std::optional<std::int64_t> with_base(std::string_view t) {
  bool const less = t.starts_with('-');
  if (less || t.starts_with('+')) t.remove_prefix(1);
  if (t.size() < 2 || t[0] != '0') return std::nullopt;
  int const base = t[1] == 'x' ? 16 : t[1] == 'o' || (t[1] >= '0' && t[1] <= '9') ? 8 : t[1] == 'b' ? 2 : 0;
  if (base == 0) return std::nullopt;
  t.remove_prefix(t[1] >= '0' && t[1] <= '9' ? 1 : 2);
  auto const value = number_from<std::uint64_t>(t, base);
  if (!value || *value > std::uint64_t(INT64_MAX)) return std::nullopt;
  return less ? -std::int64_t(*value) : std::int64_t(*value);
}

/// What an unquoted word means.
json plain(std::string const& t) {
  if (t.empty() || t == "~" || t == "null" || t == "Null" || t == "NULL") return nullptr;
  if (t == "true" || t == "True" || t == "TRUE") return true;
  if (t == "false" || t == "False" || t == "FALSE") return false;
  if (auto const based = with_base(t)) return *based;
  std::string_view const digits = std::string_view(t).substr(t[0] == '+' ? 1 : 0);
  if (auto const whole = number_from<std::int64_t>(digits)) return *whole;
  if (t.find_first_of("0123456789") != std::string::npos &&
      t.find_first_not_of("0123456789+-.eE") == std::string::npos)
    if (auto const real = number_from<double>(digits)) return *real;
  return t;
}

/// `left`: values that there may still be; a few lines of anchors can ask for any number of them.
json convert(YAML::Node const& n, std::string const& origin, numbers how, int depth, int& left) {
  if (depth > 100 || --left < 0) throw usage_error(fmt::format("{}: nested too deeply, or too much", origin));
  switch (n.Type()) {
    case YAML::NodeType::Scalar: {
      json const meant = n.Tag() == "!" ? json(n.Scalar()) : plain(n.Scalar());
      bool const other = how == numbers::as_written && meant.is_number() && meant.dump() != n.Scalar();
      return other ? json(n.Scalar()) : meant;
    }
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (YAML::Node const& element : n) list.push_back(convert(element, origin, how, depth + 1, left));
      return list;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (auto const& entry : n) {
        std::string const key = entry.first.IsScalar() ? entry.first.Scalar() : "";
        if (key.empty() || object.contains(key))
          throw usage_error(fmt::format("{}: line {}: {}", origin, entry.first.Mark().line + 1,
                                        key.empty() ? "a name is missing" : "'" + key + "' occurs twice"));
        object[key] = convert(entry.second, origin, how, depth + 1, left);
      }
      return object;
    }
    default:
      return nullptr;
  }
}

/// A value with other bytes could be neither shown nor sent.
void check_encoding(std::string const& text, std::string const& origin) {
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    try {
      std::string const one = text.substr(at, end - at);
      // The parser would take it for UTF-16 or UTF-32, and make bytes of it that are no text.
      if (one.find('\0') != one.npos)
        throw usage_error(
            fmt::format("{}: line {}: a byte of it is zero: save the file as UTF-8", origin, line));
      json(one).dump();
    } catch (json::type_error const&) {
      throw usage_error(
          fmt::format("{}: line {}: its bytes are not UTF-8: save the file as UTF-8", origin, line));
    }
    at = end + 1;
  }
}

/// Hears nothing but in which lines documents began, counted from 0.
struct beginnings final : YAML::EventHandler {
  using place = YAML::Mark const&;
  using style = YAML::EmitterStyle::value;
  std::vector<int> lines;
  void OnDocumentStart(place at) override { lines.push_back(at.line); }
  void OnDocumentEnd() override {}
  void OnNull(place, YAML::anchor_t) override {}
  void OnAlias(place, YAML::anchor_t) override {}
  void OnScalar(place, std::string const&, YAML::anchor_t, std::string const&) override {}
  void OnSequenceStart(place, std::string const&, YAML::anchor_t, style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(place, std::string const&, YAML::anchor_t, style) override {}
  void OnMapEnd() override {}
};

/// The parser takes a comma behind the end for the beginning of one empty document after the other, without
/// end: so the second one is the last that it is asked for.
void check_one_document(std::string const& text, std::string const& origin) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  beginnings heard;
  if (parser.HandleNextDocument(heard) && parser.HandleNextDocument(heard))
    throw usage_error(
        fmt::format("{}: line {}: several documents, or a comma too many, where one document was expected",
                    origin, heard.lines.back() + 1));
}

/// The text of each document, with as many empty lines before it as stand before it in `text`.
std::vector<std::string> documents(std::string const& text, std::string const& origin) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  beginnings heard;
  while (parser.HandleNextDocument(heard)) {
    auto const& all = heard.lines;
    if (all.size() > 1 && all.back() <= all[all.size() - 2])
      throw usage_error(
          fmt::format("{}: line {}: a new document was expected to begin with ---", origin, all.back() + 1));
    if (all.size() > most_documents)
      throw usage_error(fmt::format("{}: has more than {} documents", origin, most_documents));
  }
  std::vector<std::size_t> starts;  // of lines
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1)
    starts.push_back(at);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < heard.lines.size(); ++i) {
    auto const offset = [&](std::size_t document) {
      std::size_t const line =
          document < heard.lines.size() ? std::size_t(heard.lines[document]) : starts.size();
      return line < starts.size() ? starts[line] : text.size();
    };
    std::size_t const from = offset(i);
    parts.push_back(std::string(std::size_t(heard.lines[i]), '\n') + text.substr(from, offset(i + 1) - from));
  }
  return parts;
}

/// Whether `t` may stand without quotes: what no reader of YAML takes for anything but this text.
bool bare(std::string const& t) {
  static constexpr char const* taken[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"};
  if (t.empty() || !plain(t).is_string()) return false;
  std::string small = t;
  for (char& c : small) c = char(std::tolower(static_cast<unsigned char>(c)));
  for (char const* word : taken)
    if (small == word) return false;
  for (char c : t)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::strchr("-_./", c) == nullptr) return false;
  return std::isalpha(static_cast<unsigned char>(t[0])) || t[0] == '/';
}

void emit(YAML::Emitter& to, json const& v) {
  if (v.is_object() && !v.empty()) {
    to << YAML::BeginMap;
    for (auto const& [key, value] : v.items()) {
      to << YAML::Key;
      if (!bare(key)) to << YAML::DoubleQuoted;
      to << key << YAML::Value;
      emit(to, value);
    }
    to << YAML::EndMap;
  } else if (v.is_array() && !v.empty()) {
    to << YAML::BeginSeq;
    for (json const& element : v) emit(to, element);
    to << YAML::EndSeq;
  } else if (v.is_object()) {
    to << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  } else if (v.is_array()) {
    to << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  } else if (v.is_string()) {
    auto const& t = v.get_ref<std::string const&>();
    if (!bare(t)) to << YAML::DoubleQuoted;
    to << t;
  } else if (v.is_null()) {
    to << YAML::Null;  // as a text it would be quoted
  } else {
    to << v.dump();
  }
}

}  // namespace

std::string to_yaml(json const& value) {
  YAML::Emitter to;
  emit(to, value);
  return std::string(to.c_str()) + "\n";
}

json from_yaml(std::string const& text, std::string const& origin, numbers how) {
  check_encoding(text, origin);
  auto const first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    if (nested_too_deeply(text))
      throw usage_error(fmt::format("{}: is nested deeper than {} levels", origin, most_nesting));
    if (json value = json::parse(text, nullptr, false); !value.is_discarded()) return value;
  }
  try {
    check_one_document(text, origin);
    int left = 100'000;
    return convert(YAML::Load(text), origin, how, 0, left);
  } catch (YAML::Exception const& bad) {
    throw usage_error(fmt::format("{}: line {}: {}", origin, bad.mark.line + 1, bad.msg));
  }
}

std::vector<json> from_yaml_documents(std::string const& text, std::string const& origin) {
  std::vector<json> all;
  auto const add = [&](json document) {
    if (document.is_object() && document.value("kind", json()) == "List" && document.contains("items") &&
        document["items"].is_array())
      for (json& item : document["items"]) {
        if (!item.is_null()) all.push_back(std::move(item));
      }
    else if (!document.is_null())
      all.push_back(std::move(document));
  };
  auto const first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return all;
  if (text[first] == '{') {
    add(from_yaml(text, origin));
    return all;
  }
  try {
    for (std::string const& one : documents(text, origin)) add(from_yaml(one, origin));
  } catch (YAML::Exception const& bad) {
    throw usage_error(fmt::format("{}: line {}: {}", origin, bad.mark.line + 1, bad.msg));
  }
  return all;
}

}  // namespace edl::tool
