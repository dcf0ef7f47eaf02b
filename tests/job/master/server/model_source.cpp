// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/model_source.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "job/master/served_master.hpp"

namespace model_source_test {

using namespace served_master;

TEST_CASE("the trained model is what the servers have when the job ends") {
  scratch const dir;
  std::atomic<std::uint64_t> pulled{0};
  server_process s([&](std::uint16_t what, edl::bytes message) -> std::string {
    if (what == method::commit) {
      edl::wire::CommitReply reply;
      reply.set_version(7);
      return edl::wire::pack(reply);
    }
    if (what != method::pull) return configured();
    auto const request = edl::wire::unpack<edl::wire::PullRequest>(message, "the master");
    pulled = request.version();
    edl::wire::PullReply reply;
    reply.set_version(request.version());
    return edl::wire::pack(reply);
  });
  s.variables = {1, 2, 3, 4};
  master_process m([&](server_options& o) { o.output = dir.path(); });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->stop(0); });
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended() == "");
  CHECK(pulled == 7);
  std::string const file = slurp(dir.path() + "/model.safetensors");
  std::size_t const bytes = s.variables.size() * sizeof(float);
  REQUIRE(file.size() > bytes);
  CHECK(std::memcmp(file.data() + file.size() - bytes, s.variables.data(), bytes) == 0);
}

TEST_CASE("a server that is lost while the model is taken from it: the next one has it") {
  scratch const dir;
  std::atomic<bool> asked{false};
  auto const answers = [&](bool there) {
    return [&, there](std::uint16_t what, edl::bytes) -> std::string {
      if (what == method::commit) return edl::wire::pack(edl::wire::CommitReply{});
      if (what != method::pull) return configured();
      asked = true;
      if (!there) throw call_error(status::unavailable, "it is dead");
      return edl::wire::pack(edl::wire::PullReply{});
    };
  };
  server_process first(answers(false)), second(answers(true));
  second.variables = {1, 2, 3, 4};
  master_process m([&](server_options& o) {
    o.output = dir.path();
    o.final_timeout = 0ms;  // this is for the storage
  });
  CHECK(m.join(first));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->stop(0); });
  REQUIRE(eventually([&] { return asked.load(); }));
  m.kill(role::server, 0);
  CHECK(m.join(second, 2));
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended() == "");
  CHECK(std::filesystem::exists(dir.path() + "/model.safetensors"));
}

TEST_CASE("a model that cannot be taken from the servers ends the job, with the reason") {
  scratch const dir;
  server_process s([&](std::uint16_t what, edl::bytes) -> std::string {
    if (what == method::pull) throw call_error(status::internal, "no such range");
    return what == method::commit ? edl::wire::pack(edl::wire::CommitReply{}) : configured();
  });
  master_process m([&](server_options& o) {
    o.output = dir.path();
    o.final_timeout = 50ms;
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->stop(0); });
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended()->find("no such range") != std::string::npos);
}

}  // namespace model_source_test
