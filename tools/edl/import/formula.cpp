// SPDX-License-Identifier: Apache-2.0
#include "import/formula.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace edl::tool::lifting {

int term_list::add(term t) {
  all_.push_back(std::move(t));
  return int(all_.size()) - 1;
}

int term_list::leaf(int result, shape whole, int over) {
  return add({.op = "result", .over = over, .whole = whole, .result = result});
}

shape term_list::shape_of(int index) const {
  term const& t = (*this)[index];
  bool const down = (t.over & places) != 0;
  return {down ? t.whole.height : 1, down ? t.whole.width : 1,
          (t.over & channels) != 0 ? t.whole.channels : 1};
}

namespace {

std::string number_text(double x) {
  if (std::isnan(x)) throw unsupported{"a constant that is not a number"};
  if (std::isinf(x)) return x > 0 ? "1e30" : "-1e30";
  return x == std::floor(x) && std::abs(x) < 1e6 ? fmt::format("{}", std::int64_t(x))
                                                 : fmt::format("{}", float(x));
}

std::string axes_text(int over) {
  return over == both       ? "nn::channels | nn::places"
         : over == channels ? "nn::channels"
         : over == places   ? "nn::places"
                            : "{}";
}

/// Writes one formula.
class formula_writer {
 public:
  formula_writer(term_list const& terms, std::map<int, int> const& leaves) : terms_(terms), leaves_(leaves) {}

  formula write(int root, std::vector<std::string>& all) {
    count(root);
    if (result_.from.size() == 1) names_[result_.from[0]] = "x";
    std::string const value = text(root, 0);
    std::string body;
    bool whole = true;
    std::vector<std::string> arguments, axes;
    for (int const r : result_.from) {
      arguments.push_back("auto " + names_.at(r));
      axes.push_back(axes_text(over_.at(r)));
      whole = whole && over_.at(r) == both;
    }
    if (!whole)
      body += fmt::format("  static constexpr nn::axes inputs[] = {{{}}};\n\n", fmt::join(axes, ", "));
    body += fmt::format("  constexpr auto forward({}, auto&{}) const {{\n", fmt::join(arguments, ", "),
                        result_.variables.empty() ? "" : " layer");
    for (std::string const& line : lines_) body += "    " + line + "\n";
    body += fmt::format("    return {};\n  }}\n}};\n", value);
    auto const same =
        std::ranges::find_if(all, [&](std::string const& s) { return s.ends_with("{\n" + body); });
    std::size_t const number = std::size_t(same - all.begin());
    result_.name = number == 0 ? "formula" : "formula_" + letters(int(number));
    if (same == all.end()) all.push_back(fmt::format("struct {} {{\n{}", result_.name, body));
    return result_;
  }

 private:
  void count(int k) {
    if (++uses_[k] > 1) return;
    term const& t = terms_[k];
    if (auto const leaf = leaves_.find(k); leaf != leaves_.end()) {
      if (names_.contains(leaf->second)) return;
      names_[leaf->second] = std::string(1, char('a' + std::min<std::size_t>(result_.from.size(), 20)));
      over_[leaf->second] = t.over;
      result_.from.push_back(leaf->second);
      return;
    }
    for (int const a : t.args) count(a);
  }

  /// A term as an operand of an operator that binds `within` tightly.
  std::string text(int k, int within) {
    if (auto const leaf = leaves_.find(k); leaf != leaves_.end()) return names_.at(leaf->second);
    term const& t = terms_[k];
    if (t.op == "number") return number_text(t.number);
    if (auto const known = named_.find(k); known != named_.end()) return known->second;
    if (t.op == "variable") return named_[k] = variable_of(t);
    auto [made, tight] = call(t);
    if (uses_[k] > 1) {
      std::string const name = fmt::format("t{}", named_.size());
      lines_.push_back(fmt::format("auto const {} = {};", name, made));
      return named_[k] = name;
    }
    return tight < within ? "(" + made + ")" : made;
  }

  std::pair<std::string, int> call(term const& t) {
    constexpr int sum = 2, comparison = 1, factor = 3, all = 5;
    auto const infix = [&](int tight, bool loose_right) {
      std::string const left = text(t.args[0], tight);
      return std::pair(fmt::format("{} {} {}", left, t.op, text(t.args[1], tight + !loose_right)), tight);
    };
    if (t.op == "+" || t.op == "*") return infix(t.op == "+" ? sum : factor, true);
    if (t.op == "-" || t.op == "/") return infix(t.op == "-" ? sum : factor, false);
    if (t.op == "<" || t.op == "<=") return infix(comparison, false);
    if (t.op == "scores" || t.op == "rotated") throw unsupported{"attention with other arithmetic"};
    if (t.op == "neg") return {"-" + text(t.args[0], 4), 4};
    std::vector<std::string> args;
    for (int const a : t.args) args.push_back(text(a, 0));
    if (t.along != nowhere) args.push_back(axes_text(t.along));
    return {fmt::format("nn::{}({})", t.op, fmt::join(args, ", ")), all};
  }

  std::string variable_of(term const& t) {
    if (t.over == both) throw unsupported{"a constant with a number for each place and channel"};
    std::string const name =
        result_.variables.empty() ? "constant" : fmt::format("constant_{}", result_.variables.size());
    std::string axis;
    for (int const r : result_.from)
      if ((over_.at(r) & t.over) == t.over && axis.empty())
        axis = names_.at(r) + (t.over == channels ? ".channels()" : ".places()");
    if (axis.empty()) throw unsupported{"a constant along an axis that no result has"};
    lines_.push_back(
        fmt::format("auto const {0} = layer.variable(\"{0}\", {1}, nn::constant{{1}});", name, axis));
    result_.variables.push_back({name, {std::int64_t(t.values.size())}, t.values});
    return name;
  }

  term_list const& terms_;
  std::map<int, int> const& leaves_;
  std::map<int, int> uses_, over_;            // by term; by result
  std::map<int, std::string> names_, named_;  // of results; of terms
  std::vector<std::string> lines_;
  formula result_;
};

}  // namespace

formula write_formula(term_list const& terms, int root, std::map<int, int> const& leaves,
                      std::vector<std::string>& all) {
  return formula_writer(terms, leaves).write(root, all);
}

std::string letters(int n) {
  std::string s(1, char('a' + n % 26));
  return n < 26 ? s : letters(n / 26 - 1) + s;
}

std::string literal(float x) {
  if (!std::isfinite(x)) throw unsupported{"a constant that is infinite or not a number"};
  std::string s = fmt::format("{}", x);
  if (auto const at = s.find("e-0"); at != s.npos) s.erase(at + 2, 1);
  if (x == std::floor(x) && std::abs(x) < 1e6f) return fmt::format("{}", std::int64_t(x));
  return s + "f";
}

}  // namespace edl::tool::lifting
