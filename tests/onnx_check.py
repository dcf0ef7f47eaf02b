#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Has models of ONNX checked by ONNX's own checker, with all shapes inferred: onnx_check.py FILE…

Needs Debian's python3-onnx.
"""
import os
import sys

import onnx

for path in sys.argv[1:]:
    onnx.checker.check_model(path)
    inferred = path + ".inferred"  # `full_check` would write into the model itself
    onnx.shape_inference.infer_shapes_path(path, inferred, check_type=True, strict_mode=True, data_prop=True)
    os.remove(inferred)
    model = onnx.load(path, load_external_data=False)
    assert model.ir_version == 8 and {o.domain: o.version for o in model.opset_import}[""] == 17, path
    shapes = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for told, found in zip(model.graph.output, shapes.graph.output):
        assert told.type == found.type, (path, told, found)
    unnamed = [n.op_type for n in model.graph.node if not n.name]
    assert not unnamed, (path, unnamed)
    print("valid", path.rsplit("/", 1)[-1], len(model.graph.node), "nodes")
