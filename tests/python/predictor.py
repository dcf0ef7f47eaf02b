#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python module says what `predict` says, bit for bit: predictor.py MNIST MIXED, two programs beside their libraries.

Ends with 77 where NumPy is not.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not there: apt-get install python3-numpy")
    sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import edl

MNIST, MIXED = map(os.path.abspath, sys.argv[1:3])
N = 48


def library(program):
    return os.path.join(os.path.dirname(program), f"lib{os.path.basename(program)}-predictor.so")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}")


def trained(program, data, model, folder):
    """What the program predicts of the data that it has just learnt."""
    run(program, "train", f"--training_data={data}", "--num_epochs=2", "--minibatch_size=16", f"--output={model}")
    run(program, "predict", f"--prediction_data={data}", f"--checkpoint_dir_for_init={model}", f"--minibatch_size={N}",
        "--kernels=fixed", "--num_threads=1", "--prediction_format=npy", f"--prediction_outputs={folder}")
    return np.load(os.path.join(folder, "predictions.npy"))


class Predictor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp()
        draw = np.random.default_rng(1)
        cls.images = draw.integers(0, 256, (N, 28, 28), np.uint8)
        np.savez(cls.at("digits.npz"), image=cls.images, label=np.arange(N) % 10)
        cls.digits = trained(MNIST, cls.at("digits.npz"), cls.at("digits"), cls.at("p"))
        cls.x = draw.normal(size=(N, 2)).astype(np.float32)
        cls.texts = ["", "grün", "a b", "x" * 9] * (N // 4)
        cls.ids = [list(range(i % 5)) for i in range(N)]
        with open(cls.at("mixed.jsonl"), "w", encoding="utf-8") as f:
            for i in range(N):
                f.write(json.dumps({"x": [float(v) for v in cls.x[i]], "text": cls.texts[i], "ids": cls.ids[i], "label": i % 3}))
                f.write("\n")
        cls.mixed = trained(MIXED, cls.at("mixed.jsonl"), cls.at("mixed"), cls.at("q"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.work)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.work, name)

    def same(self, said, wanted):
        self.assertEqual(said.dtype, np.float32)
        self.assertEqual(said.shape, wanted.shape)
        self.assertEqual(said.tobytes(), np.ascontiguousarray(wanted).tobytes())

    def test_digits(self):
        with edl.open(self.at("digits"), library=library(MNIST)) as m:
            self.assertEqual(m.inputs, [edl.Feature("image", "float32", (28, 28, 1))])
            self.assertEqual(m.outputs, [edl.Feature("output", "float32", (10,), "classes")])
            self.assertEqual(m.version, 6)
            self.assertEqual(m.path, self.at("digits/model.safetensors"))
            for images in (self.images, self.images.astype(np.float64), self.images.tolist(), self.images[:, ::-1][:, ::-1]):
                self.same(m.predict({"image": images})["output"], self.digits["output"])

    def test_mixed_beside_digits(self):
        with edl.open(self.at("digits"), library(MNIST)) as other, edl.open(self.at("mixed"), library(MIXED)) as m:
            self.assertEqual(m.inputs, [edl.Feature("x", "float32", (2,)), edl.Feature("text", "str", ()),
                                        edl.Feature("ids", "int64", (0,))])
            self.assertEqual([o.name for o in m.outputs], ["kind", "first"])
            self.assertEqual([o.shape for o in m.outputs], [(3,), ()])
            for texts in (self.texts, [[t] for t in self.texts], [t.encode() for t in self.texts], np.array(self.texts)):
                said = m.predict({"x": self.x, "text": texts, "ids": self.ids})
                self.same(said["kind"], self.mixed["kind"])
                self.same(said["first"], self.mixed["first"])
            self.same(other.predict({"image": self.images})["output"], self.digits["output"])

    def test_threads(self):
        with edl.open(self.at("digits"), library(MNIST), threads=2) as m:
            wanted = m.predict({"image": self.images})["output"]
            wrong = []

            def work():
                for _ in range(10):
                    if m.predict({"image": self.images})["output"].tobytes() != wanted.tobytes():
                        wrong.append(1)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(wrong, [])

    def test_lists_of_few_values(self):
        with edl.open(self.at("mixed"), library(MIXED)) as m:
            def said(**changed):
                return m.predict({"x": self.x[:2], "text": ["", ""], "ids": [[], [7]], **changed})["kind"]

            none = said(ids=[[], []])  # whole numbers, though there is none
            self.same(none[:1], said()[:1])
            self.same(said(text=[b"", ""]), said())
            self.same(said(ids=[[], [2**60 + 1]]), said(ids=[np.array([], np.uint64), np.array([2**60 + 1], np.uint64)]))
            self.same(said(ids=[[1, 2, 3], [7]]), said(ids=[np.array([1, 2, 3]), np.array([7], np.uint8)]))
            self.same(said(x=np.ma.array(self.x[:2], mask=False)), said())

    def test_shapes(self):
        with edl.open(self.at("digits"), library(MNIST)) as m:
            wanted = m.predict({"image": self.images})
            for shape in ((N, 784), (N, 28, 28, 1), (N, 1, 28, 28), (N, 784, 1)):
                self.same(m.predict({"image": self.images.reshape(shape)})["output"], wanted["output"])
            for shape in ((14, 56), (4, 14, 14), (2, 392)):
                for images in (self.images.reshape((N,) + shape), list(self.images.reshape((N,) + shape))):
                    with self.assertRaisesRegex(edl.Error, f"'image' is {' × '.join(map(str, shape))} of a record, "
                                                "and the model takes 28 × 28 × 1"):
                        m.predict({"image": images})

    def test_what_outputs_mean(self):
        with edl.open(self.at("digits"), library(MNIST)) as m:
            said = m.predict({"image": self.images})
            self.assertEqual(list(said), ["output", "output_probabilities"])
            np.testing.assert_allclose(said["output_probabilities"].sum(1), 1, rtol=1e-5)
            self.assertTrue((said["output_probabilities"].argmax(1) == said["output"].argmax(1)).all())

    def test_a_fork(self):
        with edl.open(self.at("digits"), library(MNIST), threads=3) as m:
            wanted = m.predict({"image": self.images})["output"]
            child = os.fork()
            if child == 0:
                same = m.predict({"image": self.images})["output"].tobytes() == wanted.tobytes()
                m.close()
                os._exit(0 if same else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.same(m.predict({"image": self.images})["output"], wanted)

    def test_what_records_lack(self):
        with edl.open(self.at("mixed"), library(MIXED)) as m:
            def said(text):
                return m.predict({"x": self.x[:2], "text": text, "ids": [[1], []]})["kind"]

            wanted = said(["", "b"])
            for missing in (None, float("nan"), [], [None]):
                with self.assertRaisesRegex(edl.Error, "record 0: .* feature 'text'"):
                    said([missing, "b"])
            rows = np.ma.array(self.x[:2], mask=[[True, True], [False, False]])
            with self.assertRaisesRegex(edl.Error, "record 0: the record has no floats as feature 'x'"):
                m.predict({"x": rows, "text": ["", "b"], "ids": [[1], []]})
            self.assertEqual(wanted.shape, (2, 3))

    def test_dates_are_their_texts(self):
        from datetime import date, datetime, timezone

        with edl.open(self.at("mixed"), library(MIXED)) as m:
            def said(text):
                return m.predict({"x": self.x[:2], "text": text, "ids": [[1], []]})["kind"]

            for dates, texts in (
                ([date(2026, 11, 28), date(2025, 1, 2)], ["2026-11-28", "2025-01-02"]),
                ([datetime(2026, 11, 28), datetime(2025, 1, 2)], ["2026-11-28", "2025-01-02"]),
                ([datetime(2026, 11, 28, 15, 4), datetime(2025, 1, 2)], ["2026-11-28 15:04:00", "2025-01-02 00:00:00"]),
                ([datetime(2026, 11, 28, tzinfo=timezone.utc)] * 2, ["2026-11-28 00:00:00+00:00"] * 2),
                (np.array(["2026-11-28", "2025-01-02"], "datetime64[ns]"), ["2026-11-28", "2025-01-02"]),
                ([np.datetime64("2026-11-28"), date(2025, 1, 2)], ["2026-11-28", "2025-01-02"]),
            ):
                self.same(said(dates), said(texts))
            for missing in (None, np.datetime64("NaT")):
                with self.assertRaisesRegex(edl.Error, "record 1: .* feature 'text'"):
                    said([date(2026, 11, 28), missing])

    def test_what_the_model_does_not_ask_for(self):
        with edl.open(self.at("mixed"), library(MIXED)) as m:
            good = {"x": self.x[:2], "text": ["a", "b"], "ids": [[1], []]}
            more = {"row": [1, 2], "day": np.array(["2026-11-27"], "datetime64[D]"), "n": 1, "few": [1, 2, 3]}
            self.same(m.predict({**more, **good})["kind"], m.predict(good)["kind"])

    def test_errors(self):
        m = edl.open(self.at("mixed"), library(MIXED))
        good = {"x": self.x[:2], "text": ["a", "b"], "ids": [[1], []]}
        m.predict(good)
        for wrong, told in (
            ({}, "no input"),
            ({"x": self.x[:2]}, "'text'"),
            ({**good, "x": self.x[:3]}, "different numbers of records: 'x' 3, 'text' 2, 'ids' 2"),
            ({**good, "x": self.x[:2, :1]}, "'x'"),
            ({**good, "x": 1.0}, "'x' is one value"),
            ({**good, "x": [None, self.x[1]]}, "record 0: the record has no floats as feature 'x'"),
            ({**good, "ids": [[[1, 2], [3]], [4]]}, "'ids' has lists of different lengths within a record"),
            ({**good, "x": [[[1], [2]], [3, 4]]}, "'x' has records of different shapes"),
            ({**good, "x": self.x[:2].reshape(2, 1, 2, 1).repeat(2, 1)}, r"'x' is 2 × 2 × 1 of a record, and the model takes 2"),
            ({**good, "x": self.x[:2] + 1j}, "'x' is of complex64"),
            ({**good, "x": self.x[:2] * np.nan}, "record 0: the record has no floats as feature 'x'"),
            ({**good, "x": [[1, np.nan], [1, 1]]}, "value 1 of 'x' is nan"),
            ({**good, "ids": np.array([1.5, 2])}, "ids"),
            ({**good, "ids": np.array([1, 2**63], np.uint64)}, "'ids' has numbers beyond int64"),
            ({**good, "ids": [[2**63], [1]]}, "'ids' has numbers beyond int64"),
            ({**good, "x": np.ma.array(self.x[:2], mask=[[True, False], [False, False]])}, "'x' has records with some masked values"),
            ({**good, "text": [["a"], [1]]}, "'text' has a text, and 1"),
            ({**good, "text": ["\udc80", "b"]}, "'text' has a text, and .* UTF-8"),
            ({**good, "x\0y": [1, 2]}, "has a zero byte"),
            ({"x": [], "text": [], "ids": []}, "a batch for 0 records"),
            ({"y": 1.0, "z": [1j]}, "no input is given"),
            ({"y": [1]}, "the record has no"),
            ({"x": self.x[:2], "text": ["a", "b"], "idss": [[1], []]}, "idss"),
            ({**good, "text": ["a", "\ud800"]}, "'text' has a text, and '.ud800', which UTF-8 has no bytes for"),
            (["a"], "predict takes arrays by their names, as .*, and not list"),
        ):
            with self.subTest(told), self.assertRaisesRegex(edl.Error, told):
                m.predict(wrong)
        m.close()
        m.close()
        with self.assertRaisesRegex(edl.Error, "is not open"):
            m.predict(good)
        with self.assertRaisesRegex(edl.Error, "does not belong to this model"):
            edl.open(self.at("digits"), library(MIXED))
        with self.assertRaisesRegex(edl.Error, "has a zero byte"):
            edl.open(self.at("mixed") + "\0none", library(MIXED))
        for threads in (0, 1025, 2**32 + 1):
            with self.assertRaisesRegex(edl.Error, "expected 1 to 1024"):
                edl.open(self.at("mixed"), library(MIXED), threads)
        with self.assertRaisesRegex(edl.Error, "no such file"):
            edl.open(self.at("none"), library(MIXED))
        with self.assertRaisesRegex(edl.Error, "none: no such file or directory"):
            edl.open(self.at("none"))
        with self.assertRaisesRegex(TypeError, "'str' object cannot be interpreted as an integer"):
            edl.open(self.at("mixed"), library(MIXED), threads="2")
        with self.assertRaisesRegex(edl.Error, "is no library of a predictor"):
            edl.open(self.at("mixed"), self.at("mixed.jsonl"))

    def test_the_library_beside_the_model(self):
        with self.assertRaisesRegex(edl.Error, "holds 0 libraries"):
            edl.open(self.at("mixed"))
        os.symlink(library(MIXED), self.at("mixed/libmixed-predictor.so"))
        with edl.open(self.at("mixed")) as m:
            self.assertEqual(m.version, 6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
