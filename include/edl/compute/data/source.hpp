// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// As the flag `missing` says them: with ',' between them, or "auto" for none. Throws usage_error where one
/// of the words is empty.
missing_words read_missing_words(std::string_view flag);

/// Opens whatever lies at `path`:
/// - a directory with the published files of MNIST (`train-images-idx3-ubyte`, …, each perhaps `.gz`) or
///   CIFAR-10 (`data_batch_1.bin`, …, `test_batch.bin`). Where it holds both training and test files, say
///   which: `path/train` or `path/test`, which then need not exist;
/// - a directory of folders with pictures, or of pictures (compute/data/format/picture.hpp), or of
///   `.npy` files (compute/data/format/array_file.hpp), or of `.tar` files
///   (compute/data/format/web_dataset.hpp);
/// - any other directory: its RecordIO or TFRecord files by name. Sub-directories are not entered. Names that
///   begin with `.` or `_`, README and LICENSE are not data. Nor are the endings of texts, checksums and
///   unfinished files (.md .txt .json .yaml .yml .html .log .md5 .sha256 .crc .tmp .partial);
/// - a file whose name's ending says what it is (docs/data.md lists them). Any other file is TFRecord if it
///   begins like it, and RecordIO otherwise, unless the options say else;
/// - `text:LENGTH:FILE`: the windows of a text (compute/data/text.hpp);
/// - `synthetic:train`, `synthetic:test`: drawn digits that need no file (compute/data/synthetic.hpp).
/// - `synthetic:pictures`, `synthetic:pictures-test`: drawn pictures of CIFAR-10's size
///   (compute/data/synthetic.hpp).
/// - `synthetic:clicks`, `synthetic:clicks-test`: drawn click logs (compute/data/synthetic_clicks.hpp).
/// - where there is no such path: a list of paths with commas between them, or a pattern of the shell (`*`,
///   `?`, `[…]`), or both. All of them together are one data set, in this order. A pattern's are in byte
///   order.
/// `own` is asked first, for each path of a list by itself.
/// An edl::error names the path and what is wrong with it: missing, unreadable, empty, ambiguous.
std::unique_ptr<source> open_source(std::string const& path, source_options const& options = {},
                                    opener const& own = {});

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/source.ipp"
#endif
