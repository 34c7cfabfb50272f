#!/usr/bin/env python3
"""Ids of hostile strings under GPT-2's encoding, straight from its definition: the split by `regex`, then the lowest-ranked merge until none is left.
   pip install regex; python3 tests/golden/gpt2_tokens.py FOLDER > tests/golden/gpt2_tokens.json     FOLDER: encoder.json and vocab.bpe"""
import json
import random
import sys
import unicodedata

import regex

folder = sys.argv[1]
encoder = json.load(open(folder + "/encoder.json", encoding="utf-8"))
lines = open(folder + "/vocab.bpe", encoding="utf-8").read().split("\n")[1:-1]
rank = {tuple(line.split()): i for i, line in enumerate(lines)}
pattern = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
printable = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in plain)}


def encode(text):
    ids = []
    for word in pattern.findall(text):
        parts = [printable[b] for b in word.encode("utf-8")]
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: rank.get((parts[i], parts[i + 1]), 1 << 30))
            if (parts[best], parts[best + 1]) not in rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        ids += [encoder[p] for p in parts]
    return ids


texts = ["", " ", "  ", "a", " a", "  a", "a ", "a  ", "\n", "\n\n", " \n a", "\t\tx", "a\r\nb", "it's we're I'll I'd 'S 'Re", "don''t", " 's x", "'", "''", "'l", "'v", "!'s", "1'd",
         "0123456789 12 3a4", "x" * 300, " " * 300, " " * 7 + "x", "\n" * 9 + "y", "!?" * 40, "the " * 30, "\x00\x01\x1c\x1d\x1e\x1f\x7f", "a\x1cb", "\x85x", "\xa0 \xa0a", " \xa0", "\xa0",
         "\u180e x\u180ey", "\u200b a\u200b", "\u2028a\u2029b", "\u3000\u3000日本語", "\u202f\u205f1", "\ufeffabc", "naïve café", "e\u0301 \u0301a", "१२३ ½ Ⅷ ² ①", "ǅ ʰ ª º ــ", "👩‍👩‍👧‍👦 🇨🇭 👍🏽",
         "\U0001d400\U0001d7ce \U00020000\U000e0001\U0010ffff", "Ω≈ç√∫˜µ≤≥÷", "مرحبا بالعالم", "สวัสดี", "नमस्ते", "<|endoftext|>", "\ue000\uf8ff\ufffe", "'ſ ’s 've’re", "\u0660\u06f9 ٣", "a\u2009'll \u2009b",
         " \u00e9", "  \u00e9", "\u00e9 ", "\u00e9  x", "\t\u00e9\t"]
draw = random.Random(1)
alphabet = " '\n\t\r\xa0\u2003\u3000aZé1²٣!-—日ß\u0301\u200d\u180e\x85\x1f👍\U0001d7cestremvld"
for _ in range(150):
    texts.append("".join(draw.choice(alphabet) for _ in range(draw.randrange(1, 40))))
for _ in range(50):
    points = [draw.choice((draw.randrange(0x80, 0x3000), draw.randrange(0x3000, 0x20000), 32, 39)) for _ in range(20)]
    texts.append("".join(chr(p) for p in points if not 0xD800 <= p < 0xE000 and unicodedata.category(chr(p)) != "Cn"))
print(json.dumps({"made_by": "tests/golden/gpt2_tokens.py, regex " + regex.__version__, "cases": []})[:-2] + "\n" +
      ",\n".join(json.dumps({"text": t, "ids": encode(t)}) for t in texts) + "\n]}")
