// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cel.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <regex>

namespace edl::testing::kubernetes::cel {
namespace {

using kind = expression::kind;

constexpr double request_bytes = 3 << 20;

// Of all operators of two sides, how tightly they bind.
int strength(std::string const& op) {
  static std::map<std::string, int> const all{{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<", 3},
                                              {"<=", 3}, {">", 3},  {">=", 3}, {"in", 3}, {"+", 4},
                                              {"-", 4},  {"*", 5},  {"/", 5},  {"%", 5}};
  auto const it = all.find(op);
  return it == all.end() ? 0 : it->second;
}

class parser {
 public:
  explicit parser(std::string const& text) {
    static std::regex const token(
        R"(\s*(\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]]|[0-9]+|[A-Za-z_][A-Za-z0-9_]*|'[^'\\]*'|"[^"\\]*"))");
    std::smatch m;
    for (std::string rest = text; !rest.empty(); rest = m.suffix()) {
      if (std::ranges::all_of(rest, [](unsigned char c) { return std::isspace(c); })) break;
      if (!std::regex_search(rest, m, token, std::regex_constants::match_continuous))
        throw error("Syntax error: token recognition error at: '" + rest.substr(0, 20) + "'");
      tokens_.push_back(m[1]);
    }
  }

  expression whole() {
    expression e = conditional();
    if (at_ != tokens_.size()) throw error("Syntax error: extraneous input '" + tokens_[at_] + "'");
    return e;
  }

 private:
  std::string peek() const { return at_ < tokens_.size() ? tokens_[at_] : ""; }
  std::string next() {
    if (at_ == tokens_.size()) throw error("Syntax error: mismatched input '<EOF>'");
    return tokens_[at_++];
  }
  bool take(char const* token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }
  void expect(char const* token) {
    if (!take(token)) throw error("Syntax error: missing '" + std::string(token) + "' at '" + peek() + "'");
  }

  expression conditional() {
    expression e = binary(1);
    if (!take("?")) return e;
    expression yes = conditional();
    expect(":");
    return {kind::operation, "?:", {}, {std::move(e), std::move(yes), conditional()}};
  }
  expression binary(int least) {
    expression left = unary();
    for (int s; (s = strength(peek())) >= least && s > 0;) {
      std::string const op = next();
      left = {kind::operation, op, {}, {left, binary(s + 1)}};
    }
    return left;
  }
  expression unary() {
    for (char const* op : {"!", "-"})
      if (take(op)) return {kind::operation, op, {}, {unary()}};
    return postfix(primary());
  }
  std::vector<expression> arguments(char const* end) {
    std::vector<expression> all;
    while (!take(end)) {
      if (!all.empty()) expect(",");
      all.push_back(conditional());
    }
    return all;
  }
  expression primary() {
    std::string const t = next();
    if (t == "(") {
      expression e = conditional();
      expect(")");
      return e;
    }
    if (t == "[") return {kind::list, "", {}, arguments("]")};
    if (t[0] == '\'' || t[0] == '"') return {kind::literal, "", t.substr(1, t.size() - 2)};
    if (std::isdigit(static_cast<unsigned char>(t[0]))) return {kind::literal, "", std::stoll(t)};
    if (t == "true" || t == "false") return {kind::literal, "", t == "true"};
    if (t == "null") return {kind::literal, "", nullptr};
    if (!std::isalpha(static_cast<unsigned char>(t[0])) && t[0] != '_')
      throw error("Syntax error: mismatched input '" + t + "'");
    if (!take("(")) return {kind::name, t};
    std::vector<expression> given = arguments(")");
    if (t == "has") {
      if (given.size() != 1 || given[0].form != kind::member) throw error("invalid argument to has() macro");
      given[0].form = kind::has;
      return given[0];
    }
    if (t != "size" || given.size() != 1)
      throw error("undeclared reference to '" + t + "' (in container '')");
    return {kind::call, t, {}, given};
  }
  expression postfix(expression e) {
    for (;;) {
      if (take("[")) {
        e = {kind::index, "", {}, {e, conditional()}};
        expect("]");
      } else if (take(".")) {
        std::string const name = next();
        if (!take("(")) {
          e = {kind::member, name, {}, {e}};
          continue;
        }
        std::vector<expression> given = arguments(")");
        bool const loop = name == "all" || name == "exists";
        static std::map<std::string, std::size_t> const methods{
            {"all", 2},        {"exists", 2},   {"size", 0},   {"contains", 1},
            {"startsWith", 1}, {"endsWith", 1}, {"matches", 1}};
        auto const known = methods.find(name);
        if (known == methods.end() || known->second != given.size() || (loop && given[0].form != kind::name))
          throw error("found no matching overload for '" + name + "'");
        if (loop)
          e = {kind::loop, name, {}, {e, given[1]}, given[0].name};
        else
          given.insert(given.begin(), e), e = {kind::method, name, {}, given};
      } else {
        return e;
      }
    }
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
};

using variables = std::map<std::string, json const*>;

json value_of(expression const& e, variables const& in);

bool truth_of(expression const& e, variables const& in) {
  json const v = value_of(e, in);
  if (!v.is_boolean()) throw error("no such overload");
  return v;
}

// `ends`: what one side has to be for the other not to matter, even if it fails.
bool either(expression const& a, expression const& b, bool ends, variables const& in) {
  try {
    if (truth_of(a, in) == ends) return ends;
  } catch (error const&) {
    if (truth_of(b, in) == ends) return ends;
    throw;
  }
  return truth_of(b, in);
}

json operation(expression const& e, variables const& in) {
  if (e.name == "&&" || e.name == "||") return either(e.parts[0], e.parts[1], e.name == "||", in);
  if (e.name == "?:") return value_of(e.parts[truth_of(e.parts[0], in) ? 1 : 2], in);
  if (e.name == "!") return !truth_of(e.parts[0], in);
  json const a = value_of(e.parts[0], in);
  auto const whole = [](json const& v) {
    if (!v.is_number_integer()) throw error("no such overload");
    return v.get<std::int64_t>();
  };
  if (e.parts.size() == 1) return -whole(a);
  json const b = value_of(e.parts[1], in);
  if (e.name == "==") return a == b;
  if (e.name == "!=") return a != b;
  if (e.name == "in")
    return b.is_object() ? b.contains(a.get<std::string>()) : std::ranges::find(b, a) != b.end();
  if (e.name == "+" && a.is_string() && b.is_string()) return a.get<std::string>() + b.get<std::string>();
  if (e.name[0] == '<' || e.name[0] == '>') {
    if (a.type() != b.type() && !(a.is_number() && b.is_number())) throw error("no such overload");
    return e.name == "<" ? a < b : e.name == "<=" ? a <= b : e.name == ">" ? a > b : a >= b;
  }
  std::int64_t const x = whole(a), y = whole(b);
  if ((e.name == "/" || e.name == "%") && y == 0) throw error("division by zero");
  return e.name == "+"   ? x + y
         : e.name == "-" ? x - y
         : e.name == "*" ? x * y
         : e.name == "/" ? x / y
                         : x % y;
}

json size_of(json const& v) {
  if (v.is_string()) {
    auto const& text = v.get_ref<std::string const&>();
    return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  }
  if (!v.is_structured()) throw error("no such overload");
  return v.size();
}

json method(expression const& e, variables const& in) {
  json const target = value_of(e.parts[0], in);
  if (e.name == "size") return size_of(target);
  json const given = value_of(e.parts[1], in);
  if (!target.is_string() || !given.is_string()) throw error("no such overload");
  std::string const text = target, what = given;
  return e.name == "contains"     ? text.find(what) != text.npos
         : e.name == "startsWith" ? text.starts_with(what)
         : e.name == "endsWith"   ? text.ends_with(what)
                                  : std::regex_search(text, std::regex(what));
}

json loop(expression const& e, variables const& in) {
  json const over = value_of(e.parts[0], in);
  bool const ends = e.name == "exists";
  std::optional<error> failed;
  for (auto const& [key, value] : over.items()) {
    json const it = over.is_object() ? json(key) : value;
    variables inside = in;
    inside[e.variable] = &it;
    try {
      if (truth_of(e.parts[1], inside) == ends) return ends;
    } catch (error const& why) {
      failed = why;
    }
  }
  if (failed) throw *failed;
  return !ends;
}

json value_of(expression const& e, variables const& in) {
  switch (e.form) {
    case kind::literal:
      return e.value;
    case kind::list: {
      json all = json::array();
      for (expression const& part : e.parts) all.push_back(value_of(part, in));
      return all;
    }
    case kind::name:
      return *in.at(e.name);
    case kind::member:
    case kind::has: {
      json const target = value_of(e.parts[0], in);
      bool const there = target.is_object() && target.contains(e.name);
      if (e.form == kind::has) return there;
      if (!there) throw error("no such key: " + e.name);
      return target[e.name];
    }
    case kind::index: {
      json const target = value_of(e.parts[0], in), at = value_of(e.parts[1], in);
      if (target.is_object() && at.is_string() && target.contains(at.get<std::string>()))
        return target[at.get<std::string>()];
      if (target.is_array() && at.is_number_integer() && at.get<std::int64_t>() >= 0 &&
          at.get<std::size_t>() < target.size())
        return target[at.get<std::size_t>()];
      throw error(target.is_array() ? "index out of bounds: " + at.dump() : "no such key: " + at.dump());
    }
    case kind::call:
      return size_of(value_of(e.parts[0], in));
    case kind::method:
      return method(e, in);
    case kind::loop:
      return loop(e, in);
    case kind::operation:
      return operation(e, in);
  }
  return nullptr;
}

using schemas = std::map<std::string, json const*>;

// The schema of what an expression yields; null: it is none of the object's fields.
json const* schema_of(expression const& e, schemas const& in) {
  static json const text{{"type", "string"}, {"maxLength", 253}}, any = json::object();
  static json const metadata{{"type", "object"}, {"properties", {{"name", text}, {"generateName", text}}}};
  if (e.form == kind::name) {
    auto const it = in.find(e.name);
    if (it == in.end()) throw error("undeclared reference to '" + e.name + "' (in container '')");
    return it->second;
  }
  std::vector<json const*> parts;
  schemas inside = in;
  for (std::size_t i = 0; i < e.parts.size(); ++i) {
    if (e.form == kind::loop && i == 1) {
      json const* const over = parts[0];
      inside[e.variable] = over && over->contains("items") ? &over->at("items") : over ? &text : &any;
    }
    parts.push_back(schema_of(e.parts[i], inside));
  }
  if (e.form == kind::index && parts[0])
    for (char const* each : {"items", "additionalProperties"})
      if (parts[0]->contains(each)) return &parts[0]->at(each);
  if (e.form != kind::member && e.form != kind::has) return nullptr;
  if (!parts[0]) throw error("type does not support field selection");
  if (parts[0]->contains("additionalProperties")) return &parts[0]->at("additionalProperties");
  auto const members = parts[0]->find("properties");
  if (members == parts[0]->end() || !members->contains(e.name))
    throw error("undefined field '" + e.name + "'");
  json const& member = members->at(e.name);
  // Of an object's metadata, two members are for rules to see.
  return e.name == "metadata" && !member.contains("properties") ? &metadata : &member;
}

/// How many items a list has at most, or members an object.
double count(json const& schema) {
  if (schema.value("type", "") == "array") return schema.value("maxItems", request_bytes);
  return longest(schema);
}

double cost_of(expression const& e, schemas const& in) {
  schemas inside = in;
  double sum = e.form == kind::literal ? 0 : 1, inner = 0;
  auto const length = [&](expression const& part) {
    if (part.form == kind::literal)
      return part.value.is_string() ? double(part.value.get<std::string>().size()) : 1;
    json const* const s = schema_of(part, inside);
    return s ? longest(*s) : 1;
  };
  if (e.form == kind::loop) {
    json const* const over = schema_of(e.parts[0], in);
    static json const text{{"type", "string"}, {"maxLength", 253}};
    inside[e.variable] = over && over->contains("items") ? &over->at("items") : &text;
    inner = cost_of(e.parts[1], inside) + 4;
    return sum + cost_of(e.parts[0], in) + inner * (over ? count(*over) : 1);
  }
  for (expression const& part : e.parts) sum += cost_of(part, in);
  if (e.form == kind::operation && (e.name == "==" || e.name == "!="))
    sum += 0.1 * std::min(length(e.parts[0]), length(e.parts[1]));
  if (e.form == kind::operation && e.name == "in") {
    json const* const list = schema_of(e.parts[1], inside);
    sum += list ? count(*list) : length(e.parts[1]);
  }
  if (e.form == kind::method && e.name != "size")
    sum += 0.1 * length(e.parts[0]) * (e.name == "matches" ? 0.25 * length(e.parts[1]) + 1 : 1);
  return sum;
}

}  // namespace

expression parse(std::string const& rule) { return parser(rule).whole(); }

bool holds(expression const& rule, json const& self, json const* old_self) {
  static json const none;
  return truth_of(rule, {{"self", &self}, {"oldSelf", old_self ? old_self : &none}});
}

bool uses_old_self(expression const& rule) {
  return (rule.form == kind::name && rule.name == "oldSelf") ||
         std::ranges::any_of(rule.parts, uses_old_self);
}

void check(expression const& rule, json const& schema) {
  schema_of(rule, {{"self", &schema}, {"oldSelf", &schema}});
}

double cost(expression const& rule, json const& schema) {
  return cost_of(rule, {{"self", &schema}, {"oldSelf", &schema}});
}

double longest(json const& schema) {
  std::string const type = schema.value("type", "");
  auto const bound = [&](char const* name) { return schema.value(name, request_bytes); };
  if (type == "string") {
    if (schema.contains("enum")) {
      std::size_t most = 0;
      for (json const& one : schema["enum"]) most = std::max(most, one.get<std::string>().size());
      return double(most);
    }
    return bound("maxLength") * 4;  // bytes of a character
  }
  if (type == "array") {
    double const each = schema.contains("items") && schema["items"].value("type", "") == "string"
                            ? longest(schema["items"])
                            : 1;
    return bound("maxItems") * each;
  }
  if (schema.contains("additionalProperties")) return bound("maxProperties");
  return schema.value("x-kubernetes-int-or-string", false) ? request_bytes : 1;
}

}  // namespace edl::testing::kubernetes::cel
