// SPDX-License-Identifier: Apache-2.0
#include "submit/job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

bool is_object_of_api(json const& document) {
  return document.is_object() && document.contains("apiVersion") && document.contains("kind");
}

/// A value of a job's file as it would stand on the command line. Maps and lists are joined as the flag's own
/// text is: {cpu: 1, memory: 1Gi} is "cpu=1,memory=1Gi".
std::string flag_text(std::string const& where, json const& v, bool in_list = false) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_null()) return "";
  if (v.is_primitive()) return v.dump();
  std::string joined;
  for (auto const& [key, element] : v.items()) {
    if (element.is_array() || (element.is_object() && (in_list || v.is_object())))
      throw usage_error(fmt::format("{}: nested too deeply", where));
    if (!joined.empty()) joined += v.is_array() && where.ends_with(": volume") ? ";" : ",";
    joined += (v.is_array() ? "" : key + "=") + flag_text(where, element, v.is_array());
  }
  return joined;
}

/// The flags of a job's file that the command line does not give, as words. `text`: the file's.
words of_file(std::vector<flag> const& known, std::string const& text, command_line const& given,
              reason_of_flag const& why_unknown = {}) {
  std::string const origin = "--file=" + given.text("file");
  json const content = from_yaml(text, origin, numbers::as_written), typed = from_yaml(text, origin);
  if (!content.is_object())
    throw usage_error(
        fmt::format("{}: expected lines of `name: value`, names as the flags' without dashes", origin));
  words all;
  for (auto const& [name, value] : content.items()) {
    bool const whole = name == "cluster_spec_json" && value.is_object();
    bool const several = value.is_array() && std::ranges::any_of(known, [&name = name](flag const& f) {
                           return f.repeats && (f.name == name || std::ranges::count(f.aliases, name) > 0);
                         });
    words one;
    for (json const& v : several ? value : json::array({value}))
      one.push_back("--" + name + "=" + (whole ? typed[name].dump() : flag_text(origin + ": " + name, v)));
    if (one.empty()) continue;
    try {
      command_line const read(given.command(), known, one, 0, 0, {}, why_unknown);
      for (auto const& [own, text_of_it] : read.in_order()) {
        if (own == "file") throw usage_error("--file: a file names no other file");
        if (!given.given(own)) all.push_back("--" + own + "=" + text_of_it);
      }
    } catch (usage_error const& bad) {
      throw usage_error(fmt::format("{}: {}", origin, bad.what()));
    }
  }
  return all;
}

}  // namespace

std::optional<std::vector<json>> objects_in(std::string const& text, std::string const& origin) {
  auto all = from_yaml_documents(text, origin);
  if (std::ranges::none_of(all, is_object_of_api)) return std::nullopt;
  for (json const& one : all)
    if (!is_object_of_api(one))
      throw usage_error(
          fmt::format("{}: a document has no apiVersion and kind, which the others have", origin));
  return all;
}

words beside_file(command_line const& given) {
  words line;
  for (auto const& [name, value] : given.in_order())
    if (name != "file" && name != "output_file") line.push_back("--" + name + "=" + value);
  return line;
}

command_line read_with_file(std::string const& command, std::vector<flag> const& known, words line,
                            reason_of_flag const& why_unknown) {
  command_line given(command, known, line, 0, 0, {}, why_unknown);
  if (!given.given("file")) return given;
  words const more = of_file(known, read_small_file("--file", given.text("file")), given, why_unknown);
  line.insert(line.end(), more.begin(), more.end());
  return command_line(command, known, line);
}

words with_flags_of(std::string const& command, std::vector<flag> const& known, words const& line,
                    std::string const& text) {
  command_line const given(command, known, line);
  words all;
  for (auto const& [name, value] : given.in_order())
    if (name != "file") all.push_back("--" + name + "=" + value);
  words const more = of_file(known, text, given);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace edl::tool
