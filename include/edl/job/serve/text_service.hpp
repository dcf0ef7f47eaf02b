// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/http/router.hpp"
#include "edl/compute/tokens/chat.hpp"
#include "edl/job/serve/text_engine.hpp"

namespace edl::serve {

/// Continues texts over HTTP, in the form of OpenAI's completions: POST /v1/completions with `prompt`,
/// `max_tokens`, `temperature`, `top_p`, `n`, `stop`, `seed`, `stream`, `stream_options`, `echo`, and, as in
/// other servers, `top_k`, `min_p` and `repetition_penalty`; GET /v1/models. A field that it does not support
/// is an error, unless its value is the one that changes nothing. With `stream` it sends server-sent events.
/// With a style of chats also OpenAI's chats: POST /v1/chat/completions with `messages` instead of `prompt`
/// and `echo`. An answer ends with the style's end. A client that closes its connection, or its side of it,
/// ends its texts.
///
/// Thread safety: `routes` are for one server on the node.
class text_service {
 public:
  static constexpr int most_texts = 128;               ///< of a request
  static constexpr std::size_t most_prompt = 1 << 20;  ///< bytes of a prompt
  static constexpr std::size_t most_stop = 1024;       ///< bytes of a text of `stop`

  text_service(net::node& on, std::string name, text_engine& engine,
               std::optional<tokens::chat_style> chats = {});

  std::vector<http::route> routes();

 private:
  struct question;
  using asked = std::shared_ptr<question>;
  asked read(std::string const& body, bool chat) const;
  asio::awaitable<http::response> complete(http::request& r, bool chat);
  static asio::awaitable<void> write_events(asked q, http::stream_writer& to);

  net::node& node_;
  std::string name_;
  text_engine& engine_;
  std::optional<tokens::chat_style> chats_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/text_service.ipp"
#endif
