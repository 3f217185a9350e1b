# SPDX-License-Identifier: Apache-2.0
"""Model files of sgpd as tags and numpy arrays, read and written.

Where the package safetensors is installed, it reads every file, too, and must find the same."""
import json
import struct

import numpy as np

import peer

try:
    import safetensors
except ImportError:
    safetensors = None


def read_model(path):
    """Tags and tensors in float64, as docs/MODELS.md has it."""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    tags = header.pop("__metadata__")
    tensors = {name: np.frombuffer(data[8 + size:][slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
               for name, t in header.items()}
    if safetensors is not None:
        with safetensors.safe_open(path, "numpy") as file:
            assert (file.metadata(), set(file.keys())) == (tags, set(tensors)), path
            for name, values in tensors.items():
                found = file.get_tensor(name)
                assert (found.dtype, found.shape) == (values.dtype, values.shape), (path, name)
                assert found.tobytes() == values.tobytes(), (path, name)
    return tags, {name: values.astype("f8") for name, values in tensors.items()}


def write_model(path, tags, values, shapes):
    """A file with the right digest, whatever its tags say."""
    header, at = {"__metadata__": {"xxh3": "0" * 16, **{k: v for k, v in tags.items() if k != "xxh3"}}}, 0
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [4 * at, 4 * (at + count)]}
        at += count
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head, body = struct.pack("<Q", len(text)) + text, np.asarray(values, "<f4").tobytes()
    digits = head.index(b"0" * 16)
    digest = peer.checksum(body, peer.checksum(head[digits + 16:], peer.checksum(head[:digits])))
    with open(path, "wb") as file:
        file.write(head[:digits] + b"%016x" % digest + head[digits + 16:] + body)
