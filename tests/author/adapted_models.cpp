// SPDX-License-Identifier: Apache-2.0
// A decoder of a published form, with small sizes, that is trained by adapters: from its file to the files of
// the result.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../../tools/zoo/template/text/llama.hpp"
#include "app/job.hpp"
#include "edl/author/predictor.hpp"
#include "edl/base/checkpoint/float_tensor.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/random.hpp"
#include "edl/job/train/local/local.hpp"
#include "edl/job/train/setup/base_model.hpp"
#include "edl/job/train/setup/setup.hpp"

namespace adapted_models_test {

namespace nn = edl::nn;
using job::has, job::scratch, job::slurp;

namespace {

struct sizes {
  static constexpr int length = 8, width = 24, heads = 6, key_value_heads = 2, blocks = 2, hidden = 40,
                       tokens = 30;
  static constexpr float rotary_base = 10'000, epsilon = 1e-5f;
  static constexpr bool bias = false;
  static constexpr edl::rotary_scaling scaling{};
};
using plain = llama<sizes>;

struct tuned {
  static constexpr auto network =
      nn::adapted(plain::network, {.rank = 2, .alpha = 4, .targets = "query,value,up"});
  static constexpr auto weight_names = plain::weight_names;
  static constexpr nn::sequence_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-2f};

  static void feed(edl::example const& record, edl::sample<tuned>& into, edl::mode) {
    auto const ids = record.integers("tokens", {sizes::length + 1});
    for (std::size_t i = 0; i < sizes::length; ++i) {
      into.features(i) = float(ids[i]);
      into.label(i) = int(ids[i + 1]);
    }
  }
};

using tensors = std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<float>>>;

/// Weights in the published names and extents.
void write_base(std::string const& path, std::uint64_t seed = 5) {
  constexpr std::uint64_t c = sizes::width, kv = c / sizes::heads * sizes::key_value_heads, h = sizes::hidden;
  tensors all;
  auto const add = [&](std::string const& name, std::vector<std::uint64_t> dims) {
    std::size_t n = 1;
    for (std::uint64_t const d : dims) n *= d;
    edl::random_stream const drawn{seed, all.size()};
    std::vector<float> values(n, 1);
    for (std::size_t i = 0; dims.size() > 1 && i < n; ++i) values[i] = 0.6f * drawn.uniform(i) - 0.3f;
    all[name] = {std::move(dims), std::move(values)};
  };
  add("model.embed_tokens.weight", {sizes::tokens, c});
  add("model.norm.weight", {c});
  for (int i = 0; i < sizes::blocks; ++i) {
    auto const in = [&](std::string const& name) {
      return fmt::format("model.layers.{}.{}.weight", i, name);
    };
    add(in("input_layernorm"), {c});
    add(in("self_attn.q_proj"), {c, c});
    add(in("self_attn.k_proj"), {kv, c});
    add(in("self_attn.v_proj"), {kv, c});
    add(in("self_attn.o_proj"), {c, c});
    add(in("post_attention_layernorm"), {c});
    add(in("mlp.gate_proj"), {h, c});
    add(in("mlp.up_proj"), {h, c});
    add(in("mlp.down_proj"), {c, h});
  }
  std::vector<edl::checkpoint::tensor_source> sources;
  for (auto const& [name, t] : all)
    sources.push_back({.name = name, .dims = t.first, .data = std::as_bytes(std::span(t.second))});
  edl::checkpoint::write_model(path, sources, {});
}

tensors read(std::string const& path) {
  edl::checkpoint::safetensors_file const file(path);
  tensors all;
  for (auto const& t : file.tensors()) all[t.name] = {t.dims, edl::checkpoint::read_floats(file, t)};
  return all;
}

std::string write_records(scratch const& dir) {
  std::string const path = dir / "records.jsonl";
  std::ofstream out(path);
  for (int i = 0; i < 64; ++i) {
    out << "{\"tokens\":[" << i % sizes::tokens;
    for (int k = 1; k <= sizes::length; ++k) out << ',' << (i + k * 3) % sizes::tokens;
    out << "]}\n";
  }
  return path;
}

edl::job training(std::string const& records, std::string const& base) {
  edl::job j{.name = "tuned", .data = {.training_data = records, .minibatch_size = 8}};
  j.checkpoints.base_model = base;
  j.compute.kernels = edl::kernels::fixed;
  j.compute.num_threads = 1;
  return j;
}

edl::logger const quiet(edl::severity::critical);

template <class Model>
int run(edl::job const& j) {
  auto p = edl::author::make_program<Model>();
  edl::train::read_base(p, j, quiet);
  return edl::train::run_local(p, j, quiet, {.interrupted = [] { return false; }});
}

std::string complaint(std::function<void()> const& of) {
  try {
    of();
  } catch (edl::error const& e) {
    return e.what();
  }
  return "none";
}

template <class Model>
std::vector<float> outputs_of(std::string const& model) {
  edl::predictor<Model> const p(model);
  edl::example record;
  std::vector<std::int64_t> ids;
  for (int i = 0; i <= sizes::length; ++i) ids.push_back(i * i * 5 % sizes::tokens);
  edl::example_builder(record).integers("tokens", ids);
  auto const y = p(record).outputs();
  return {y.begin(), y.end()};
}

}  // namespace

TEST_CASE("adapters are trained, kept alone, and merged into the file that they are of") {
  scratch const dir;
  std::string const base = dir / "base.safetensors", records = write_records(dir);
  write_base(base);
  edl::job j = training(records, base);
  j.data.num_epochs = 4;
  j.checkpoints.checkpoint_dir = dir / "checkpoints";
  j.outputs.output = dir / "model";
  REQUIRE(run<tuned>(j) == 0);

  auto const before = read(base), merged = read(dir / "model/model.safetensors");
  REQUIRE(merged.size() == before.size());
  for (auto const& [name, t] : before) {
    CAPTURE(name);
    REQUIRE(merged.contains(name));
    CHECK(merged.at(name).first == t.first);
    bool const adapted = has(name, "q_proj") || has(name, "v_proj") || has(name, "up_proj");
    CHECK((merged.at(name).second != t.second) == adapted);
  }
  auto const alone = read(dir / "model/adapter_model.safetensors");
  CHECK(alone.size() == std::size_t(sizes::blocks) * 3 * 2);
  std::string const value = "base_model.model.model.layers.1.self_attn.v_proj.lora_";
  CHECK(alone.at(value + "A.weight").first == std::vector<std::uint64_t>{2, sizes::width});
  CHECK(alone.at(value + "B.weight").first == std::vector<std::uint64_t>{8, 2});
  auto const config = slurp(dir / "model/adapter_config.json");
  for (auto const* const part : {"\"r\": 2", "\"lora_alpha\": 4.0", "\"q_proj\"", "\"up_proj\"", "\"v_proj\"",
                                 "\"peft_type\": \"LORA\""})
    CHECK(has(config, part));

  // The checkpoint, the adapters alone and the merged model are one model.
  auto const now = outputs_of<tuned>(dir / "checkpoints");
  CHECK(outputs_of<tuned>(dir / "model/adapter_model.safetensors") == now);
  auto const as_merged = outputs_of<plain>(dir / "model");
  auto const at_first = outputs_of<plain>(base);
  CHECK(outputs_of<tuned>(base) == at_first);
  float off = 0, moved = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    off = std::max(off, std::abs(now[i] - as_merged[i]));
    moved = std::max(moved, std::abs(now[i] - at_first[i]));
  }
  CHECK(off < 1e-5f);
  CHECK(moved > 0.1f);

  // What PEFT computes: W + alpha / r · B · A, in its order.
  auto const &a = alone.at(value + "A.weight").second, &b = alone.at(value + "B.weight").second;
  std::string const name = "model.layers.1.self_attn.v_proj.weight";
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column < sizes::width; ++column) {
      double sum = before.at(name).second[row * sizes::width + column];
      for (std::size_t k = 0; k < 2; ++k) sum += 4.0 / 2 * b[row * 2 + k] * a[k * sizes::width + column];
      REQUIRE(std::abs(sum - double(merged.at(name).second[row * sizes::width + column])) < 1e-6);
    }
}

TEST_CASE("a job goes on with its base to the same bits, and with no other") {
  scratch const dir;
  std::string const base = dir / "base.safetensors", other = dir / "other.safetensors",
                    records = write_records(dir), same = dir / "same.safetensors";
  write_base(base);
  write_base(other, 6);
  std::ofstream(same, std::ios::binary) << slurp(base);
  edl::job j = training(records, base);
  j.data.num_epochs = 2;
  j.outputs.output = dir / "at_once";
  REQUIRE(run<tuned>(j) == 0);
  j.checkpoints.checkpoint_dir = dir / "checkpoints";
  j.outputs.output.clear();
  j.data.num_epochs = 1;
  REQUIRE(run<tuned>(j) == 0);
  auto const manifest = edl::checkpoint::read_manifest(dir / "checkpoints/version-8");
  CHECK(manifest.base_model == base);
  j.data.num_epochs = 2;
  j.checkpoints.base_model = other;
  CHECK(has(complaint([&] { run<tuned>(j); }), "holds checkpoints of --base_model=" + base));
  j.checkpoints.base_model = same;  // of the same values elsewhere
  j.outputs.output = dir / "in_two";
  REQUIRE(run<tuned>(j) == 0);
  CHECK(slurp(dir / "in_two/model.safetensors") == slurp(dir / "at_once/model.safetensors"));

  edl::job k = training("", "");
  k.command = edl::command::evaluate;
  k.data = {.validation_data = records, .minibatch_size = 8};
  k.checkpoints.checkpoint_dir_for_init = dir / "checkpoints";
  CHECK(run<tuned>(k) == 0);
  k.checkpoints.base_model = other;
  CHECK(has(complaint([&] { run<tuned>(k); }), "were trained with " + same));
}

TEST_CASE("a base is needed by adapters alone, has every variable, and is told apart when workers join") {
  scratch const dir;
  std::string const base = dir / "base.safetensors", records = write_records(dir);
  write_base(base);
  CHECK(has(complaint([&] { run<tuned>(training(records, "")); }), "--base_model names the file"));
  CHECK(has(complaint([&] { run<plain>(training(records, base)); }), "has no adapters"));
  edl::checkpoint::write_model(dir / "part.safetensors", {}, {});
  CHECK(has(complaint([&] { run<tuned>(training(records, dir / "part.safetensors")); }),
            "part.safetensors is not a base of this model: found: none"));
  auto p = edl::author::make_program<tuned>();
  edl::job const j = training(records, base);
  edl::train::read_base(p, j, quiet);
  auto const flags = edl::train::shared_flags(j, true, &p);
  CHECK(has(flags.back(), "--base_model of CRC-32 "));
  write_base(base, 6);
  auto q = edl::author::make_program<tuned>();
  edl::train::read_base(q, j, quiet);
  CHECK(edl::train::shared_flags(j, true, &q).back() != flags.back());
}

}  // namespace adapted_models_test
