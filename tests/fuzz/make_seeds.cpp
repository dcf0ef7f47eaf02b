// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the targets whose formats have writers here. Texts that people write are seeds by hand.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/frame.hpp"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/compute/data/format/token_file.hpp"
#include "edl/compute/onnx/graph.hpp"
#include "edl/compute/onnx/message.hpp"
#include "edl/job/master/journal.hpp"

namespace {

namespace fs = std::filesystem;
namespace wire = edl::wire;

fs::path root;

fs::path place(std::string const& target, std::string const& name) {
  fs::create_directories(root / target);
  return root / target / name;
}

void put(std::string const& target, std::string const& name, std::string const& bytes) {
  std::ofstream(place(target, name), std::ios::binary) << bytes;
}

std::string get(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string frame(wire::frame_header h, std::string const& message, std::size_t payload = 0) {
  h.message_size = std::uint32_t(message.size());
  h.payload_size = payload;
  auto const head = wire::encode(h);
  return std::string(reinterpret_cast<char const*>(head.data()), head.size()) + message +
         std::string(wire::frame_padding(h), '\0') + std::string(payload, 'p');
}

edl::ledger some_ledger() {
  edl::ledger l;
  l.set_closed(0, 0, 4);
  l.set_closed(0, 6, 7);
  l.set_open({1, 2}, 3);
  l.set_skipped({1, 2}, 1);
  l.set_tally(0, {8, 512});
  return l;
}

void pictures() {
  edl::data::pixels p{{5, 4, 3}, {}};
  for (std::size_t i = 0; i < p.extents.size(); ++i) p.values.push_back(std::uint8_t(37 * i));
  put("picture_file", "colour.png", edl::data::encode_png(p));
  p.extents = {4, 15, 1};
  put("picture_file", "grey.png", edl::data::encode_png(p));
}

void records() {
  edl::example e;
  edl::example_builder build{e};
  float const pixels[]{0, 1.5f, 255};
  build.floats("image", pixels);
  build.integer("label", 7);
  std::string_view const words[]{"a", "", "bc"};
  build.bytes("words", words);
  std::string record;
  edl::encode(e, record);
  put("example", "three-kinds", record);
  for (auto [with, name] : {std::pair{edl::data::compressor::none, "none"},
                            {edl::data::compressor::snappy, "snappy"},
                            {edl::data::compressor::gzip, "gzip"}}) {
    edl::data::recordio_writer w(place("recordio", name), {.with = with, .max_chunk_bytes = 200});
    for (int i = 0; i < 4; ++i) w.write(record);
    w.close();
  }
  // Layout `python`, which nothing writes any more.
  std::string payload, head(20, '\0');
  for (int i = 0; i < 2; ++i) payload += std::string("\3\0\0\0", 4) + "abc";
  std::uint32_t const numbers[]{0x01020304, 2, edl::data::detail::crc32c(payload), 1,
                                std::uint32_t(payload.size())};
  for (std::size_t i = 0; i < 20; ++i) head[i] = char(numbers[i / 4] >> (8 * (i % 4)));
  put("recordio", "python", head + payload);
  std::string frames, packed;
  edl::data::detail::append_snappy_frames(std::string(100, 'x') + "abc", frames);
  put("compression", "snappy-frames", frames);
  edl::data::detail::pack_gzip(std::string(100, 'x') + "abc", packed);
  put("compression", "gzip", packed);
  put("idx", "images", std::string("\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2", 16) + "abcdefgh");
  put("idx", "labels", std::string("\0\0\10\1\0\0\0\4\1\2\3\4", 12));
  std::string zipped;
  edl::data::detail::pack_gzip(std::string("\0\0\10\2\0\0\0\2\0\0\0\2abcd", 16), zipped);
  put("idx", "zipped", zipped);
  edl::data::token_file_writer tokens(place("token_file", "two-documents"), 1000);
  tokens.add(std::vector<std::uint32_t>{1, 2});
  tokens.add(std::vector<std::uint32_t>{3, 4, 5, 999});
  tokens.commit();
  put("cifar10", "two-records", std::string("\7\1\2\3\4\5\6\2\1\2\3\4\5\6", 14));
}

void onnx_models() {
  using edl::onnx::message;
  edl::parameter_layout const layout{.variables = {{.name = "dense/kernel", .dims = {2, 3}, .offset = 0}},
                                     .parameters = 6};
  std::vector<float> const values{1, 2, 3, 4, 5, 6};
  edl::onnx::graph g(layout, values);
  g.note("edl_version_of_model", "3");
  edl::onnx::value const x = g.input("input", {1, 1, 2}, edl::onnx::form::rows);
  g.enter("dense");
  std::string const y = g.add("MatMul", {x.name, g.variable("kernel")});
  g.leave();
  g.output("output", {y, {1, 1, 3}});
  g.write(place("onnx", "model"));

  auto const tensor = [](std::string const& name, std::uint64_t type) {
    message m;
    m.packed(1, std::vector<std::int64_t>{2}).number(2, type).text(8, name);
    return m;
  };
  message floats = tensor("a", 1), narrow = tensor("b", 10), raw = tensor("c", 16), outside = tensor("d", 1);
  floats.packed(4, edl::view<float>(values).first(2));
  narrow.packed(5, std::vector<std::int64_t>{0x3c00, 0x4000});
  raw.text(9, "abcd");
  for (auto const& [key, value] : {std::pair{"location", "@@"}, {"offset", "4"}, {"length", "8"}})
    outside.text(13, message().text(1, key).text(2, value).bytes());
  outside.number(14, 1);
  message all;
  for (message const* t : {&floats, &narrow, &raw, &outside}) all.text(5, t->bytes());
  put("onnx", "forms", message().text(7, all.bytes()).bytes());
}

void files() {
  edl::parameter_layout const layout{
      .variables = {{.name = "w", .dims = {2, 3}, .offset = 0}, {.name = "b", .dims = {2}, .offset = 6}},
      .parameters = 8,
      .state = 0};
  std::vector<float> const values{1, 2, 3, 4, 5, 6, 7, 8};
  fs::path const model = place("safetensors", "model");
  edl::checkpoint::export_model(model, layout, values, {}, 42);
  put("checkpoint", "model", get(model));
  auto const scratch = fs::temp_directory_path() / ("edl-seeds-" + std::to_string(::getpid()));
  fs::create_directories(scratch);
  std::string const names[]{"momentum"};
  edl::view<float> const slots[]{values};
  edl::checkpoint::segment const segments[]{{{0, 8}, 5, some_ledger()}};
  auto const part = edl::checkpoint::write_part(scratch.string(), layout,
                                                {.server = 0,
                                                 .servers = 1,
                                                 .version = 5,
                                                 .elements = {0, 8},
                                                 .variables = values,
                                                 .slot_names = names,
                                                 .slots = slots,
                                                 .segments = segments});
  put("checkpoint", "part", get(scratch / part.name));
  edl::checkpoint::manifest const m{.job = "job",
                                    .version = 5,
                                    .layout = 17,
                                    .minibatch_size = 32,
                                    .records_per_task = 64,
                                    .seed = 1,
                                    .epochs = 2,
                                    .shards = {{"train", 100, 9}},
                                    .files = {part}};
  put("manifest", "one-file", edl::checkpoint::to_json(m));
  fs::remove_all(scratch);
  put("ledger", "text", wire::to_json(some_ledger()));
  wire::Ledger message;
  wire::to_message(some_ledger(), message);
  put("ledger", "message", message.SerializeAsString());
  edl::master::persisted_state known{.generation = 3, .members = 2, .wanted_servers = 1, .evaluated = 7};
  known.workers.next = 2;
  known.workers.lines.push_back({1, 0, false});
  known.servers.next = 1;
  known.addresses = {"tcp:10.0.0.7:50001"};
  auto const memory = place("journal", "memory");
  fs::remove(memory);  // a journal keeps what it finds there
  edl::master::journal(memory, "run").write(known);
}

void network() {
  put("frame", "request",
      frame({.kind = wire::frame_kind::request, .method = 3, .call = 9, .deadline_ms = 100}, "", 64));
  wire::Failure failure;
  failure.set_code(3);
  failure.set_text("no");
  std::string const failed = failure.SerializeAsString();
  put("connection", "requests",
      frame({.method = 2, .call = 1}, "m") + frame({.method = 3, .call = 2}, "m", 100) +
          frame({.method = 4, .call = 3}, "") + frame({.kind = wire::frame_kind::cancel, .call = 3}, ""));
  // The numbers of the first two calls that a connection makes.
  std::uint64_t const first = 1u << 20, second = (2u << 20) + 1;
  put("connection", "responses",
      frame({.kind = wire::frame_kind::response, .call = first}, "reply") +
          frame({.kind = wire::frame_kind::response, .call = second}, "reply", 8));
  put("connection", "failures",
      frame({.kind = wire::frame_kind::failure, .call = first}, failed) +
          frame({.kind = wire::frame_kind::failure, .call = 0}, failed));
  wire::Hello hello;
  hello.set_nonce(std::string(edl::net::nonce_size, 'n'));
  hello.set_job("fuzz");
  hello.set_self("worker-0/0000000000000002");
  hello.set_wanted("ps-0");
  hello.set_place("unix:@fuzz");
  put("handshake", "hello", hello.SerializeAsString());
  wire::Proof proof;
  proof.set_proof(std::string(edl::net::proof_size, 'p'));
  put("handshake", "client",
      frame({.kind = wire::frame_kind::hello}, hello.SerializeAsString()) +
          frame({.kind = wire::frame_kind::proof}, proof.SerializeAsString()));
  wire::Challenge challenge;
  challenge.set_nonce(std::string(edl::net::nonce_size, 'n'));
  challenge.set_proof(std::string(edl::net::proof_size, 'p'));
  challenge.set_self("ps-0/0000000000000001");
  put("handshake", "server", frame({.kind = wire::frame_kind::challenge}, challenge.SerializeAsString()));
  put("handshake", "refusal", frame({.kind = wire::frame_kind::failure}, failed));
  put("tls", "record", std::string("\x17\3\3\0\x13", 5) + std::string(19, 'x'));
  put("tls", "alert", std::string("\x15\3\3\0\2\1\0", 7));
  put("tls", "hello",
      std::string("\x16\3\1\0\x31\1\0\0\x2d\3\3", 11) + std::string(32, 'r') +
          std::string("\0\0\2\x13\1\1\0\0\4\0\x2b\0\0", 13));
}

void cluster() {
  edl::kubernetes::job_spec spec;
  spec.name = "j";
  spec.image = "i";
  spec.command = {"/m", "train"};
  spec.num_workers = 2;
  spec.worker.request = {{"cpu", "0.2"}, {"memory", "1Gi"}};
  spec.variables = {{"A", "b"}};
  put("job_spec", "job", edl::kubernetes::to_json(spec));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::puts("usage: fuzz-make-seeds DIRECTORY: writes seeds into DIRECTORY/TARGET");
    return 2;
  }
  root = argv[1];
  pictures();
  records();
  files();
  onnx_models();
  network();
  cluster();
}
