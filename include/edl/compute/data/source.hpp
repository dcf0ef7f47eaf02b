// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// Parses the flag `missing`: words separated by ',', where "auto" stands for the usual ones, or "auto" alone
/// for none, so that the usual ones count in columns of numbers only. Throws usage_error if a word is empty.
missing_words read_missing_words(std::string_view flag);

/// Opens the data at `path`:
/// - a directory with the published files of MNIST (`train-images-idx3-ubyte`, …, each perhaps `.gz`) or
///   CIFAR-10 (`data_batch_1.bin`, …, `test_batch.bin`). If it contains both training and test files, use
///   `path/train` or `path/test`, which then need not exist;
/// - a directory of folders with pictures, or of pictures (compute/data/format/picture.hpp), or of
///   `.npy` files (compute/data/format/array_file.hpp), or of `.tar` files
///   (compute/data/format/web_dataset.hpp);
/// - any other directory: its RecordIO or TFRecord files by name. Does not enter sub-directories. Names that
///   begin with `.` or `_`, README and LICENSE are not data. Nor are the endings of texts, checksums and
///   unfinished files (.md .txt .json .yaml .yml .html .log .md5 .sha256 .crc .tmp .partial);
/// - a file with a known ending (docs/data.md lists them). Any other file is TFRecord if it begins like it,
///   and RecordIO otherwise, unless the options set a format;
/// - `text:LENGTH:FILE`: the windows of a text (compute/data/text.hpp);
/// - `tokens:LENGTH:FILE`: the windows of token files (compute/data/format/token_file.hpp);
/// - `synthetic:train`, `synthetic:test`: generated digits that need no file (compute/data/synthetic.hpp).
/// - `synthetic:pictures`, `synthetic:pictures-test`: generated pictures of CIFAR-10's size
///   (compute/data/synthetic.hpp).
/// - `synthetic:clicks`, `synthetic:clicks-test`: generated click logs (compute/data/synthetic_clicks.hpp).
/// - if the path does not exist: a list of paths separated by commas, or a shell pattern (`*`, `?`, `[…]`),
///   or both. All of them together are one data set, in this order. A pattern's are in byte
///   order.
/// Calls `own` first, for each path of a list separately. Throws edl::error, which names the path and its
/// fault: missing, unreadable, empty, ambiguous.
std::unique_ptr<source> open_source(std::string const& path, source_options const& options = {},
                                    opener const& own = {});

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/source.ipp"
#endif
