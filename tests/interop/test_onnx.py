#!/usr/bin/env python3
"""onnxruntime has the predictions of strata, from files of save_onnx, and ONNX' own checker accepts them."""
import pathlib
import subprocess
import sys
import tempfile

from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(onnxruntime="onnxruntime", onnx="onnx", numpy="numpy")

import numpy as np
import onnx
import onnxruntime

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run = subprocess.run([PROGRAMS / "interop_onnx", folder], capture_output=True, text=True)
    check(run.returncode == 0, "strata writes files", run.stderr)
    check(run.stdout == "save_onnx: layer doubling: ONNX has no operator for doubling, or strata does not support it\n", "a user-defined layer is an error", run.stdout)
    check(not (folder / "own.onnx").exists(), "and leaves no file")
    files = sorted(folder.glob("*.onnx"))
    check(len(files) == 10, "all networks are there", str(files))
    for file in files:
        try:
            onnx.checker.check_model(onnx.load(file), full_check=True)
            why = ""
        except Exception as e:
            why = str(e)
        check(not why, f"{file.stem}: the checker finds nothing wrong", why)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        given = session.get_inputs()[0]
        x = np.fromfile(file.with_suffix(".x"), np.float32).reshape(-1, *given.shape[1:])
        expected = np.fromfile(file.with_suffix(".y"), np.float32).reshape(-1, *session.get_outputs()[0].shape[1:])
        for count in (len(x), 1):
            predicted = session.run(None, {given.name: x[:count]})[0]
            error = np.max(np.abs(predicted - expected[:count]) / (1 + np.abs(expected[:count])))
            check(predicted.shape == expected[:count].shape and error < 1e-6, f"{file.stem}: the same predictions for {count} samples", f"{error}")
sys.exit(finish_tests())
