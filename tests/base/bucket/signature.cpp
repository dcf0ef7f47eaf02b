// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/signature.hpp"

#include <doctest/doctest.h>

namespace signature_test {

using edl::http::question;

// "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", Amazon S3's API
// reference, its four examples.
TEST_CASE("requests are signed as in the examples of AWS") {
  auto const signature = [](question q) {
    edl::bucket::sign(q, "examplebucket.s3.amazonaws.com",
                      {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}, "us-east-1",
                      1369353600);
    auto const& all = q.headers.back();
    CHECK(all.first == "Authorization");
    CHECK(all.second.starts_with(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders="));
    return all.second.substr(all.second.rfind('=') + 1);
  };
  CHECK(signature({"GET", "/test.txt", {{"Range", "bytes=0-9"}}}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(signature({"PUT",
                   "/test%24file.text",
                   {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                   "Welcome to Amazon S3."}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(signature({"GET", "/?lifecycle"}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(signature({"GET", "/?max-keys=2&prefix=J"}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  CHECK(signature({"GET", "/?prefix=J&max-keys=2"}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("a session's token is signed, too") {
  question q{"GET", "/"};
  edl::bucket::sign(q, "h", {"A", "B", "C"}, "us-east-1", 0);
  CHECK(edl::http::field(q.headers, "x-amz-security-token") == "C");
  CHECK(q.headers.back().second.find(
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, ") !=
        std::string::npos);
}

}  // namespace signature_test
