"""safetensors files as numpy arrays."""
import json
import struct

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16, "I32": np.int32, "U32": np.uint32}


def read(path):
    """-> tensors by name, metadata"""
    with open(path, "rb") as f:
        b = f.read()
    n = struct.unpack("<Q", b[:8])[0]
    header = json.loads(b[8:8 + n])
    meta = header.pop("__metadata__", {})
    data = memoryview(b)[8 + n:]
    return {k: np.frombuffer(data[slice(*v["data_offsets"])], TYPES[v["dtype"]]).reshape(v["shape"]) for k, v in header.items()}, meta


def write(path, tensors, meta):
    names = {np.dtype(t): n for n, t in TYPES.items()}
    header, blobs, o = {"__metadata__": meta}, [], 0
    for k, v in tensors.items():
        d = np.ascontiguousarray(v).tobytes()
        header[k] = {"dtype": names[v.dtype], "shape": list(v.shape), "data_offsets": [o, o + len(d)]}
        blobs.append(d)
        o += len(d)
    h = json.dumps(header).encode()
    h += b" " * (-len(h) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + b"".join(blobs))
