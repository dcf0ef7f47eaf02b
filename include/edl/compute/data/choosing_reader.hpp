// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "edl/compute/data/reader.hpp"

namespace edl::data {

using feature_names = std::set<std::string, std::less<>>;

/// A reader that can leave out features which nobody asks for.
class choosing_reader : public reader {
 public:
  /// From now on records need only have these features; null: all again.
  virtual void choose(feature_names const* names) = 0;

  /// Whether records lack a feature because it was not chosen.
  virtual bool leaves_out(std::string_view name) const = 0;
};

/// What a thread asks records for, which it reads one after the other. At first records are whole, and it
/// learns the names that are asked for; then the reader leaves out the other features. Where one of them is
/// asked for later, the record has to be read again:
///
///     do {
///       in.read(shard, record, into);
///     } while (!choice.complete([&] { feed(into); }));
///
/// A record may only be asked on the thread that reads it. Thread safety: each thread has its own.
class feature_choice {
 public:
  static constexpr int learned = 64;  ///< records

  feature_choice() = default;
  explicit feature_choice(choosing_reader* of) : of_(of) {}

  /// Does something with the record that was read last, and passes on what it throws. False: it has to be
  /// read again, and what was done is to be done again.
  template <class Act>
  bool complete(Act&& act) {
    if (!of_) return act(), true;
    missed_ = false;
    try {
      scope const listening(*this);
      act();
    } catch (...) {
      if (!again()) throw;
      return false;
    }
    return !again();
  }

  /// Of every feature that this thread asks a record for.
  static void ask(std::string_view name, bool found) {
    if (now_ != nullptr) [[unlikely]]
      now_->note(name, found);
  }
  /// Somebody goes through all features.
  static void list() {
    if (now_ != nullptr) [[unlikely]]
      now_->note_all();
  }

 private:
  struct left_out {};  // no error that a feed might take for one of its own
  struct scope {
    explicit scope(feature_choice& of) { now_ = &of; }
    ~scope() { now_ = nullptr; }
  };

  void note(std::string_view name, bool found) {
    if (records_ < learned) {
      if (!names_.contains(name)) names_.emplace(name);
    } else if (!found && !names_.contains(name) && of_->leaves_out(name)) {
      names_.emplace(name);
      missed_ = true;
      throw left_out();
    }
  }
  void note_all() {
    bool const known = std::exchange(all_, true);
    if (known || records_ < learned) return;
    missed_ = true;
    throw left_out();
  }
  bool again() {
    if (records_ < learned ? ++records_ == learned : missed_) of_->choose(all_ ? nullptr : &names_);
    return missed_;
  }

  choosing_reader* of_ = nullptr;  // null: records are always whole
  feature_names names_;
  bool all_ = false, missed_ = false;
  int records_ = 0;
  static inline constinit thread_local feature_choice* now_ = nullptr;
};

}  // namespace edl::data
