// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/model_files.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "job/master/served_master.hpp"

namespace model_files_test {

using namespace served_master;

namespace {

/// A file that cannot be opened for a reason that may pass.
void make_unreadable(std::string const& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof name.sun_path);
  path.copy(name.sun_path, path.size());
  int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr const*>(&name), sizeof name) == 0);
  ::close(fd);
}

}  // namespace

TEST_CASE("a checkpoint directory that cannot be read for a while keeps the job waiting, and no longer") {
  scratch const dir;
  std::string const path = dir.path() + "/version-5/manifest.json";
  std::filesystem::create_directories(dir.path() + "/version-5");
  make_unreadable(path);
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([&](server_options& o) {
    o.files.directory = dir.path();
    o.step_timeout = 100ms;
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.kill(role::server, 0);
  CHECK(m.join(s, 2));
  CHECK(eventually([&] {
    return m.waits().value_or("").find("the storage to answer '" + dir.path() + "'") != std::string::npos;
  }));
  CHECK_FALSE(m.ready());
  std::filesystem::remove(path);
  CHECK(eventually([&] { return m.ready(); }));
  CHECK_FALSE(m.ended());
}

TEST_CASE("a checkpoint directory that stays unreadable ends the job, with the reason") {
  scratch const dir;
  std::filesystem::create_directories(dir.path() + "/version-5");
  make_unreadable(dir.path() + "/version-5/manifest.json");
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([&](server_options& o) {
    o.files.directory = dir.path();
    o.order_timeout = 200ms;
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.kill(role::server, 0);
  CHECK(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended()->find("cannot search " + dir.path() + " for checkpoints: ") == 0);
}

TEST_CASE("a checkpoint that is written counts, whatever becomes of those that are too old") {
  scratch const dir;
  std::filesystem::create_directories(dir.path() + "/version-4");
  server_process s([&](std::uint16_t what, edl::bytes) -> std::string {
    if (what == method::configure) return configured();
    if (what == method::release) return edl::wire::pack(edl::wire::Empty{});
    edl::wire::CheckpointReply reply;
    auto& part = *reply.add_files();
    spill(dir.path() + "/version-5/part", "x");
    part.set_name("part");
    part.set_bytes(1);
    part.set_version(5);
    return edl::wire::pack(reply);
  });
  master_process m([&](server_options& o) {
    o.files.directory = dir.path();
    o.job.checkpoint = true;
    o.files.keep = 1;
    // Of what is asked for, the removal comes after the commit.
    o.files.allowed = [&] {
      if (std::filesystem::exists(dir.path() + "/version-5/manifest.json")) throw edl::error("no more");
    };
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  edl::wire::VersionReport r;
  r.set_generation(1);
  r.set_version(5);
  r.set_checkpoint(true);
  m.ask(method::version, r);
  CHECK(eventually([&] { return m.said().find("heckpoint of version 5 ") != std::string::npos; }));
  CAPTURE(m.said());
  CHECK(m.said().find("Checkpoint of version 5 written") != std::string::npos);
  CHECK(m.said().find("old checkpoints in " + dir.path() + " cannot be removed: no more") !=
        std::string::npos);
}

TEST_CASE("what the servers have written of a generation that is over becomes no checkpoint") {
  scratch const dir;
  master_process* master = nullptr;
  server_process s([&](std::uint16_t what, edl::bytes message) -> std::string {
    if (what != method::checkpoint) return configured();
    auto const request = edl::wire::unpack<edl::wire::CheckpointRequest>(message, "the master");
    spill(request.path() + "/part", "x");
    // It ends, and the answer is on its way.
    if (request.version() == 5) master->kill(role::server, 0);
    edl::wire::CheckpointReply reply;
    auto& part = *reply.add_files();
    part.set_name("part");
    part.set_bytes(1);
    part.set_version(request.version());
    return edl::wire::pack(reply);
  });
  master_process m([&](server_options& o) {
    o.files.directory = dir.path();
    o.job.checkpoint = true;
  });
  master = &m;
  for (std::uint64_t const generation : {1, 2}) {
    CHECK(m.join(s, generation));
    REQUIRE(eventually([&] { return m.ready(); }));
    edl::wire::VersionReport r;
    r.set_generation(generation);
    r.set_version(4 + generation);
    r.set_checkpoint(true);
    m.ask(method::version, r);
    REQUIRE(eventually([&] {
      return generation == 1 ? m.on_node([&] { return m.it->decisions().generation(); }) == 2
                             : m.said().find("Checkpoint of version 6 written") != std::string::npos;
    }));
  }
  CHECK_FALSE(std::filesystem::exists(dir.path() + "/version-5/manifest.json"));
}

TEST_CASE("a job that is suspended while one server is a step ahead is written, each as far as it is") {
  scratch const dir;
  auto const server_at = [&](std::uint64_t version) {
    return [version](std::uint16_t what, edl::bytes message) -> std::string {
      if (what == method::configure) return configured();
      if (what == method::commit) {
        edl::wire::CommitReply reply;
        reply.set_version(version);
        return edl::wire::pack(reply);
      }
      if (what != method::checkpoint) return edl::wire::pack(edl::wire::Empty{});
      auto const request = edl::wire::unpack<edl::wire::CheckpointRequest>(message, "the master");
      if (request.version() > version) throw call_error(status::not_ready, "waits for a step");
      edl::wire::CheckpointReply reply;
      auto& part = *reply.add_files();
      std::string const name = "part-" + std::to_string(version);
      spill(request.path() + "/" + name, "x");
      part.set_name(name);
      part.set_bytes(1);
      part.set_version(version);
      return edl::wire::pack(reply);
    };
  };
  server_process first(server_at(5)), second(server_at(6));
  master_process m([&](server_options& o) {
    o.files.directory = dir.path();
    o.job.num_servers = 2;
    o.job.checkpoint = o.job.final_checkpoint = true;
    o.order_timeout = 1s;
  });
  CHECK(m.join(first));
  CHECK(m.join(second, 1, 1));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->processes().suspend(); });
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CAPTURE(m.said());
  CHECK(m.said().find("Checkpoint of version 6 written") != std::string::npos);
  CHECK(m.said().find("is lost") == std::string::npos);
}

}  // namespace model_files_test
