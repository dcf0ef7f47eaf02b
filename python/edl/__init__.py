# SPDX-License-Identifier: Apache-2.0
"""Predictions and texts of models that edl has trained, by NumPy alone.

    import edl

    with edl.open("model", library="build/libdigits-predictor.so") as model:
        outputs = model.predict({"image": images})["output"]

    with edl.open_texts("checkpoints", library="build/libwriter-predictor.so") as model:
        print(model.generate("You may ", max_tokens=20).text)

`edl_add_model(digits digits.cpp PREDICTOR)` makes the library.
"""
import ctypes
import datetime
import operator
import os
from typing import NamedTuple

import numpy as np

__all__ = ["Error", "Feature", "Generator", "Model", "Text", "open", "open_texts"]
_ABI = 3
_DTYPES = {0: "float32", 1: "str", 2: "float32", 3: "int64"}
_MEANINGS = ("numbers", "classes", "probabilities")


class Error(RuntimeError):
    """What the library says."""


class Feature(NamedTuple):
    """An input or an output: `shape` is of one record, 0 in it is any number; `meaning` is of an output."""

    name: str
    dtype: str
    shape: tuple
    meaning: str = ""


class Text(NamedTuple):
    """What a model made of a prompt. `end`: "stop", "max_tokens" or "caller"; `forgot`: the model went on with its last half."""

    text: str
    prompt_tokens: int
    tokens: int
    end: str
    forgot: bool


class _Model(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("hyperparameters", ctypes.c_char_p), ("version", ctypes.c_uint64),
                ("outputs_size", ctypes.c_uint64), ("inputs", ctypes.c_int32), ("outputs", ctypes.c_int32),
                ("reserved", ctypes.c_int32 * 2)]


class _Feature(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("extents", ctypes.POINTER(ctypes.c_uint64)), ("first", ctypes.c_uint64),
                ("rank", ctypes.c_int32), ("kind", ctypes.c_int32), ("meaning", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("classes", ctypes.POINTER(ctypes.c_char_p))]


class _Values(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("values", ctypes.c_void_p), ("count", ctypes.c_uint64),
                ("starts", ctypes.c_void_p), ("offsets", ctypes.c_void_p), ("bytes", ctypes.c_uint64),
                ("kind", ctypes.c_int32), ("rank", ctypes.c_int32), ("extents", ctypes.c_void_p)]


class _Generation(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("stop", ctypes.POINTER(ctypes.c_char_p)), ("stop_count", ctypes.c_uint64),
                ("temperature", ctypes.c_float), ("top_p", ctypes.c_float), ("min_p", ctypes.c_float),
                ("repetition_penalty", ctypes.c_float), ("top_k", ctypes.c_int32), ("max_tokens", ctypes.c_int32),
                ("reserved", ctypes.c_int32 * 2)]


class _Text(ctypes.Structure):
    _fields_ = [("prompt_tokens", ctypes.c_int32), ("tokens", ctypes.c_int32), ("end", ctypes.c_int32),
                ("forgot", ctypes.c_int32)]


_SINK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
_libraries = {}


def _load(path, library):
    library = library or os.environ.get("EDL_PREDICTOR")
    if not library:
        if not os.path.exists(path):
            raise Error(f"{path}: no such file or directory")
        folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
        try:
            found = [f for f in os.listdir(folder) if f.startswith("lib") and f.endswith("-predictor.so")]
        except OSError as e:
            raise Error(f"{path}: {e.strerror}") from None
        if len(found) != 1:
            raise Error(f"{folder} holds {len(found)} libraries lib*-predictor.so: give one by library= or EDL_PREDICTOR")
        library = os.path.join(folder, found[0])
    library = os.path.abspath(library)
    if library in _libraries:
        return _libraries[library]
    try:
        lib = ctypes.CDLL(library)
        abi = lib.edl_predictor_abi_version()
    except (OSError, AttributeError) as e:
        raise Error(f"{library} is no library of a predictor: {e}") from None
    if abi != _ABI:
        raise Error(f"{library} has version {abi} of the interface, and this module knows version {_ABI}")
    handle, i32, u64 = ctypes.c_int64, ctypes.c_int32, ctypes.c_uint64
    lib.edl_predictor_open.argtypes, lib.edl_predictor_open.restype = [ctypes.c_char_p, i32], handle
    lib.edl_predictor_close.argtypes = [handle]
    lib.edl_predictor_describe.argtypes = [handle, ctypes.POINTER(_Model)]
    lib.edl_predictor_input.argtypes = [handle, i32, ctypes.POINTER(_Feature)]
    lib.edl_predictor_output.argtypes = [handle, i32, ctypes.POINTER(_Feature)]
    lib.edl_predictor_predict.argtypes = [handle, ctypes.POINTER(_Values), u64, u64, ctypes.c_void_p, u64]
    lib.edl_predictor_open_texts.argtypes = [ctypes.c_char_p, ctypes.c_char_p, i32]
    lib.edl_predictor_open_texts.restype = handle
    lib.edl_predictor_generate.argtypes = [handle, ctypes.c_char_p, u64, ctypes.POINTER(_Generation), _SINK,
                                           ctypes.c_void_p, ctypes.POINTER(_Text)]
    lib.edl_predictor_error.restype = ctypes.c_char_p
    _libraries[library] = lib
    return lib


def _first(given):
    """The first text or number in lists within lists; None: there is none."""
    if not isinstance(given, (list, tuple)):
        return None if _is_missing(given) else given
    return next((x for x in map(_first, given) if x is not None), None)


def _flat(given):
    """All that lists within lists hold."""
    return [x for one in given for x in _flat(one)] if isinstance(given, (list, tuple)) else [given]


def _dated(given):
    """The same with NumPy's dates as Python's."""
    if isinstance(given, (list, tuple)):
        return [_dated(one) for one in given]
    if isinstance(given, np.datetime64):
        return given if _is_missing(given) else given.astype("datetime64[us]").item()
    return given


def _spelled(given, days):
    """The same with texts for dates, and None for a date that is missing."""
    if isinstance(given, list):
        return [_spelled(one, days) for one in given]
    if _is_missing(given):
        return None
    if not isinstance(given, datetime.date):
        return given
    return str(given.date() if days and isinstance(given, datetime.datetime) else given)


def _without_dates(given):
    """Dates within lists as the texts that tables have of them: without times where there are none."""
    given = _dated(given)
    times = [x for x in _flat(given) if isinstance(x, datetime.datetime) and not _is_missing(x)]
    return _spelled(given, all(x.tzinfo is None and x.time() == datetime.time() for x in times))


def _text(what, given):
    """A name or a path as C takes it: what stands behind a zero would be left out."""
    given = os.fsencode(given)
    if b"\0" in given:
        raise Error(f"the {what} {os.fsdecode(given)!r} has a zero byte")
    return given


def _numbers(name, given):
    """An array of floats or of whole numbers of at most 64 bits, one sign included."""
    try:
        given = np.asarray(given)
    except ValueError:
        raise Error(f"'{name}' has lists of different lengths within a record") from None
    if given.dtype.kind not in "biuf":
        raise Error(f"'{name}' is of {given.dtype}: it may be of numbers or of texts")
    if given.dtype.kind == "u" and given.size and int(given.max()) > np.iinfo(np.int64).max:
        raise Error(f"'{name}' has numbers beyond int64")
    return given if given.dtype.kind == "f" else given.astype(np.int64, copy=False)


def _is_missing(value):
    """Whether a record lacks what this is: None, NaN, NaT, masked, an empty list, or a list of such."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, (datetime.date, np.datetime64)):
        return value != value
    if isinstance(value, (list, tuple)):
        return all(map(_is_missing, value))
    if np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).all():
        return True
    value = np.asarray(value)
    return value.dtype.kind == "f" and bool(np.isnan(value).all())


def _unmasked(name, given):
    """An array without a mask, or a list that has None for records that are masked."""
    masked = np.ma.getmaskarray(given).reshape(len(given), int(np.prod(given.shape[1:])))
    if (masked.any(1) != masked.all(1)).any():
        raise Error(f"'{name}' has records with some masked values: mask all of a record's, or none")
    if not masked.any():
        return given.data
    return [None if gone else one for gone, one in zip(masked.all(1), given.data)]


class _Column:
    """A feature of all records as the library takes it. `dtype`: of a feature that no record has a value of."""

    def __init__(self, name, given, dtype):
        self.offsets = self.starts = None
        self.shape = ()
        self.bytes = 0
        if np.ma.isMaskedArray(given) and given.ndim:
            given = _unmasked(name, given)
        if not isinstance(given, (list, tuple)) and np.asarray(given).ndim == 0:
            raise Error(f"'{name}' is one value: the first extent counts records")
        if not isinstance(given, (list, tuple)) and np.asarray(given).dtype.kind in "USOM":
            given = np.asarray(given)
            given = (given.astype("datetime64[us]") if given.dtype.kind == "M" else given).tolist()
        self.rows = len(given)
        if isinstance(given, (list, tuple)):
            first = _first(given)
            if isinstance(first, (datetime.date, np.datetime64)):
                given = _without_dates(given)
                first = _first(given)
            if isinstance(first, (str, bytes)) or (first is None and dtype == "str" and not any(map(_flat, given))):
                return self._take_texts(name, [_flat(one) for one in given])
            ones = [np.empty(0) if _is_missing(one) else _numbers(name, one) for one in given]
            shapes = {one.shape for one in ones if one.size}
            if len(shapes) == 1:
                self.shape = shapes.pop()
            elif any(len(shape) > 1 for shape in shapes):
                raise Error(f"'{name}' has records of different shapes: {sorted(shapes)}")
            if not self.shape or any(one.shape != self.shape for one in ones):
                self.starts = np.cumsum([0] + [one.size for one in ones], dtype=np.uint64)
            ones = [one.reshape(-1) for one in ones if one.size]
            given = np.concatenate(ones or [np.empty(0, dtype if dtype == "int64" else float)])
        else:
            self.shape = np.asarray(given).shape[1:]
        given = _numbers(name, given)
        self.kind = 2 if given.dtype.kind == "f" else 3
        self.values = np.ascontiguousarray(given, np.float32 if self.kind == 2 else np.int64)
        self.count = self.values.size

    def _take_texts(self, name, rows):
        texts, rows = [], [[] if _is_missing(row) else row for row in rows]
        for text in (x for row in rows for x in row):
            if not isinstance(text, (str, bytes)):
                raise Error(f"'{name}' has a text, and {text!r}, which is none")
            try:
                texts.append(text.encode() if isinstance(text, str) else text)
            except UnicodeEncodeError:
                raise Error(f"'{name}' has a text, and {text!r}, which UTF-8 has no bytes for") from None
        self.kind, self.count = 1, len(texts)
        self.starts = np.cumsum([0] + [len(row) for row in rows], dtype=np.uint64)
        self.offsets = np.cumsum([0] + [len(text) for text in texts], dtype=np.uint64)
        self.values = np.frombuffer(b"".join(texts), np.uint8)
        self.bytes = self.values.size

    def passed(self, name):
        def place(array):
            return None if array is None else array.ctypes.data

        self.extents = np.asarray(self.shape, np.uint64)  # pointed to, as all of these
        return _Values(_text("name", name), place(self.values), self.count, place(self.starts), place(self.offsets), self.bytes,
                       self.kind, len(self.shape), place(self.extents))


def _meant(of, logits, classes):
    """What the loss of an output says of its numbers, (records, n)."""
    if of.meaning == "classes":
        chances = np.exp(logits - logits.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
    elif of.meaning == "probabilities":
        chances = np.exp(-np.logaddexp(0, -logits))
    else:
        return {}
    made = {of.name + "_probabilities": chances.astype(np.float32).reshape((-1,) + of.shape)}
    if classes:
        made[of.name + "_class"] = np.asarray(classes)[logits.argmax(1)]
    return made


class _Opened:
    """A model that is open."""

    def __init__(self, path, library, threads, opens):
        self._handle = 0
        encoded, threads = _text("path", os.fspath(path)), operator.index(threads)
        if not 1 <= threads <= 1024:
            raise Error(f"{threads} threads: expected 1 to 1024")
        self._lib = _load(os.fspath(path), library)
        self._handle = opens(self._lib, encoded, threads)
        if not self._handle:
            raise Error(self._lib.edl_predictor_error().decode(errors="replace"))

    def _check(self, code):
        if code != 0:
            raise Error(self._lib.edl_predictor_error().decode(errors="replace"))

    def close(self):
        """Gives the memory back. What another thread computes at this moment is still finished."""
        handle, self._handle = self._handle, 0
        if handle:
            self._check(self._lib.edl_predictor_close(handle))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", 0):
            self._lib.edl_predictor_close(self._handle)


class Model(_Opened):
    """A model that is open. Threads may predict at once."""

    def __init__(self, path, library=None, threads=1):
        super().__init__(path, library, threads, lambda lib, *of: lib.edl_predictor_open(*of))
        model = _Model()
        self._check(self._lib.edl_predictor_describe(self._handle, model))
        self.path, self.version = os.fsdecode(model.path), model.version
        self.classes = {}  # their names, by output, where they have any
        self.hyperparameters = model.hyperparameters.decode(errors="replace")
        self.inputs = [self._feature(self._lib.edl_predictor_input, i)[0]._replace(meaning="") for i in range(model.inputs)]
        self.outputs, self._places = [], []
        for i in range(model.outputs):
            feature, first = self._feature(self._lib.edl_predictor_output, i)
            self.outputs.append(feature)
            self._places.append((feature, slice(first, first + int(np.prod(feature.shape, dtype=int)))))
        self._size = model.outputs_size

    def _feature(self, ask, which):
        f = _Feature()
        self._check(ask(self._handle, which, f))
        shape = tuple(f.extents[i] for i in range(f.rank))
        name = f.name.decode(errors="replace")
        if f.classes:
            self.classes[name] = [f.classes[i].decode(errors="replace") for i in range(int(np.prod(shape, dtype=int)))]
        return Feature(name, _DTYPES[f.kind], shape, _MEANINGS[f.meaning]), f.first

    def predict(self, inputs):
        """What the model says of records: an array for each output, by its name.

        Where the loss says what an output means there are also NAME_probabilities, and NAME_class, the name of
        the likeliest class, where classes have names.

        `inputs`: an array or a list for each feature; the first extent counts records, and the others are
        those that the model takes, or one flat extent. Numbers are taken as float32 or int64, texts as UTF-8,
        dates of Python, NumPy and pandas as their texts, 2026-11-28 or 2026-11-28 15:04:05.
        In lists a record may have more values than another one. None, NaN, masked values or an empty list mean
        that a record lacks the feature.
        """
        if not hasattr(inputs, "items"):
            raise Error(f"predict takes arrays by their names, as {{'x': …}}, and not {type(inputs).__name__}")
        dtypes = {f.name: f.dtype for f in self.inputs}
        columns = {name: _Column(name, given, dtypes[name]) for name, given in inputs.items() if name in dtypes}
        rows = {name: column.rows for name, column in columns.items()}
        if len(set(rows.values())) > 1:
            raise Error("inputs of different numbers of records: " + ", ".join(f"'{n}' {r}" for n, r in rows.items()))
        count = next(iter(rows.values()), None)
        # `feed` may still ask for another one, of some record: it gets what can be one.
        for name, given in inputs.items():
            try:
                column = None if name in dtypes else _Column(name, given, "float32")
            except Error:
                continue
            if column and column.rows == (count := column.rows if count is None else count):
                columns[name] = column
        if count is None:
            raise Error("no input is given: which records is it about?")
        passed = (_Values * len(columns))(*(column.passed(name) for name, column in columns.items()))
        said = np.empty((count, self._size), np.float32)
        self._check(self._lib.edl_predictor_predict(self._handle, passed, len(passed), count, said.ctypes.data, said.size))
        answers = {}
        for f, place in self._places:
            answers[f.name] = said[:, place].reshape((count,) + f.shape)
            answers.update(_meant(f, said[:, place].astype(np.float64), self.classes.get(f.name)))
        return answers


class Generator(_Opened):
    """A language model that is open. It makes one text at a time: other threads wait."""

    def __init__(self, path, tokenizer=None, library=None, threads=1):
        by = None if tokenizer is None else _text("path", os.fspath(tokenizer))
        super().__init__(path, library, threads, lambda lib, of, n: lib.edl_predictor_open_texts(of, by, n))

    def generate(self, prompt, hear=None, *, max_tokens=256, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0,
                 repetition_penalty=1.0, seed=1, stop=()):
        """Continues `prompt`, a text or bytes: a Text. `hear` gets it piece by piece, and ends it by returning False."""
        prompt = prompt.encode() if isinstance(prompt, str) else bytes(prompt)
        ends = [_text("text to stop at", one) for one in ([stop] if isinstance(stop, (str, bytes)) else stop)]
        numbers = {"seed": (seed, 0, 2**64 - 1), "top_k": (top_k, 0, 2**31 - 1), "max_tokens": (max_tokens, 1, 2**31 - 1)}
        for name, (value, least, most) in numbers.items():
            if not least <= operator.index(value) <= most:
                raise Error(f"{name}={value} is out of range: {least} to {most}")
        how = _Generation(seed, (ctypes.c_char_p * len(ends))(*ends), len(ends), temperature, top_p, min_p,
                          repetition_penalty, top_k, max_tokens)
        pieces, raised = [], []

        def take(_, piece, size):
            try:
                pieces.append(ctypes.string_at(piece, size))
                return hear is None or hear(pieces[-1].decode(errors="replace")) is not False
            except BaseException as e:  # which C would not pass on
                raised.append(e)
                return False

        made = _Text()
        code = self._lib.edl_predictor_generate(self._handle, prompt, len(prompt), how, _SINK(take), None, made)
        if raised:
            raise raised[0]
        self._check(code)
        text = b"".join(pieces).decode(errors="replace")
        return Text(text, made.prompt_tokens, made.tokens, ("stop", "max_tokens", "caller")[made.end], bool(made.forgot))


def open(path, library=None, threads=1):
    """Opens a checkpoint, a directory of checkpoints, or an exported model.

    `library`: libNAME-predictor.so of the model; else what EDL_PREDICTOR names, else the only one beside the model.
    """
    return Model(path, library, threads)


def open_texts(path, tokenizer=None, library=None, threads=1):
    """Opens a language model to continue texts. `tokenizer`: a tokenizer.json or
    tokenizer.model; without it its ids are bytes."""
    return Generator(path, tokenizer, library, threads)
