#!/usr/bin/env python3
"""An independent reader and writer of safetensors, Python standard library only. Written from the format's description, not from huajin's reader.

read_safetensors.py FILE        prints one line a tensor: name, dtype, shape, CRC-32 of its bytes; strict: refuses gaps, overlaps, trailing bytes
read_safetensors.py FILE COPY   writes the same tensors again, in its own words: names sorted, no metadata
"""
import json
import struct
import sys
import zlib

BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
         "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8}


def once(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        sys.exit("a key comes twice")
    return dict(pairs)


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + n].decode("utf-8"), object_pairs_hook=once)
    data = raw[8 + n:]
    metadata = header.pop("__metadata__", {})
    if not all(isinstance(v, str) for v in metadata.values()):
        sys.exit("metadata that is no text")
    end, tensors = 0, {}
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        a, b = t["data_offsets"]
        size = BYTES[t["dtype"]]
        for dim in t["shape"]:
            size *= dim
        if a != end or b - a != size:
            sys.exit(f"{name}: offsets {a}, {b} after {end}, size {size}")
        if a % BYTES[t["dtype"]] or (8 + n) % 8:
            sys.exit(f"{name}: not aligned")
        end = b
        tensors[name] = (t["dtype"], t["shape"], data[a:b])
    if end != len(data):
        sys.exit(f"{len(data) - end} trailing bytes")
    return tensors


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in sorted(tensors.items()):
        header[name] = {"data_offsets": [at, at + len(data)], "shape": shape, "dtype": dtype}
        at += len(data)
    text = json.dumps(header).encode("utf-8")
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, (_, _, data) in sorted(tensors.items()):
            f.write(data)


if __name__ == "__main__":
    found = read(sys.argv[1])
    for name, (dtype, shape, data) in sorted(found.items()):
        print(name, dtype, ",".join(map(str, shape)), f"{zlib.crc32(data):08x}")
    if len(sys.argv) > 2:
        write(sys.argv[2], found)
