// SPDX-License-Identifier: Apache-2.0
#include "data/tokenize.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/paths.hpp"
#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/compute/data/format/token_file.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/tokens/chat.hpp"
#include "edl/compute/tokens/conversation.hpp"
#include "edl/compute/tokens/pattern.hpp"
#include "edl/compute/tokens/tokenizer.hpp"
#include "edl/compute/tokens/trainer.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

constexpr std::uint64_t longest_document = 1ull << 30;
constexpr std::size_t batch_bytes = 16u << 20;

using for_document = std::function<void(std::string_view)>;

/// The flags of texts, for the commands that read them.
std::vector<flag> text_flags() {
  return {
      {.name = "text",
       .fallback = "text",
       .help = "feature with the text, in inputs that are records; if it is given, all inputs are read as "
               "records"},
      {.name = "separator",
       .help =
           "what stands between two documents of a text file, with \\n for the end of a line; without it a "
           "file is one document"}};
}

std::string separator_of(command_line const& l) {
  std::string all = l.text("separator");
  for (std::size_t at = 0; (at = all.find("\\n", at)) != all.npos; ++at) all.replace(at, 2, "\n");
  return all;
}

bool names_records(std::string const& path) {
  auto const plain = data::detail::without_packing(path);
  return std::ranges::any_of(
      std::initializer_list<char const*>{".jsonl", ".ndjson", ".csv", ".tsv", ".parquet"},
      [&](char const* ending) { return data::detail::ends_as(plain, ending); });
}

/// `number`: if not null, counts documents, also empty ones.
void read_text_file(std::string const& path, std::string const& separator, for_document const& act,
                    std::uint64_t* number = nullptr) {
  data::detail::text_file const file(path);
  auto const put = [&](std::string_view document) {
    if (number) ++*number;
    if (!document.empty()) act(document);
  };
  std::string held;
  for (std::uint64_t at = 0; at < file.size();) {
    auto const n = std::size_t(std::min<std::uint64_t>(1u << 20, file.size() - at));
    std::size_t searched = held.size() - std::min(held.size(), separator.size());
    held.resize(held.size() + n);
    file.read(at, held.data() + held.size() - n, n);
    at += n;
    std::size_t begin = 0;
    if (!separator.empty())
      for (std::size_t end = 0; (end = held.find(separator, std::max(begin, searched))) != held.npos;) {
        put(std::string_view(held).substr(begin, end - begin));
        begin = end + separator.size();
      }
    held.erase(0, begin);
    if (held.size() > longest_document)
      throw data_error(fmt::format(
          "{}: has a document of more than {} bytes: give --separator=TEXT, as --separator='\\n\\n'", path,
          longest_document));
  }
  file.check_unchanged();
  put(held);
}

/// Calls `act` with the files of an input: itself or, of `s3://…`, the objects that it names.
void for_each_file(std::string const& input, std::function<void(std::string const& path)> const& act) {
  bucket::readable const at(input, cache());
  at.use([&] {
    if (bucket::names_objects(input) && data::detail::is_pattern(at.path()))
      std::ranges::for_each(data::detail::matching_paths(at.path()), act);
    else
      act(at.path());
  });
}

/// Returns how many records have no such feature.
std::uint64_t read_records(std::string const& path, std::string const& feature, for_document const& act) {
  auto const source = open_records(path);
  auto const in = source->open();
  example record;
  std::uint64_t without = 0;
  for (std::size_t s = 0; s < source->shards().size(); ++s)
    for (std::uint64_t i = 0; i < source->shards()[s].records; ++i) {
      in->read(s, i, record);
      data::at_record(*source, s, i, [&] {
        if (!record.contains(feature))
          ++without;
        else if (std::string_view const text = record.bytes(feature); !text.empty())
          act(text);
      });
    }
  return without;
}

void for_each_document(command_line const& l, for_document const& act) {
  std::string const separator = separator_of(l), &feature = l.text("text");
  std::uint64_t without = 0;
  for (std::string const& path : l.arguments())
    if (l.given("text") || names_records(path))
      without += read_records(path, feature, act);
    else
      for_each_file(path, [&](std::string const& file) { read_text_file(file, separator, act); });
  if (without > 0)
    note(fmt::format("{} no feature '{}'", counted(without, "record has", "records have"), feature));
}

/// A line on a terminal that is written over.
void show(std::string const& text, bool last = false) {
  static bool const terminal = ::isatty(2) == 1;
  if (terminal) fmt::print(stderr, "\r{}{}", text, last ? "\n" : "");
}

/// Encodes documents by several threads, and writes them in order.
class batches {
 public:
  batches(tokens::tokenizer const& by, std::size_t threads, bool template_tokens,
          std::vector<tokens::token_id> end, data::token_file_writer& out)
      : template_tokens_(template_tokens), end_(std::move(end)), out_(out) {
    for (std::size_t i = 0; i < threads; ++i) encoders_.emplace_back(by);
  }

  void add(std::string_view document) {
    documents_.emplace_back(document);
    held_ += document.size();
    if (held_ >= batch_bytes) flush();
  }

  void flush() {
    std::vector<std::vector<tokens::token_id>> ids(documents_.size());
    std::vector<std::exception_ptr> failures(encoders_.size());
    std::atomic<std::size_t> next = 0;
    auto const work = [&](std::size_t thread) {
      try {
        for (std::size_t i; (i = next++) < documents_.size();) {
          encoders_[thread].encode(documents_[i], ids[i], template_tokens_);
          ids[i].insert(ids[i].end(), end_.begin(), end_.end());
        }
      } catch (...) {
        failures[thread] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < std::min(encoders_.size(), documents_.size()); ++i)
        others.emplace_back(work, i);
      work(0);
    }
    for (auto const& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (auto const& document : ids) out_.add(document);
    bytes_ += held_;
    held_ = 0;
    documents_.clear();
    show(fmt::format("{:.1f} MB of text, {} tokens", double(bytes_) / 1e6, out_.tokens()));
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<tokens::encoder> encoders_;
  bool template_tokens_;
  std::vector<tokens::token_id> end_;
  data::token_file_writer& out_;
  std::vector<std::string> documents_;
  std::size_t held_ = 0;
  std::uint64_t bytes_ = 0;
};

tokens::chat_style style_of(command_line const& l, tokens::tokenizer const& by) {
  std::string const& name = l.text("instructions");
  auto style = tokens::chat_style_of(name).value_or(tokens::chat_style{});
  if (l.given("end_token")) style.end = l.text("end_token");
  try {
    tokens::check_chat_style(style, by);
  } catch (usage_error const& e) {
    throw usage_error(
        fmt::format("--instructions={}: --tokenizer={}: {}", name, l.text("tokenizer"), e.what()));
  }
  return style;
}

/// Conversations, as records of tokens and of what follows them.
int write_instructions(command_line const& l, tokens::tokenizer const& by) {
  constexpr std::size_t longest_line = 16u << 20;
  tokens::chat_style const style = style_of(l, by);
  tokens::encoder encoder(by);
  auto const most = std::size_t(l.number("length"));
  std::uint64_t records = 0, tokens = 0, answers = 0, none = 0, damaged = 0;
  std::string bytes;
  auto const read = [&](std::string const& path, data::recordio_writer& out) {
    std::uint64_t line = 0;
    auto const add = [&](std::string_view text) {
      if (text.find_first_not_of(" \t\r") == text.npos) return;
      if (text.size() > longest_line) throw data_error(fmt::format("is longer than {} bytes", longest_line));
      auto const one = tokens::read_conversation(text, encoder, style, most);
      if (!one.answers()) return void(++none);
      example record;
      {
        example_builder build{record};
        build.integers("tokens", one.tokens);
        build.integers("labels", one.labels);
      }
      bytes.clear();
      encode(record, bytes);
      out.write(bytes);
      tokens += one.tokens.size();
      answers += std::uint64_t(std::ranges::count_if(one.labels, [](std::int64_t i) { return i >= 0; }));
    };
    read_text_file(
        path, "\n",
        [&](std::string_view text) {
          try {
            add(text);
          } catch (data_error const& e) {
            if (!l.truth("skip_damaged")) throw data_error(fmt::format("{}:{}: {}", path, line, e.what()));
            ++damaged;
          }
        },
        &line);
  };
  write_file(l.text("output"), [&](std::string const& path) {
    data::recordio_writer out(path);
    for (std::string const& input : l.arguments())
      for_each_file(input, [&](std::string const& file) { read(file, out); });
    records = out.records();
    if (records == 0) throw data_error("the inputs hold no conversation with an answer");
    out.close();
  });
  fmt::print("{} of {}, {} of them in answers: {}\n", counted(records, "record"), counted(tokens, "token"),
             answers, printable(l.text("output")));
  std::fflush(stdout);
  if (none > 0)
    note(fmt::format("{} left out: no answer within the first {}",
                     counted(none, "conversation is", "conversations are"), counted(most, "token")));
  if (damaged > 0) note(fmt::format("{} skipped", counted(damaged, "damaged line is", "damaged lines are")));
  return done;
}

}  // namespace

std::vector<flag> tokenize_flags() {
  std::vector<flag> all{
      {.name = "tokenizer",
       .help = "tokenizer.json of Hugging Face's library or of train-tokenizer, or SentencePiece's "
               "tokenizer.model",
       .needed = true},
      {.name = "output",
       .help = "token file to write, or s3://BUCKET/KEY; it appears when it is complete",
       .needed = true},
      {.name = "end_token", .help = "token to put behind each document, as <|endoftext|>"},
      {.name = "template_tokens",
       .fallback = "false",
       .help = "put the tokens around each document that the tokenizer's template has",
       .type = flag::value_type::truth},
      {.name = "instructions",
       .help = "the inputs are JSON lines of instruction data; write records of tokens and of the answers "
               "among them, in the style of these chats, or plain: of prompts and completions alone",
       .choices = {"", "chatml", "llama3", "plain"}},
      {.name = "length",
       .fallback = "1024",
       .help = "with --instructions: most tokens of a record",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 1u << 20},
      {.name = "skip_damaged",
       .fallback = "false",
       .help = "with --instructions: skip and count damaged lines instead of stopping",
       .type = flag::value_type::truth},
      {.name = "threads",
       .fallback = "0",
       .help = "that encode; 0: as many as this process has cores",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 1024}};
  std::ranges::move(text_flags(), std::back_inserter(all));
  return all;
}

int tokenize(words const& line) {
  command_line const l("data tokenize", tokenize_flags(), line, 1, 1'000'000, "the files with the texts");
  bucket::readable const from(l.text("tokenizer"), cache());
  auto const by = from.use([&] { return tokens::tokenizer::from_file(from.path()); });
  if (!l.text("instructions").empty()) return write_instructions(l, by);
  std::vector<tokens::token_id> end;
  if (std::string const& token = l.text("end_token"); !token.empty()) {
    auto const id = by.find(token);
    if (!id)
      throw usage_error(fmt::format("--end_token={}: {} has no such token", token, l.text("tokenizer")));
    end.push_back(*id);
  }
  auto const threads =
      l.number("threads") > 0 ? std::size_t(l.number("threads")) : std::size_t(granted_cores());
  std::uint64_t bytes = 0, written = 0, documents = 0;
  write_file(l.text("output"), [&](std::string const& path) {
    data::token_file_writer out(path, by.vocabulary(), by.digest());
    batches all(by, threads, l.truth("template_tokens"), end, out);
    for_each_document(l, [&](std::string_view document) { all.add(document); });
    all.flush();
    show("", true);
    bytes = all.bytes(), written = out.tokens(), documents = out.documents();
    if (written == 0) throw data_error("the inputs hold no text");
    out.commit();
  });
  fmt::print("{} of {} of text, {}: {}\n", counted(written, "token"), counted(bytes, "byte"),
             counted(documents, "document"), printable(l.text("output")));
  std::fflush(stdout);
  if (documents > 1 && end.empty() && !l.truth("template_tokens"))
    note("nothing stands between the documents: --end_token=TOKEN puts a token there");
  return done;
}

std::vector<flag> train_tokenizer_flags() {
  std::vector<flag> all{
      {.name = "output", .help = "tokenizer.json to write, or s3://BUCKET/KEY", .needed = true},
      {.name = "vocab_size",
       .fallback = "32000",
       .help = "tokens: 256 bytes, merged ones and special ones",
       .type = flag::value_type::whole,
       .least = 257,
       .most = 1u << 20},
      {.name = "cuts",
       .fallback = "llama3",
       .help = "how texts are cut into words: the regular expression of this model",
       .choices = {"llama3", "qwen2", "gpt2"}},
      {.name = "special_tokens",
       .fallback = "<|endoftext|>",
       .help = "tokens at the end of the vocabulary that no text is merged into, separated by commas"},
      {.name = "min_count",
       .fallback = "2",
       .help = "how often a pair must occur to be merged",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 1u << 30}};
  std::ranges::move(text_flags(), std::back_inserter(all));
  return all;
}

int train_tokenizer(words const& line) {
  command_line const l("data train-tokenizer", train_tokenizer_flags(), line, 1, 1'000'000,
                       "the files with the texts");
  std::string const& cuts = l.text("cuts");
  tokens::trainer trainer({.vocabulary = std::size_t(l.number("vocab_size")),
                           .cuts_by = cuts == "gpt2"    ? tokens::gpt2_pattern
                                      : cuts == "qwen2" ? tokens::qwen2_pattern
                                                        : tokens::llama3_pattern,
                           .special = list_of("special_tokens", l.text("special_tokens")),
                           .least_count = std::uint64_t(l.number("min_count"))});
  std::uint64_t bytes = 0, shown = 0, made = 0;
  write_file(l.text("output"), [&](std::string const& path) {
    for_each_document(l, [&](std::string_view document) {
      trainer.add(document);
      bytes += document.size();
      if (bytes < shown + batch_bytes) return;
      shown = bytes;
      show(fmt::format("{:.1f} MB of text, {} words", double(bytes) / 1e6, trainer.words()));
    });
    if (bytes == 0) throw data_error("the inputs hold no text");
    std::string const content = trainer.train(
        [](std::size_t now, std::size_t of) { show(fmt::format("{}/{} tokens        ", now, of)); });
    show("", true);
    made = tokens::tokenizer::from_json(content, l.text("output")).vocabulary();
    replace_file(path, content);
  });
  fmt::print("{} from {} of {} of text: {}\n", counted(made, "token"),
             counted(trainer.words(), "distinct word"), counted(bytes, "byte"), printable(l.text("output")));
  std::fflush(stdout);
  if (made < std::uint64_t(l.number("vocab_size")))
    note(fmt::format("no other pair occurs {} times, so there are fewer than {} tokens",
                     l.number("min_count"), l.number("vocab_size")));
  return done;
}

}  // namespace edl::tool
