#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tokenizer/unicode_ages.def: where tokenizers' libraries know characters otherwise than utf8proc 2.8.

Its regular expressions are of Unicode 16; its punctuation and accents of Unicode 8; its normal forms of
Unicode 9. Python's own tables (3.11: Unicode 14) say which characters PCRE2 10.42 does not know.

usage: record_unicode.py PROGRAM    PROGRAM prints nxt_classes as utf8proc alone fills it: the names of the
classes in one line, then lines of a character and its classes, all in hexadecimal
"""

import pathlib
import subprocess
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0"
OUT = pathlib.Path(__file__).parent.parent.parent / "tokenizer" / "unicode_ages.def"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
AFTER = "a\u0334"


def removed(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    return lambda c: not split.pre_tokenize_str(c)


def one_word(c):
    return len(WORDS.pre_tokenize_str("a" + c)) == 1 and len(WORDS.pre_tokenize_str("a" + c)[0][0]) == 2


WORDS = pre_tokenizers.Whitespace()
PUNCTUATION = pre_tokenizers.Punctuation("removed")
CLEAN = normalizers.BertNormalizer(
    clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
)
ACCENTS = normalizers.BertNormalizer(
    clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
)
MARKS = normalizers.StripAccents()
NFD, NFKD = normalizers.NFD(), normalizers.NFKD()
REAL = {
    "LETTER": removed(r"\p{L}"),
    "UPPER": removed(r"[\p{Lu}\p{Lt}]"),
    "LOWER": removed(r"\p{Ll}"),
    "MARK": removed(r"\p{M}"),
    "NUMBER": removed(r"\p{N}"),
    "PUNCTUATION": removed(r"\p{P}"),
    "SYMBOL": removed(r"\p{S}"),
    "WORD": one_word,
    "CONTROL": lambda c: c in "\t\n\r" or CLEAN.normalize_str(c) == "" and c != "\ufffd",
    "OLD_PUNCTUATION": lambda c: not PUNCTUATION.pre_tokenize_str(c) if ord(c) >= 0x80 else None,
    "OLD_MARK": lambda c: MARKS.normalize_str(c) == "",
    "OLD_NONSPACING": lambda c: ACCENTS.normalize_str(c) == "",
}


def is_inert(c):
    """Whether its normal forms leave it where it is."""
    return (
        NFKD.normalize_str(c) == c
        and NFD.normalize_str("a" + c + "\u0334") == "a" + c + "\u0334"
        and unicodedata.name(c, "").find("JAMO") < 0
    )


def main():
    lines = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
    bits = {name: 1 << i for i, name in enumerate(lines[0].split())}
    ours = {int(line.split()[0], 16): int(line.split()[1], 16) for line in lines[1:] if line}
    rows = []
    for c in CHARACTERS:
        text, sets, clears = chr(c), 0, 0
        new = unicodedata.category(text) == "Cn"
        for name, real in REAL.items():
            is_so = real(text)
            if is_so is None:
                continue
            if is_so and (
                not ours[c] & bits[name]
                or new
                and name in ("LETTER", "UPPER", "LOWER", "MARK", "NUMBER", "PUNCTUATION", "SYMBOL")
            ):
                sets |= bits[name]
            if not is_so and ours[c] & bits[name]:
                clears |= bits[name]
        forms = bits["CANONICAL"] | bits["COMPATIBLE"]
        ordered = unicodedata.combining(text) != 0 or new
        moves = (
            ours[c] & bits["MARK"]
            and ordered
            and is_inert(text)
            or ours[c] & forms
            and NFKD.normalize_str(text) == text
            and not ours[c] & bits["MARK"]
        )
        if (
            ours[c] & forms
            and (moves or c in (0x11930, 0x11938))
            and not 0x1160 <= c < 0x1200
            and not combines(text)
        ):
            clears |= ours[c] & forms
        if not sets and not clears:
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2:] == [sets, clears]:
            rows[-1][1] = c
        else:
            rows.append([c, c, sets, clears])
    names = lambda flags: " | ".join("NXT_" + name for name, bit in bits.items() if flags & bit) or "0"
    OUT.write_text(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Written by tests/parity/record_unicode.py, which says what it is.\n *\n"
        " * AGE(first character, last, classes that it has, classes that it has not) */\n"
        + "".join(f"AGE(0x{a:x}, 0x{b:x}, {names(s)}, {names(n)})\n" for a, b, s, n in rows)
    )


def combines(c):
    """Whether it has an order among marks: the least comes before it, a greater one stays behind."""
    return (
        NFD.normalize_str("a" + c + "\u0334") != "a" + c + "\u0334"
        or NFD.normalize_str("a\u0345" + c) != "a\u0345" + c
    )


main()
