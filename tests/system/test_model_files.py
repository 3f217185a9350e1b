# SPDX-License-Identifier: Apache-2.0
"""Model files as others read them: numpy loads the .npz, and the safetensors layout is followed by hand.

usage: test_model_files.py WRITER, a program that writes NAME.npz and NAME.safetensors of known values.
Exit status 77 (skipped) without numpy.
"""
import json
import struct
import subprocess
import sys
import tempfile

try:
    import numpy

    import tensors
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

EXPECTED = {
    "layers.0.weight": numpy.arange(6, dtype="<f4").reshape(2, 3) / 4,
    "layers.0.bias": numpy.arange(6, 9, dtype="<f4") / 4,
}

with tempfile.TemporaryDirectory() as directory:
    name = directory + "/model"
    subprocess.run([sys.argv[1], name], check=True)

    with numpy.load(name + ".npz") as archive:
        assert sorted(archive.files) == sorted(EXPECTED), archive.files
        for key, value in EXPECTED.items():
            assert archive[key].dtype == value.dtype and archive[key].shape == value.shape
            assert (archive[key] == value).all(), key

    data = open(name + ".safetensors", "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    assert metadata["round"] == "42" and len(metadata["xxh3"]) == 16
    assert set(header) == set(EXPECTED)
    for key, value in EXPECTED.items():
        first, last = header[key]["data_offsets"]
        assert header[key]["dtype"] == "F32" and header[key]["shape"] == list(value.shape)
        read = numpy.frombuffer(data[8 + size + first : 8 + size + last], "<f4")
        assert (read.reshape(value.shape) == value).all(), key
    tags, values = tensors.read_model(name + ".safetensors")  # with the package safetensors, where that is installed
    assert tags == metadata and all((values[key] == value).all() for key, value in EXPECTED.items())
print("numpy and the safetensors layout agree")
