// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "edl/core/inline.hpp"
#include "edl/data/reader.hpp"

namespace edl::data {

/// Opens whatever lies at `path`:
/// - a directory with the published files of MNIST (`train-images-idx3-ubyte`, …, each perhaps `.gz`) or
///   CIFAR-10 (`data_batch_1.bin`, …, `test_batch.bin`). Where it holds both training and test files, say
///   which: `path/train` or `path/test`, which then need not exist;
/// - any other directory: its RecordIO files by name. Sub-directories are not entered. Names that begin with
///   `.` or `_`, README and LICENSE are not data. Nor are the endings of texts, checksums and unfinished
///   files (.md .txt .json .yaml .yml .html .log .md5 .sha256 .crc .tmp .partial);
/// - a `.csv` file; a `.libfm` or `.libsvm` file; any other file is RecordIO, unless the options say else;
/// - `text:LENGTH:FILE`: the windows of a text (data/text.hpp);
/// - `synthetic:train`, `synthetic:test`: drawn digits that need no file (data/synthetic.hpp).
/// - `synthetic:pictures`, `synthetic:pictures-test`: drawn pictures of CIFAR-10's size (data/synthetic.hpp).
/// - `synthetic:clicks`, `synthetic:clicks-test`: drawn click logs (data/synthetic_clicks.hpp).
/// An edl::error names the path and what is wrong with it: missing, unreadable, empty, ambiguous.
std::unique_ptr<source> open_source(std::string const& path, source_options const& options = {});

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/data/source.ipp"
#endif
