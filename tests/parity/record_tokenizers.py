#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small tokenizer of each kind with tokenizers, and records what it makes of texts.

usage: record_tokenizers.py [NAME...]    writes recorded/tokenizers/ (pip install tokenizers tiktoken sentencepiece)

A folder for each: the tokenizer's files, and cases.json with the ids of each text of texts.json, with special tokens
around it, without, and with those in the text as text; and what the ids without are decoded to.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
OUT = HERE / "recorded" / "tokenizers"
DEVIL = (HERE.parent.parent / "conf" / "text" / "devil.txt").read_text()
SCRIPTS = [
    "The quick brown fox doesn't jump over 1234567 lazy dogs; we've seen it, they'll say, I'd bet.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Приве́т!",
    "Ελληνικά: ο γρήγορος σκύλος ΣΊΣΥΦΟΣ, ά έ ή.",
    "敏捷的棕色狐狸跳过懒狗。我们在2024年学习自然语言处理。",
    "素早い茶色の狐がのろまな犬を飛び越える。カタカナﾊﾝｶｸガギグ゛。",
    "다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다.",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ١٢٣٤",
    "עטלף אבק נס דרך מזגן שהתפוצץ כי חם שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்",
    "Zażółć gęślą jaźń. Ångström Ǆ ǅ ǆ ﬁ ﬃ ½ ² ™ Ⅳ ① ℌ İstanbul straße ẞ e\u0301 o\u0308\u0323 a\u0323\u0308",
]
TRICKY = [
    "", " ", "  ", "\n", "\n\n", " \n ", "\t\tx", "x  ", "a\r\nb", "a \n\n b", "    indented(code)\n    more()\n\n\n",
    "I'M HERE, we'LL see; it'\u017f 'tis 'S'T", "3.14159 1,234,567 0x1F 10^100", "don't.can't!!!???", "a\u00a0b\u3000c\u2028d\u0085e\u180ef",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd ok", "CamelCaseWords XMLHttpRequest lowerUPPER \u01c5x \u02b0",
    "<s>hello</s>", "<|endoftext|>text<|endoftext|>  end", "[CLS] a [SEP] [MASK]x", "pre  <mask>  post", "wordy word words", "\u2581under\u2581score",
    "def f(x):\n\treturn x**2  # \u03bb\n", "http://example.org/a/b?c=d&e=f", "<0x41>", "a" * 200, "ab" * 90, " " * 70, "\u0301\u0301a\u0301", "\u200b\ufeff\u00adsoft",
    "e\u0301\u0323 \u1e69 \u212b \ud55c\u1112\u1161\u11ab", "\x00\x01\x7f\x80 ctl", "tail/\n/x", "a/\r\n/b ../\n", "\u4e00\u9fa5\u3400\U00020000 x", "\u0e01\u0e33 \u0949\u0915\u094d\u0937",
]
BROKEN = [b"a\xffb", b"\xe4\xb8", b"x\xed\xa0\x80y", b"\xf0\x9f\x98", b"\xc0\xafz", b"ok \xf4\x90\x80\x80 \x80\x80", b"\xe2\x82\xac\xe2\x82"]
SPECIAL = ["<s>", "</s>", "<|endoftext|>", "<unk>", "<pad>"]


def texts():
    draw = random.Random(3)
    found = [t.encode() for t in SCRIPTS + TRICKY] + BROKEN
    devil = DEVIL.split("\n\n")
    found += [draw.choice(devil).encode() for _ in range(6)]
    pool = "".join(SCRIPTS + TRICKY) + "".join(SPECIAL)
    found += ["".join(draw.choice(pool) for _ in range(draw.randrange(1, 60))).encode() for _ in range(20)]
    return found


def corpus():
    return DEVIL[:120000].split("\n") + SCRIPTS * 40


def trained(model, trainer, **parts):
    it = Tokenizer(model)
    for name, part in parts.items():
        setattr(it, name, part)
    it.train_from_iterator(corpus(), trainer)
    return it


def byte_level(split, vocab, **model):
    before = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    it = trained(models.BPE(**model),
                 trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"],
                                     show_progress=False),
                 pre_tokenizer=pre_tokenizers.Sequence(before + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)]))
    it.decoder = decoders.ByteLevel()
    return it


LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def gpt2():
    it = byte_level(None, 420)
    it.post_processor = processors.ByteLevel(trim_offsets=True)
    return it


def llama3():
    it = byte_level(rf"{SUFFIX}|{LETTERS}|\p{{N}}{{1,3}}|{SIGNS}|{BLANKS}", 420, ignore_merges=True)
    it.add_special_tokens(["<s>", "</s>"])
    it.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", it.token_to_id("<s>"))])])
    return it


def qwen():
    it = byte_level(rf"{SUFFIX}|{LETTERS}|\p{{N}}|{SIGNS}|{BLANKS}", 420)
    it.add_tokens([AddedToken("<mask>", lstrip=True, rstrip=True), AddedToken("word", single_word=True), AddedToken("  ", normalized=False)])
    return it


KINDS = {f.__name__: f for f in (gpt2, llama3, qwen)}


def save(name, it):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    it.save(str(folder / "tokenizer.json"), pretty=False)
    strings = [t.decode("utf-8", "replace") for t in texts()]
    case = {"ids": [it.encode(t, add_special_tokens=False).ids for t in strings], "special": [it.encode(t).ids for t in strings]}
    it.encode_special_tokens = True
    case["plain"] = [it.encode(t, add_special_tokens=False).ids for t in strings]
    case["decoded"] = [it.decode(ids) for ids in case["ids"]]
    (folder / "cases.json").write_text(json.dumps(case, separators=(",", ":"), ensure_ascii=False) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "texts.json").write_text("[\n" + ",\n".join(json.dumps(t.hex()) for t in texts()) + "\n]\n")
    for name in sys.argv[1:] or KINDS:
        save(name, KINDS[name]())


main()
