# SPDX-License-Identifier: Apache-2.0
"""Compares nxt_encode and nxt_decode with tokenizers, tiktoken and sentencepiece, text by text.

  compare_tokenizers.py PROGRAM TOKENIZER... --text FILE... [--fuzz N] [--seed S] [--plain] [--decode]

PROGRAM is tests/parity/tokenize. A TOKENIZER is a tokenizer.json, or KIND:FILE for tiktoken's files (KIND
names the pattern in tiktoken_ext or is qwen) and SentencePiece's (*.model). Texts are cut into parts of 64 KiB;
--fuzz makes N texts of pieces of their lines, of tokens, and of characters from everywhere, some of them broken
UTF-8; --characters looks at every character there is.
"""

import argparse
import random
import struct
import subprocess
import sys
import time
import unicodedata

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


class HuggingFace:
    def __init__(self, path):
        from tokenizers import Tokenizer

        self.it = Tokenizer.from_file(path)
        self.it.no_truncation()
        self.it.no_padding()
        self.tokens = [t for t in self.it.get_vocab()]

    def encode(self, text, special, plain):
        self.it.encode_special_tokens = plain
        return self.it.encode(text, add_special_tokens=special).ids

    def decode(self, ids):
        return self.it.decode(ids)


class Tiktoken:
    def __init__(self, kind, path):
        import base64
        import tiktoken
        import tiktoken_ext.openai_public as public

        ranks = {
            base64.b64decode(a): int(b)
            for a, b in (line.split() for line in open(path, "rb") if line.strip())
        }
        if kind == "qwen":
            pattern, special = QWEN, {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
        else:
            public.load_tiktoken_bpe = lambda *a, **k: ranks
            spec = public.ENCODING_CONSTRUCTORS[kind]()
            pattern, special = spec["pat_str"], spec["special_tokens"]
        self.it = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        self.tokens = [t.decode("utf-8", "replace") for t in ranks] + list(special)

    def encode(self, text, special, plain):
        return self.it.encode(text, disallowed_special=(), allowed_special=set() if plain else "all")

    def decode(self, ids):
        return self.it.decode(ids)


class SentencePiece:
    def __init__(self, path):
        import sentencepiece

        self.it = sentencepiece.SentencePieceProcessor(model_file=path)
        self.tokens = [self.it.id_to_piece(i) for i in range(self.it.get_piece_size())]

    def encode(self, text, special, plain):
        return self.it.encode(text, add_bos=special, add_eos=False)

    def decode(self, ids):
        return self.it.decode(ids)


def opened(name):
    kind, _, path = name.partition(":")
    if path:
        return path, Tiktoken(kind, path)
    return name, SentencePiece(name) if name.split("/")[-1].find(".model") > 0 else HuggingFace(name)


def ours(program, path, texts, words):
    fed = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    out = subprocess.run([program, path, *words], input=fed, stdout=subprocess.PIPE, check=True).stdout
    at, found = 0, []
    for _ in texts:
        (n,) = struct.unpack_from("<I", out, at)
        at += 4
        if n == 0xFFFFFFFF:
            found.append((None, b""))
            continue
        ids = list(struct.unpack_from(f"<{n}I", out, at))
        at += 4 * n
        (n,) = struct.unpack_from("<I", out, at)
        found.append((ids, out[at + 4 : at + 4 + n]))
        at += 4 + n
    return found


def random_char(draw):
    way = draw.random()
    if way < 0.3:
        return chr(draw.randrange(0x20, 0x7F))
    if way < 0.4:
        return draw.choice(" \t\n\r\u00a0\u3000\u200b\u2028\u0085\u180e\u200d\ufe0f")
    if way < 0.7:
        return chr(draw.randrange(0xA0, 0x3100))
    if way < 0.8:
        return chr(draw.randrange(0x4E00, 0x9FFF))
    if way < 0.9:
        return chr(draw.randrange(0x1F300, 0x1FAFF))
    c = draw.randrange(0x110000)
    return chr(c) if not 0xD800 <= c < 0xE000 else "x"


def fuzzed(draw, lines, tokens):
    made = b""
    for _ in range(draw.randrange(1, 12)):
        way = draw.random()
        if way < 0.3 and lines:
            line = draw.choice(lines)
            a = draw.randrange(len(line) + 1)
            made += line[a : a + draw.randrange(1, 30)]
        elif way < 0.5:
            made += draw.choice(tokens).encode("utf-8", "replace")
        elif way < 0.6:
            made += draw.choice(
                [" ", "  ", "\n", " \n ", "\r\n", "\t", "'s", "'S", "'\u017f", "1234567", "e\u0301"]
            ).encode()
        elif way < 0.63:
            made += bytes(draw.randrange(256) for _ in range(draw.randrange(1, 4)))
        else:
            made += "".join(random_char(draw) for _ in range(draw.randrange(1, 8))).encode("utf-8", "replace")
    return made


def is_new(text):
    """Characters that this Unicode knows and utf8proc's does not would be no difference of tokenizers."""
    return any(unicodedata.category(c) == "Cn" for c in text)


def show_difference(ids, expected, text, real):
    at = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
    near = slice(max(0, at - 2), at + 6)
    print(f"  ids differ at {at}: {ids[near]} not {expected[near]} of {text[:300]!r}, near")
    print(f"   {real.decode(expected[near])!r}; new characters: {is_new(text)}")


def compare(arguments, name, texts, lines):
    path, real = opened(name)
    draw = random.Random(arguments.seed)
    texts = texts + [fuzzed(draw, lines, real.tokens) for _ in range(arguments.fuzz)]
    words = ["special"] * arguments.special + ["plain"] * arguments.plain + ["keep"] * isinstance(real, Tiktoken)
    start = time.time()
    found = ours(arguments.program, path, texts, words)
    took = time.time() - start
    n_ids = n_bad = n_bad_text = 0
    start = time.time()
    for text, (ids, decoded) in zip(texts, found):
        as_str = text.decode("utf-8", "replace")
        expected = real.encode(as_str, arguments.special, arguments.plain)
        n_ids += len(expected)
        if ids != expected:
            n_bad += 1
            if n_bad <= arguments.show:
                show_difference(ids or [], expected, as_str, real)
        elif arguments.decode and decoded != real.decode(expected).encode():
            n_bad_text += 1
            if n_bad_text <= arguments.show:
                print(f"  text differs: {decoded!r} not {real.decode(expected).encode()!r}")
    print(
        f"{name}: {len(texts)} texts, {sum(map(len, texts))} bytes, {n_ids} ids: "
        f"{n_bad} differ, {n_bad_text} decode to "
        f"other text ({took:.1f} s, {time.time() - start:.1f} s)",
        flush=True,
    )
    return n_bad + n_bad_text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--text", nargs="+", default=[])
    parser.add_argument("--fuzz", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument(
        "--characters", action="store_true", help="every character, alone and after a letter and a mark"
    )
    parser.add_argument("--special", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--decode", action="store_true")
    arguments = parser.parse_args()
    whole = [open(name, "rb").read() for name in arguments.text]
    lines = [line for text in whole for line in text.split(b"\n") if line]
    texts = [text[i : i + 65536] for text in whole for i in range(0, len(text), 65536)]
    if arguments.characters:
        every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
        texts += ["\n".join(every[i : i + 16]).encode() for i in range(0, len(every), 16)]
        texts += [
            "\n".join(f"a{c}\u0323b \u0345{c}" for c in every[i : i + 16]).encode()
            for i in range(0, len(every), 16)
        ]
    return min(1, sum(compare(arguments, name, texts, lines) for name in arguments.tokenizers))


sys.exit(main())
