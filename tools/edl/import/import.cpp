// SPDX-License-Identifier: Apache-2.0
#include "import/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "import/lifting.hpp"
#include "import/network_file.hpp"
#include "import/writing.hpp"

namespace edl::tool {
namespace {

namespace fs = std::filesystem;

/// The file's name as one of C++.
std::string struct_name(fs::path const& file) {
  std::string const stem = file.stem().native();
  std::string name;
  for (char const c : stem)
    name +=
        std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
  bool const fits =
      !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && !lifting::is_taken(name);
  return fits ? name : "model_" + name;
}

void refuse_unknown(std::map<std::string, std::int64_t> const& given, onnx_file::network const& graph) {
  std::set<std::string> unknown;
  for (auto const& p : graph.inputs)
    for (std::size_t i = 1; i < p.dims.size(); ++i)
      if (p.dims[i] < 1) unknown.insert(printable(p.extent(i), 100));
  for (auto const& [name, number] : given)
    if (!unknown.contains(name))
      throw usage_error(fmt::format(
          "--extent={}={}: no input has such an extent without a number; {}", name, number,
          unknown.empty() ? "all are known" : fmt::format("these have none: {}", fmt::join(unknown, ", "))));
}

}  // namespace

std::vector<flag> import_flags() {
  return {
      {.name = "to", .fallback = ".", .help = "directory of the files that are written"},
      {.name = "extent",
       .help =
           "an extent that the file does not know, by its name or by input and axis: --extent=sequence=128, "
           "--extent=input.1=512",
       .repeats = true},
      {.name = "force",
       .fallback = "false",
       .help = "replace the files of an earlier import",
       .type = flag::value_type::truth}};
}

int import_model(words const& line) {
  command_line const l("import", import_flags(), line, 1, 1, "a file of ONNX");
  std::string const path = l.arguments().front();
  std::map<std::string, std::int64_t> extents;
  for (std::string const& given : l.all("extent")) {
    auto const is = given.rfind('=');
    auto const n = is == given.npos ? std::nullopt : number_from<std::int64_t>(given.substr(is + 1));
    if (!n || *n < 1) throw usage_error(fmt::format("--extent={}: expected NAME=NUMBER", given));
    if (!extents.emplace(given.substr(0, is), *n).second)
      throw usage_error(fmt::format("--extent={}: this extent is given twice", given));
  }
  if (!fs::is_regular_file(path)) throw usage_error(fmt::format("no file {}", path));
  std::string const name = struct_name(path);
  fs::path const to = l.text("to");
  if (bucket::names_objects(to.native()))
    throw usage_error(fmt::format("--to={}: a compiler reads the source: name a directory", l.text("to")));
  std::string const source = (to / (name + ".cpp")).native(),
                    weights = (to / (name + ".safetensors")).native();
  for (std::string const& file : {source, weights})
    if (fs::exists(file) && !l.truth("force"))
      throw usage_error(fmt::format("{} is there already: give --force, or another directory by --to", file));
  auto const graph = onnx_file::read_network(path);
  refuse_unknown(extents, graph);
  auto const net = lifting::lift(graph, extents);
  auto const made = lifting::write_program(net, name, fs::path(path).filename().native());
  fs::create_directories(to);
  std::vector<checkpoint::tensor_source> tensors;
  for (auto const& [variable, of] : made.variables)
    tensors.push_back({.name = variable,
                       .dims = {of->dims.begin(), of->dims.end()},
                       .data = std::as_bytes(std::span(of->values))});
  durable_file file(weights);
  checkpoint::write_safetensors(file, tensors);
  file.commit();
  replace_file(source, made.text);
  fmt::print("{}\n{}\n", source, weights);
  for (std::string const& p : net.problems) say("not imported: " + p);
  return net.problems.empty() ? done : failed;
}

}  // namespace edl::tool
