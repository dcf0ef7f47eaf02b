// SPDX-License-Identifier: Apache-2.0
#include "zoo/zoo.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

#include "common/columns.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/compute/features/pieces.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/config/flags.hpp"
#include "zoo/engine.hpp"
#include "zoo/table_model.hpp"
#include "zoo/template.hpp"

namespace edl::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view signature = "# Unchanged since it was made: ";

std::string read(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw error(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  return std::move(text).str();
}

void write(fs::path const& path, std::string const& text) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (!out) throw error(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

std::string digest(std::string_view text) {  // FNV-1a: tells an edited file, proves nothing
  std::uint64_t h = 14695981039346656037u;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
  return fmt::format("{:016x}", h);
}

std::string signed_text(std::string text) { return text + std::string(signature) + digest(text) + "\n"; }

bool as_it_was_made(std::string const& text) {
  auto const at = text.rfind(signature);
  return at != std::string::npos && signed_text(text.substr(0, at)) == text;
}

std::string filled(std::string text, std::vector<std::pair<std::string, std::string>> const& values) {
  for (auto const& [name, value] : values) {
    std::string const mark = "{{" + name + "}}";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  }
  return text;
}

/// What stands in a Dockerfile as it is.
void check_word(std::string const& name, std::string const& text) {
  if (text.empty() || text.front() == '-' || text.find_first_of(" \t\r\n\"'\\$") != std::string::npos)
    throw usage_error(
        fmt::format("--{}={}: expected a name without blanks, quotes, backslashes and dollars", name, text));
}

/// `path` as seen from `here`; the engine sees nothing that lies elsewhere.
std::string inside(std::string const& name, std::string const& path, fs::path const& here) {
  check_word(name, path);
  if (bucket::names_objects(path))
    throw usage_error(fmt::format("--{}={}: an image is built of files: name a folder", name, path));
  fs::path const whole = fs::weakly_canonical(here / path), base = fs::canonical(here);
  fs::path const relative = whole.lexically_relative(base);
  if (relative.empty() || *relative.begin() == "..")
    throw usage_error(
        fmt::format("--{}={}: lies outside of {}, so that the container engine cannot see it: call `edl zoo "
                    "init` in a folder above it",
                    name, path, base.string()));
  return relative.string();
}

struct made_file {
  fs::path path;  ///< from `here`
  std::string content;
  bool ours = false;  ///< an earlier call's file, which nobody has changed, gives way
};

/// The folder of a model's file; empty for what every zoo has.
std::string folder_of(template_file const& t) {
  auto const slash = t.path.find('/');
  return std::string(t.path.substr(0, slash == t.path.npos ? 0 : slash));
}

std::set<std::string> model_folders() {
  std::set<std::string> all;
  for (template_file const& t : zoo_template())
    if (std::string name = folder_of(t); !name.empty()) all.insert(std::move(name));
  return all;
}

/// The folder and the name of the program in a row of the README's table; empty for any other line.
std::pair<std::string, std::string> model_in(std::string_view row) {
  auto const slash = row.find('/'), end = row.find(".cpp`");
  if (!row.starts_with("| `") || slash == row.npos || end == row.npos || end < slash) return {};
  return {std::string(row.substr(3, slash - 3)), std::string(row.substr(slash + 1, end - slash - 1))};
}

/// Drawn records of a folder's models, or where a user has his own.
std::pair<char const*, char const*> data_of(std::string const& folder) {
  if (folder == "mnist") return {"synthetic:train", "synthetic:test"};
  if (folder == "cifar10") return {"synthetic:pictures", "synthetic:pictures-test"};
  if (folder == "criteo") return {"synthetic:clicks", "synthetic:clicks-test"};
  return {"data/train", "data/test"};
}

/// The README of a zoo with these models: its table has no others, and its commands are of the first one.
std::string readme_of(std::string const& text, std::function<bool(std::string const&)> const& wanted,
                      std::optional<table_model> const& table) {
  std::string all, folder, program;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (table && folder.empty() && line.starts_with("| `")) {
      folder = "table", program = table->name;
      all += fmt::format("| `table/{0}.cpp` | `{0}` | a column of a table |\n", program);
    }
    auto const [of, name] = model_in(line);
    if (!of.empty() && !wanted(of)) continue;
    if (folder.empty()) folder = of, program = name;
    all += line + "\n";
  }
  auto const [train, test] = data_of(folder);
  return filled(all, {{"folder", folder},
                      {"program", program},
                      {"training_data", train},
                      {"validation_data", test},
                      {"about_data", std::string_view(train).starts_with("synthetic:")
                                         ? fmt::format("`{}` are drawn records, which need no file.", train)
                                         : "Put records of your own in the place of `data/train` and "
                                           "`data/test`."}});
}

std::vector<made_file> zoo_files(command_line const& flags, fs::path const& here,
                                 std::optional<table_model> const& table, std::ostream& out) {
  std::string const zoo = inside("model_zoo", flags.text("model_zoo"), here);
  check_word("base_image", flags.text("base_image"));
  std::vector<made_file> files;
  std::string cluster_spec, local_package, seen = zoo == "." ? "" : fmt::format("*\n!{}\n", zoo);
  seen += "**/build\n**/.git\n";

  if (std::string const path = flags.text("cluster_spec"); !path.empty()) {
    check_word("cluster_spec", path);
    if (!fs::is_regular_file(here / path))
      throw usage_error(fmt::format("--cluster_spec={}: no such file", path));
    std::string const name = fs::path(path).filename().string();
    if (!fs::equivalent((here / path).parent_path(), here)) files.push_back({name, read(here / path)});
    cluster_spec = fmt::format("COPY {} /cluster_spec/\n", name);
    seen += fmt::format("!{}\n", name);
  }
  if (std::string const path = flags.text("local_pkg_dir"); !path.empty()) {
    static constexpr std::array<char const*, 4> places{"lib", "lib64", "lib/x86_64-linux-gnu",
                                                       "lib/aarch64-linux-gnu"};
    bool const installed = std::ranges::any_of(places, [&](char const* lib) {
      return fs::exists(here / path / lib / "cmake/edl/edl-config.cmake");
    });
    if (installed) {
      std::string const folder = inside("local_pkg_dir", path, here);
      local_package = fmt::format("COPY {} /usr/local/\n", folder);
      seen += fmt::format("!{}\n", folder);
    } else {
      fmt::print(out,
                 "note: --local_pkg_dir={}: no edl is installed there (cmake --install BUILD {}): the one "
                 "in {} is used\n",
                 path, shell_line({"--prefix=" + path}), flags.text("base_image"));
    }
  }
  if (flags.given("extra_pypi_index"))
    fmt::print(out,
               "note: --extra_pypi_index: a zoo needs no Python package; a Debian mirror is docker build "
               "--build-arg APT_MIRROR=URL, where the development image is built\n");

  std::vector<std::pair<std::string, std::string>> const values{{"zoo", zoo},
                                                                {"base_image", flags.text("base_image")},
                                                                {"cluster_spec", cluster_spec},
                                                                {"local_package", local_package}};
  bool const of_table = table.has_value();
  std::string const wanted = of_table && !flags.given("models") ? "" : flags.text("models");
  std::vector<std::string> models;
  for (std::string_view const name : features::pieces(wanted)) models.emplace_back(name);
  for (std::string const& name : models)
    if (name != "all" && !model_folders().contains(name))
      throw usage_error(fmt::format("--models={}: unknown model '{}'; expected {}, all", wanted, name,
                                    fmt::join(model_folders(), ", ")));
  bool const has_one = fs::exists(here / zoo / "CMakeLists.txt");
  if (has_one) fmt::print(out, "kept    {}: it has a zoo\n", zoo);
  auto const is_wanted = [&](std::string const& folder) {
    return std::ranges::find(models, folder) != models.end() ||
           std::ranges::find(models, "all") != models.end();
  };
  for (template_file const& t : zoo_template()) {
    if (std::string const folder = folder_of(t); !folder.empty() && !is_wanted(folder)) continue;
    std::string text = filled(std::string(t.content), values);
    if (t.path == "README.md") text = readme_of(text, is_wanted, table);
    if (t.path == "Dockerfile")
      files.push_back({"Dockerfile", signed_text(std::move(text)), true});
    else if (!has_one)
      files.push_back({(fs::path(zoo) / t.path).lexically_normal(), std::move(text)});
  }
  if (table) {
    fs::path const folder = fs::path(zoo) / "table";
    files.push_back({(folder / (table->name + ".cpp")).lexically_normal(), table->source});
    files.push_back({(folder / (table->name + "_test.sh")).lexically_normal(), table->test});
  }
  files.push_back({".dockerignore", signed_text(seen), true});
  return files;
}

int init(words const& line, fs::path const& here, std::ostream& out) {
  command_line const flags("zoo init", zoo_flags("init"), line);
  bool const force = flags.truth("force");
  std::vector<std::string> kept;
  std::optional<table_model> table;
  if (std::string const from = flags.text("from"); !from.empty()) {
    if (flags.text("label").empty())
      throw usage_error("--from needs --label: name the column that the model is to learn");
    table = model_of_table(bucket::names_objects(from) ? from : (here / from).lexically_normal().string(),
                           flags.text("label"), flags.text("missing"));
    for (std::string const& note : table->notes) fmt::print(out, "note: {}\n", note);
  } else if (!flags.text("label").empty()) {
    throw usage_error("--label needs --from: name the table that has the column");
  }
  std::string other;  // zoo, which the Dockerfile was of
  for (made_file const& f : zoo_files(flags, here, table, out)) {
    fs::path const path = here / f.path;
    bool const there = fs::exists(fs::symlink_status(path));
    std::string const now = there && fs::is_regular_file(path) ? read(path) : "";
    if (f.path == ".dockerignore" && as_it_was_made(now)) {
      std::istringstream lines(now);
      for (std::string one; std::getline(lines, one);)
        if (one.starts_with('!') && fs::exists(here / one.substr(1) / "CMakeLists.txt") &&
            f.content.find(one + "\n") == f.content.npos)
          other = one.substr(1);
    }
    if (there && now == f.content) {
      fmt::print(out, "kept    {}: nothing has changed\n", f.path.string());
    } else if (there && !force && !(f.ours && as_it_was_made(now))) {
      fmt::print(out, "kept    {}: it exists, and differs; --force overwrites it\n", f.path.string());
      kept.push_back(f.path.string());
    } else {
      write(path, f.content);
      fmt::print(out, "{} {}\n", there ? "rewrote" : "made   ", f.path.string());
    }
  }
  // The flags stand in the Dockerfile alone: without it they would be forgotten in silence.
  if (std::ranges::find(kept, "Dockerfile") != kept.end())
    throw error(
        "Dockerfile: it is not as `init` wrote it, and does not have the requested lines: --force "
        "overwrites it");
  if (!other.empty())
    fmt::print(
        out,
        "note: Dockerfile and .dockerignore were of the zoo in {0}, and are of the one in {1} now: `edl zoo "
        "init --model_zoo={0}` turns back; a folder of its own for each zoo keeps both\n",
        other, flags.text("model_zoo"));
  if (table) {
    std::string const zoo = flags.text("model_zoo"), from = shell_line({flags.text("from")}),
                      built =
                          (fs::path(zoo) / "build").lexically_normal().string();  // another zoo has another
    fmt::print(out,
               "next: cmake -S {0} -B {5} && cmake --build {5} -j 2\n"
               "      {5}/{1} train --training_data={2} --validation_split=0.2 --num_epochs={3} "
               "--minibatch_size=32 --shuffle{4} --checkpoint_dir={5}/{1}-checkpoints\n"
               "      {5}/{1} history {5}/{1}-checkpoints\n"
               "      {5}/{1} serve --model_path={5}/{1}-checkpoints\n",
               zoo, table->name, from, table->epochs, table->missing + table->leaving_out, built);
    return 0;
  }
  fmt::print(out, "next: edl zoo build --image=NAME .\n");
  return 0;
}

int build(words const& line, std::string const& engine) {
  command_line const flags("zoo build", zoo_flags("build"), line, 0, 64, "the folder with the Dockerfile");
  check_word("image", flags.text("image"));
  words more = flags.arguments();
  std::string folder = ".";
  if (!more.empty() && more.front().front() != '-') {
    folder = more.front();
    more.erase(more.begin());
  }
  container_engine(engine).build(flags.text("image"), folder, more);
  return 0;
}

int push(words const& line, std::string const& engine) {
  command_line const flags("zoo push", zoo_flags("push"), line, 1, 1, "the image's name");
  check_word("image", flags.arguments().front());
  container_engine(engine).push(flags.arguments().front());
  return 0;
}

}  // namespace

std::vector<flag> zoo_flags(std::string const& command) {
  if (command == "init")
    return {{.name = "model_zoo", .fallback = ".", .help = "folder of the zoo, in this one"},
            {.name = "base_image",
             .fallback = "edl:dev",
             .help = "image that the zoo is built in: one with edl installed"},
            {.name = "models",
             .fallback = "mnist",
             .help = fmt::format("models to begin with, with commas between: {}, all",
                                 fmt::join(model_folders(), ", "))},
            {.name = "from", .help = "a table (or other records) to write a model of; wants --label"},
            {.name = "label", .help = "the column that the model of --from learns from the others"},
            missing_flag(),
            {.name = "cluster_spec", .help = "file that the image gets as /cluster_spec/NAME"},
            {.name = "local_pkg_dir",
             .help = "an installed edl (cmake --install … --prefix) to take in place of the image's"},
            {.name = "extra_pypi_index", .help = "is read, and means nothing here"},
            {.name = "force",
             .fallback = "false",
             .help = "overwrite existing files",
             .type = flag::value_type::truth}};
  if (command == "build") return {{.name = "image", .help = "name of the image"}};
  return {};
}

int zoo(words const& line, fs::path const& here, std::string const& engine, std::ostream& out) {
  std::string const command = line.empty() ? "" : line.front();
  words const rest(line.begin() + (line.empty() ? 0 : 1), line.end());
  if (command == "init") return init(rest, here, out);
  if (command == "build") return build(rest, engine);
  if (command == "push") return push(rest, engine);
  throw usage_error(fmt::format("edl zoo {}: expected init, build or push", command));
}

int zoo(words const& line) {
  char const* const engine = std::getenv("EDL_DOCKER");
  return zoo(line, fs::current_path(), engine && *engine ? engine : "docker", std::cout);
}

}  // namespace edl::tool
