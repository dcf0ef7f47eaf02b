// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/job_size.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace job_size_test {

using namespace edl::kubernetes;
using nlohmann::json;

namespace {

json pod(json const& annotations) { return {{"metadata", {{"annotations", annotations}}}}; }

}  // namespace

TEST_CASE("A master's pod shows the size of its job, or none") {
  CHECK(to_text({3, 2}) == "workers=3,servers=2");
  CHECK(shown_size(pod({{"elasticdl/size", "workers=3,servers=2"}})) == job_size{3, 2});
  for (char const* other : {"", "workers=3", "workers=3,servers=", "workers=3,servers=2,more=1",
                            "workers=-1,servers=2", "workers=99999999999,servers=2", "servers=2,workers=3"})
    CHECK_FALSE(shown_size(pod({{"elasticdl/size", other}})));
  CHECK_FALSE(shown_size(json::object()));
  CHECK_FALSE(shown_size(pod({{"elasticdl/size", 3}})));
}

TEST_CASE("A size request is what its annotations say") {
  CHECK(requested_size_of(json::object()).empty());
  requested_size const request = requested_size_of(pod({{"elasticdl/num-workers", "3"}}));
  CHECK(request == requested_size{"3", ""});
  CHECK_FALSE(request.empty());
  CHECK_FALSE(requested_size_of(pod({{"elasticdl/num-ps-pods", "x"}})).empty());
  CHECK(requested_size_of(pod({{"elasticdl/num-workers", "3"}, {"elasticdl/leave", "1,2"}})) ==
        requested_size{"3", "", "1,2"});
  CHECK(requested_size_of(pod({{"elasticdl/num-workers", "3"}, {"elasticdl/why", "room"}})).why == "room");
  // Who is to leave is no size request of its own.
  CHECK(requested_size_of(pod({{"elasticdl/leave", "1,2"}})).empty());
}

TEST_CASE("Workers that are to leave are a list of ids") {
  using ids = std::vector<std::uint32_t>;
  CHECK(ids_of("") == ids{});
  CHECK(ids_of("3") == ids{3});
  CHECK(ids_of("3,5,0") == ids{3, 5, 0});
  for (char const* bad : {",", "3,", "3,,5", "a", "-1", "3 5", "99999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(ids_of(bad));
  }
  std::string many = "1";
  for (int i = 0; i < 10'000; ++i) many += ",1";
  CHECK_FALSE(ids_of(many));
}

TEST_CASE("Nodes that are short of something are named with what they lack") {
  using nodes = std::map<std::string, std::string>;
  auto const read = [](char const* text) { return short_nodes_of(pod({{"elasticdl/short-nodes", text}})); };
  CHECK(short_nodes_of(json::object()).empty());
  CHECK(read("").empty());
  CHECK(read("n1=DiskPressure;n2=MemoryPressure, PIDPressure") ==
        nodes{{"n1", "DiskPressure"}, {"n2", "MemoryPressure, PIDPressure"}});
  CHECK(read(";n;=x;n1=;;n2=a=b") == nodes{{"n1", ""}, {"n2", "a=b"}});
}

TEST_CASE("A job is to be suspended when its master's pod says true") {
  CHECK(is_suspended(pod({{"elasticdl/suspend", "true"}})));
  CHECK_FALSE(is_suspended(pod({{"elasticdl/suspend", "false"}})));
  CHECK_FALSE(is_suspended(pod({{"elasticdl/suspend", true}})));
  CHECK_FALSE(is_suspended(json::object()));
}

}  // namespace job_size_test
