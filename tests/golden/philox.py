#!/usr/bin/env python3
"""Numbers of src/huajin/core/rng_test.cpp: Philox 4x32-10 written from the paper's description (Salmon et al., SC 2011, section 4), first checked against
the three published known answers of its authors' library (counter and key all zeros, all ones, digits of pi)."""

M = (0xD2511F53, 0xCD9E8D57)
W = (0x9E3779B9, 0xBB67AE85)


def philox(counter, key):
    x, k = list(counter), list(key)
    for _ in range(10):
        a, b = M[0] * x[0], M[1] * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[i] + W[i]) & 0xFFFFFFFF for i in (0, 1)]
    return x


ones = 0xFFFFFFFF
known = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]
for counter, key, want in known:
    assert philox(counter, key) == want, (counter, key, [hex(v) for v in philox(counter, key)])

for key, counter in [(0, 0), (1, 0), (0, 1), (0x0123456789ABCDEF, 0xFEDCBA9876543210), ((1 << 64) - 1, (1 << 64) - 1)]:
    words = philox([counter & ones, counter >> 32, 0, 0], [key & ones, key >> 32])
    print("{0x%016xULL, 0x%016xULL, {%s}}," % (key, counter, ", ".join("0x%08xU" % w for w in words)))
