// SPDX-License-Identifier: Apache-2.0
#include "import/writing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "edl/core/printable.hpp"
#include "import/formula.hpp"

namespace edl::tool::lifting {
namespace {

constexpr std::size_t columns = 100;

// What nothing can be called: words of C++, and names that the source has.
constexpr std::string_view taken =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype "
    "default delete do double dynamic_cast edl else enum explicit export extern false float for formula "
    "friend goto "
    "if inline int into long m main mutable namespace new nn noexcept not not_eq nullptr operator or or_eq "
    "private "
    "protected public record register reinterpret_cast requires return short signed sizeof static "
    "static_assert "
    "static_cast std struct switch template this thread_local throw true try typedef typeid typename union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq ";

/// A layer, a container with one chain of items or more, or joined results, which are chains of `|`.
struct item {
  std::string head;  ///< "nn::relu{}", "nn::residual"
  std::string name;  ///< in names of variables
  std::vector<variable> const* variables = nullptr;
  std::vector<std::vector<item>> chains = {};
  int layers = 1;
  bool results = false;  ///< chains are of results
};
using chain = std::vector<item>;

std::string flat(item const& of);
std::string flat(chain const& of, bool results) {
  std::vector<std::string> all;
  for (item const& i : of) all.push_back(flat(i));
  if (results || of.size() == 1) return fmt::format("{}", fmt::join(all, " | "));
  return fmt::format("nn::sequential({})", fmt::join(all, ", "));
}
std::string flat(item const& of) {
  if (of.chains.empty()) return of.head;
  std::vector<std::string> all;
  for (chain const& c : of.chains) all.push_back(flat(c, of.results));
  if (of.name == "repeat") all.resize(1);
  return fmt::format("{}({})", of.head, fmt::join(all, ", "));
}

/// Text whose lines are at most `columns` wide where they can be.
class page {
 public:
  std::string text;

  std::size_t column() const { return text.size() - (text.rfind('\n') + 1); }
  /// Parts after each other. Those that do not fit into the line begin one.
  void put(chain const& parts, std::size_t indent, bool results) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text += results ? " | " : ", ";
      put(parts[i], indent);
    }
  }

 private:
  void begin_line(std::size_t indent) {
    while (text.ends_with(' ')) text.pop_back();
    text += "\n" + std::string(indent, ' ');
  }
  bool fits(std::string const& more) const { return column() + more.size() + 3 <= columns; }

  void put(item const& one, std::size_t indent) {
    std::string const whole = flat(one);
    if (!fits(whole) && column() > indent) begin_line(indent);
    if (one.chains.empty() || fits(whole)) {
      text += whole;
      return;
    }
    text += one.head + "(";
    std::size_t const number = one.name == "repeat" ? 1 : one.chains.size();
    for (std::size_t i = 0; i < number; ++i) {
      chain const& c = one.chains[i];
      if (i > 0) text += ", ";
      if (i > 0 && !fits(flat(c, one.results))) begin_line(indent + 4);
      bool const inside = c.size() > 1 && !one.results;
      if (inside) text += "nn::sequential(";
      put(c, indent + 4, one.results);
      if (inside) text += ")";
    }
    text += ")";
  }
};

class writer {
 public:
  explicit writer(network const& of) : net_(of), uses_(of.results.size()) {
    std::vector<bool> seen(of.results.size());
    ++uses_[at(of.output)];
    seen[at(of.output)] = true;
    for (std::size_t r = of.results.size(); r-- > 0;)  // operands come first
      if (seen[r])
        for (int const f : of.results[r].from) ++uses_[at(f)], seen[at(f)] = true;
    std::set<std::string> ports, heads;
    for (std::size_t r = 0; r < of.results.size(); ++r)
      if (of.results[r].what == result::kind::input) {
        inputs_.push_back(int(r));
        ports_[int(r)] = identifier(of.results[r].type, ports);
      }
    for (auto const& [name, size] : of.heads) heads_.push_back(identifier(name, heads));
  }

  program write(std::string const& name, std::string const& origin) {
    std::string const network = body();
    std::string text = fmt::format("// {}: imported from {}.\n", name, printable(origin, 200));
    for (std::string const& p : net_.problems) text += fmt::format("// Not imported: {}\n", p);
    text += "#include <edl/edl.hpp>\n\nnamespace nn = edl::nn;\n\n";
    for (std::string const& f : net_.formulas) text += f + "\n";
    text += fmt::format("struct {} {{\n{}", name, network);
    text +=
        "  // What was the network trained for? Choose its loss, and remove the next line.\n"
        "#error \"edl import: the model needs a loss, and labels in feed\"\n";
    if (net_.ends_in_softmax)
      text += "  // Losses of classes take logits: leave out the nn::softmax{} at the end.\n";
    text += loss();
    text += "  static constexpr edl::adam optimizer{.learning_rate = 1e-3f};\n\n";
    text += fmt::format(
        "  static void feed(edl::example const& record, edl::sample<{}>& into, edl::mode m) {{\n{}  "
        "}}\n}};\n\n",
        name, feed());
    text += fmt::format("int main(int argc, char** argv) {{ return edl::run<{}>(argc, argv); }}\n", name);
    return {std::move(text), std::move(variables_)};
  }

 private:
  static std::size_t at(int r) { return std::size_t(r); }
  result const& of(int r) const { return net_.results[at(r)]; }
  bool is_source(int r) const { return of(r).what == result::kind::input || uses_[at(r)] > 1; }

  static item layer_of(result const& r) {
    return {fmt::format("{}{{{}}}", r.type, fmt::join(r.options, ", ")), r.name.empty() ? r.type : r.name,
            &r.variables};
  }

  /// The items that make `r` of the result `source`.
  struct path {
    int source;
    chain items;
  };
  path reduce(int r) const {
    std::vector<item> backwards;
    int k = r;
    while (true) {
      result const& now = of(k);
      if (now.what == result::kind::input) break;
      int next = -1;
      if (now.what == result::kind::layer) {
        backwards.push_back(layer_of(now));
        next = now.from[0];
        if (is_source(next)) {
          k = next;
          break;
        }
      } else {
        auto shortcut = residual(k);
        if (shortcut.source < 0) break;
        backwards.push_back(std::move(shortcut.items[0]));
        next = shortcut.source;
        if (of(next).what == result::kind::input) {
          k = next;
          break;
        }
      }
      k = next;
    }
    std::ranges::reverse(backwards);
    return {k, repeated(std::move(backwards))};
  }
  /// A sum of a result and a chain of it, or of two chains of it.
  path residual(int r) const {
    if (of(r).type != "+" || sums_.contains(r)) return {-1, {}};
    path made = residual_of(of(r));
    if (made.source < 0) sums_.insert(r);
    return made;
  }
  path residual_of(result const& sum) const {
    path const none{-1, {}};
    path sides[2];
    for (std::size_t i = 0; i < 2; ++i) {
      int const from = sum.from[i];
      sides[i] = is_source(from) ? path{from, {}} : reduce(from);
      if (sides[i].source == from && !is_source(from)) return none;
    }
    if (sides[0].source != sides[1].source || uses_[at(sides[0].source)] != 2) return none;
    if (of(sides[0].source).options.size() == 1 && of(sides[0].source).options[0].starts_with("nn::ids"))
      return none;
    auto& [body, other] = sides;
    if (body.items.empty() || depth(body.items) < depth(other.items)) std::swap(body.items, other.items);
    if (body.items.empty()) return none;
    item i{.head = "nn::residual", .name = "residual", .layers = depth(body.items) + 1};
    i.chains.push_back(std::move(body.items));
    if (!other.items.empty()) i.chains.push_back(std::move(other.items));
    return {body.source, {std::move(i)}};
  }
  static int depth(std::span<item const> c) {
    int all = 0;
    for (item const& i : c) all += i.layers;
    return all;
  }
  /// Blocks that follow each other and are equal become one.
  static chain repeated(chain from) {
    chain to;
    std::vector<std::string> texts;
    for (item const& i : from) texts.push_back(flat(i));
    auto const longest = [&](std::size_t i) {
      std::size_t best = 0, size = 0;
      for (std::size_t n = 1; n <= 16 && i + 2 * n <= from.size(); ++n) {
        std::size_t times = 1;
        while (i + (times + 1) * n <= from.size() &&
               std::equal(texts.begin() + std::ptrdiff_t(i), texts.begin() + std::ptrdiff_t(i + n),
                          texts.begin() + std::ptrdiff_t(i + times * n)))
          ++times;
        if (times > 1 && times * n > best * size && depth(std::span(from).subspan(i, n)) >= 3)
          best = times, size = n;
      }
      return std::pair(best, size);
    };
    for (std::size_t i = 0; i < from.size();) {
      auto [best, size] = longest(i);
      // A block ends with its activation, if it may.
      if (best > 0 && from[i].chains.empty() && from[i].variables->empty())
        if (auto const [later, as_large] = longest(i + 1); later * as_large >= best * size) best = 0;
      if (best == 0) {
        to.push_back(std::move(from[i++]));
        continue;
      }
      item r{.head = fmt::format("nn::repeat<{}>", best), .name = "repeat"};
      for (std::size_t k = 0; k < best; ++k, i += size)
        r.chains.emplace_back(from.begin() + std::ptrdiff_t(i), from.begin() + std::ptrdiff_t(i + size));
      r.layers = depth(r.chains[0]);
      to.push_back(std::move(r));
    }
    return to;
  }

  // ---- Names of variables ----

  using names_taken = std::map<std::string, int>;

  static std::string numbered(names_taken& taken, std::string const& name) {
    int const n = taken[name]++;
    return n == 0 ? name : fmt::format("{}_{}", name, n);
  }
  void name(std::vector<variable> const& all, std::string const& prefix) {
    for (variable const& v : all) variables_.emplace_back(prefix + v.name, &v);
  }
  void name(item const& one, std::string const& prefix) {
    if (one.variables) name(*one.variables, prefix);
    if (one.name == "repeat") {
      names_taken blocks;
      for (chain const& c : one.chains)
        if (c.size() == 1)
          name(c[0], prefix + numbered(blocks, c[0].name) + '/');
        else
          name(c, prefix + numbered(blocks, "sequential") + '/');
      return;
    }
    for (std::size_t i = 0; i < one.chains.size(); ++i) {
      chain const& c = one.chains[i];
      std::string const role = prefix + (i == 0 ? "body/" : "projection/");
      if (c.size() == 1)
        name(c[0], role);
      else
        name(c, role);
    }
  }
  void name(chain const& items, std::string const& prefix) {
    names_taken taken;
    name(items, prefix, taken);
  }
  void name(chain const& items, std::string const& prefix, names_taken& taken) {
    for (item const& i : items) name(i, prefix + numbered(taken, i.name) + '/');
  }

  // ---- The network ----

  std::string body() {
    path whole = reduce(net_.output);
    page p;
    if (inputs_.size() == 1 && whole.source == inputs_[0]) {
      name(whole.items, "");
      whole.items.insert(whole.items.begin(), item{of(inputs_[0]).options[0], ""});
      p.text = "  static constexpr auto network =\n      nn::sequential(";
      p.put(whole.items, 10, false);
      return p.text + ");\n";
    }
    std::vector<std::string> arguments;
    for (int const i : inputs_) {
      std::string own = inputs_.size() == 1 ? "x" : ports_.at(i);
      while (is_taken(own) || !words_.insert(own).second) own += '_';
      names_[i] = own;
      arguments.push_back(uses_[at(i)] > 0 ? "auto " + own : "auto");
    }
    if (inputs_.size() == 1) {
      p.text = fmt::format("  static constexpr auto network = nn::graph({}, []({}) {{\n",
                           of(inputs_[0]).options[0], arguments[0]);
    } else {
      p.text = "  static constexpr auto in = nn::inputs(";
      std::vector<item> all;
      for (int const i : inputs_)
        all.push_back({fmt::format("nn::input<\"{}\">({})", ports_.at(i), of(i).options[0]), ""});
      p.put(all, 6, false);
      p.text += fmt::format(");\n  static constexpr auto network = nn::graph(in, []({}) {{\n",
                            fmt::join(arguments, ", "));
    }
    auto const last = expression(net_.output);
    std::string lines;
    for (auto const& line : lines_) {
      page own;
      own.text = line.begin;
      own.put(line.parts, 8, true);
      lines += own.text + ";\n";
    }
    page own;
    own.text = "    return ";
    own.put(last, 8, true);
    return p.text + lines + own.text + ";\n  });\n";
  }

  /// The parts that are joined by `|`, after the lines of what they need.
  std::vector<item> expression(int r) {
    if (auto const known = names_.find(r); known != names_.end()) return {{known->second, ""}};
    path p = reduce(r);
    std::vector<item> parts;
    result const& from = of(p.source);
    if (p.source != r || from.what == result::kind::layer) {
      if (p.source == r) return parts;  // unreachable: a layer has an operand
      parts = named(p.source);
    } else {  // a joint
      std::vector<chain> operands;
      for (int const f : from.from) operands.push_back(named(f));
      if (!from.name.empty()) {
        std::string const own = numbered(taken_, from.name) + '/';
        name(from.variables, own);
      }
      parts = joint(from, std::move(operands));
    }
    name(p.items, "", taken_);
    parts.insert(parts.end(), p.items.begin(), p.items.end());
    return parts;
  }

  chain joint(result const& r, std::vector<chain> operands) const {
    std::string const head = r.type == "+" ? "nn::sum" : r.type == "*" ? "nn::product" : r.type;
    item all{.head = head, .name = "", .chains = std::move(operands), .results = true};
    for (std::string const& o : r.options)
      all.chains.insert(head == "nn::apply" ? all.chains.begin() : all.chains.end(), chain{{o, ""}});
    return {std::move(all)};
  }

  /// The name of a result that is used several times, or where it stands.
  std::vector<item> named(int r) {
    if (auto const known = names_.find(r); known != names_.end()) return {{known->second, ""}};
    auto parts = expression(r);
    if (uses_[at(r)] < 2) return parts;
    std::string own;
    do {
      own = letters(next_++);
    } while (is_taken(own) || !words_.insert(own).second);
    lines_.push_back({fmt::format("    auto const {} = ", own), std::move(parts)});
    names_[r] = own;
    return {{own, ""}};
  }
  /// The name as one of C++ that is none of `others`, and joins them.
  static std::string identifier(std::string const& name, std::set<std::string>& others) {
    std::string s;
    for (char const c : name) s += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "in_" + s;
    std::string own = s;
    for (int n = 1; !others.insert(own).second; ++n) own = fmt::format("{}_{}", s, n);
    return own;
  }

  // ---- The rest of the struct ----

  std::string loss_of(int size, int places) const {
    return size == 1    ? "nn::mean_squared_error"
           : places > 1 ? "nn::sequence_cross_entropy"
                        : "nn::softmax_cross_entropy";
  }
  std::string loss() const {
    shape const out = of(net_.output).out;
    if (net_.heads.empty())
      return fmt::format("  static constexpr {} loss{{}};\n", loss_of(out.channels, out.height * out.width));
    std::vector<item> all;
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      int const size = net_.heads[i].second;
      all.push_back({fmt::format("nn::head<\"{}\", {}>({}{{}})", heads_[i], size, loss_of(size, 1)), ""});
    }
    page p;
    p.text = "  static constexpr auto loss = nn::heads(";
    p.put(all, 6, false);
    return p.text + ");\n";
  }
  std::string feed() const {
    std::string text;
    for (int const i : inputs_) {
      result const& r = of(i);
      shape const s = r.out;
      std::string const to =
          inputs_.size() == 1 ? "into.features" : fmt::format("into.input<\"{}\">()", ports_.at(i));
      std::string escaped;
      for (char const c : r.type)
        escaped += c == '"' || c == '\\'                         ? std::string{'\\', c}
                   : std::iscntrl(static_cast<unsigned char>(c)) ? fmt::format("\\{:03o}", c)
                                                                 : std::string(1, c);
      if (r.options[0].starts_with("nn::ids")) {
        std::string const own = inputs_.size() == 1 ? "ids" : names_.at(i);
        text += fmt::format("    auto const {} = record.integer_values(\"{}\");\n", own, escaped);
        text += fmt::format("    for (std::size_t i = 0; i < {}; ++i) {}(i) = float({}[i]);\n", s.size(), to,
                            own);
      } else if (r.options[0].starts_with("nn::features")) {
        text += fmt::format("    {} = record.floats(\"{}\", {{{}}});\n", to, escaped, s.channels);
      } else {
        text += fmt::format("    {} = record.floats(\"{}\", {{{}, {}, {}}});\n", to, escaped, s.height,
                            s.width, s.channels);
      }
    }
    shape const out = of(net_.output).out;
    if (!net_.heads.empty()) {
      text += "    if (m == edl::mode::prediction) return;\n";
      for (std::string const& name : heads_)
        text += fmt::format("    into.head<\"{0}\">() = record.floating(\"{0}\");\n", name);
      return text;
    }
    if (out.channels == 1 && out.size() == 1)
      return text + "    if (m != edl::mode::prediction) into.label = record.floating(\"label\");\n";
    if (out.height * out.width == 1)
      return text + "    if (m != edl::mode::prediction) into.label = record.integer(\"label\");\n";
    return text + fmt::format(
                      "    if (m == edl::mode::prediction) return;\n"
                      "    auto const labels = record.integer_values(\"labels\");\n"
                      "    for (std::size_t i = 0; i < {}; ++i) into.label[i] = {}(labels[i]);\n",
                      out.height * out.width, out.channels == 1 ? "float" : "int");
  }

  struct line {
    std::string begin;
    std::vector<item> parts;
  };
  network const& net_;
  std::vector<int> uses_, inputs_;
  std::map<int, std::string> ports_;  // of inputs
  std::vector<std::string> heads_;
  mutable std::set<int> sums_;  // that are known to be no residuals
  std::vector<std::pair<std::string, variable const*>> variables_;
  names_taken taken_;
  std::map<int, std::string> names_;
  std::set<std::string> words_{"in", "network"};
  std::vector<line> lines_;
  int next_ = 0;
};

}  // namespace

bool is_taken(std::string const& name) { return taken.find(" " + name + " ") != taken.npos; }

program write_program(network const& of, std::string const& name, std::string const& origin) {
  return writer(of).write(name, origin);
}

}  // namespace edl::tool::lifting
