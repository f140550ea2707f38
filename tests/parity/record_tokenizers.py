#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small tokenizer of each kind with tokenizers, and records what it makes of texts.

usage: record_tokenizers.py [NAME...]    writes recorded/tokenizers/
       (pip install tokenizers tiktoken sentencepiece)

A folder for each: the tokenizer's files, and cases.json with the ids of each text of texts.json, with special
tokens around it, without, and with those in the text as text; and what the ids without are decoded to.
"""

import base64
import io
import json
import pathlib
import random
import sys
import types

import sentencepiece
import tiktoken

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

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
    "",
    " ",
    "  ",
    "\n",
    "\n\n",
    " \n ",
    "\t\tx",
    "x  ",
    "a\r\nb",
    "a \n\n b",
    "    indented(code)\n    more()\n\n\n",
    "I'M HERE, we'LL see; it'\u017f 'tis 'S'T",
    "3.14159 1,234,567 0x1F 10^100",
    "don't.can't!!!???",
    "a\u00a0b\u3000c\u2028d\u0085e\u180ef",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd ok",
    "CamelCaseWords XMLHttpRequest lowerUPPER \u01c5x \u02b0",
    "<s>hello</s>",
    "<|endoftext|>text<|endoftext|>  end",
    "[CLS] a [SEP] [MASK]x",
    "pre  <mask>  post",
    "wordy word words",
    "\u2581under\u2581score",
    "def f(x):\n\treturn x**2  # \u03bb\n",
    "http://example.org/a/b?c=d&e=f",
    "<0x41>",
    "a" * 200,
    "ab" * 90,
    " " * 70,
    "\u0301\u0301a\u0301",
    "\u200b\ufeff\u00adsoft",
    "e\u0301\u0323 \u1e69 \u212b \ud55c\u1112\u1161\u11ab",
    "\x00\x01\x7f\x80 ctl",
    "tail/\n/x",
    "a/\r\n/b ../\n",
    "\u4e00\u9fa5\u3400\U00020000 x",
    "\u0e01\u0e33 \u0949\u0915\u094d\u0937",
]
BROKEN = [
    b"a\xffb",
    b"\xe4\xb8",
    b"x\xed\xa0\x80y",
    b"\xf0\x9f\x98",
    b"\xc0\xafz",
    b"ok \xf4\x90\x80\x80 \x80\x80",
    b"\xe2\x82\xac\xe2\x82",
]
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
    it = trained(
        models.BPE(**model),
        trainers.BpeTrainer(
            vocab_size=vocab,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>"],
            show_progress=False,
        ),
        pre_tokenizer=pre_tokenizers.Sequence(
            before + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)]
        ),
    )
    it.decoder = decoders.ByteLevel()
    return it


BEFORE = r"[^\r\n\p{L}\p{N}]?"
LETTERS = BEFORE + r"\p{L}+"
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
    it.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", it.token_to_id("<s>"))]
            ),
        ]
    )
    return it


def qwen():
    it = byte_level(rf"{SUFFIX}|{LETTERS}|\p{{N}}|{SIGNS}|{BLANKS}", 420)
    it.add_tokens(
        [
            AddedToken("<mask>", lstrip=True, rstrip=True),
            AddedToken("word", single_word=True),
            AddedToken("  ", normalized=False),
        ]
    )
    return it


def o200k():
    it = byte_level(
        rf"{BEFORE}{CAPITALS}*{SMALL}+{SUFFIX}?|{BEFORE}{CAPITALS}+{SMALL}*{SUFFIX}?|"
        rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}",
        420,
    )
    it.normalizer = normalizers.NFC()
    it.add_special_tokens(["<s>", "</s>"])
    return it


def deepseek():
    """Patterns that no scanner is written for."""
    it = byte_level(
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
        r" ?[\p{P}\p{S}]+[\r\n]*|"
        rf"{BLANKS}",
        420,
    )
    splits = [
        pre_tokenizers.Split(Regex(p), "isolated")
        for p in (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", r"\w+\W?|^\h|.$")
    ]
    it.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    it.add_special_tokens(["<|endoftext|>", "<s>", "</s>"])
    return it


def llama2():
    it = trained(
        models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True),
        trainers.BpeTrainer(
            vocab_size=700,
            special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)],
            limit_alphabet=120,
            show_progress=False,
        ),
        normalizer=normalizers.Replace(" ", "\u2581"),
        pre_tokenizer=pre_tokenizers.Split("\u2581", "merged_with_next"),
    )
    it.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    it.pre_tokenizer = None
    it.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    it.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    it.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return it


def mistral():
    """Metaspace before the first word alone, and unknown characters that are not made one."""
    it = trained(
        models.BPE(unk_token="<unk>"),
        trainers.BpeTrainer(
            vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=90, show_progress=False
        ),
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=True),
    )
    it.decoder = decoders.Metaspace(prepend_scheme="first")
    it.add_special_tokens(["<s>", "</s>"])
    return it


def t5():
    it = trained(
        models.Unigram(),
        trainers.UnigramTrainer(
            vocab_size=420, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
        normalizer=normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        ),
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
    )
    it.decoder = decoders.Metaspace()
    it.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return it


def bert():
    it = trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(
            vocab_size=600,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            limit_alphabet=200,
            show_progress=False,
        ),
        normalizer=normalizers.BertNormalizer(),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
    )
    it.decoder = decoders.WordPiece()
    it.add_special_tokens([AddedToken("[MASK]", lstrip=True), "[CLS]", "[SEP]"])
    it.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return it


def clip():
    """Prefixes and ends of words, lower case, digits alone."""
    it = trained(
        models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="~"),
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<unk>"],
            end_of_word_suffix="</w>",
            continuing_subword_prefix="~",
            limit_alphabet=80,
            show_progress=False,
        ),
        normalizer=normalizers.Sequence(
            [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]
        ),
        pre_tokenizer=pre_tokenizers.Sequence(
            [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]
        ),
    )
    it.decoder = decoders.BPEDecoder("</w>")
    it.add_tokens(
        [
            AddedToken("Devil", normalized=True),
            AddedToken("fox", single_word=True, normalized=True, rstrip=True),
        ]
    )
    return it


def words():
    """Whole words, and splits of every behaviour."""
    it = trained(
        models.WordLevel(unk_token="<unk>"),
        trainers.WordLevelTrainer(vocab_size=400, special_tokens=["<unk>"], show_progress=False),
        normalizer=normalizers.NFKD(),
        pre_tokenizer=pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split("a", "merged_with_previous"),
                pre_tokenizers.Split(Regex("[o-q]+"), "merged_with_next"),
                pre_tokenizers.Punctuation("contiguous"),
                pre_tokenizers.CharDelimiterSplit(" "),
                pre_tokenizers.Digits(),
                pre_tokenizers.Split(Regex(r"\s"), "removed"),
            ]
        ),
    )
    return it


def mapped():
    """Characters for bytes before words are cut."""
    it = trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
        normalizer=normalizers.ByteLevel(),
        pre_tokenizer=pre_tokenizers.Split(Regex("\u0120?[^\u0120]+"), "isolated"),
    )
    it.decoder = decoders.ByteLevel()
    return it


KINDS = {
    f.__name__: f
    for f in (gpt2, llama3, qwen, o200k, deepseek, llama2, mistral, t5, bert, clip, words, mapped)
}


class Files:
    """Tokenizers of other libraries, as tokenizers' look."""

    encode_special_tokens = False

    def __init__(self, names, ids, decode):
        self.names, self.ids, self.decode = names, ids, decode

    def save(self, path, pretty):
        for name, data in self.names.items():
            (pathlib.Path(path).parent / name).write_bytes(data)

    def encode(self, text, add_special_tokens=True):
        return types.SimpleNamespace(ids=self.ids(text, self.encode_special_tokens))


def sentencepiece_model(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, minloglevel=2, **options
    )
    it = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return Files({"tokenizer.model": model.getvalue()}, lambda text, plain: it.encode(text), it.decode)


def spm_pairs():
    return sentencepiece_model(
        vocab_size=700,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        character_coverage=0.99,
        user_defined_symbols=["<s2>", "fox", "\u2581\u2581", "quick b"],
        control_symbols=["<ctl>"],
        split_digits=True,
        allow_whitespace_only_pieces=True,
    )


def spm_unigram():
    rules = OUT / "rules.tsv"
    rules.write_text("41\t61\n42\t62\nFB01\t66 69\n65 301\tE9\n3000\t20\n9\t20\nA\t20\nAD\t\n")
    it = sentencepiece_model(
        vocab_size=500,
        model_type="unigram",
        normalization_rule_tsv=str(rules),
        character_coverage=0.98,
        user_defined_symbols=["<sep>", "devil"],
        hard_vocab_limit=False,
    )
    rules.unlink()
    return it


def small_ranks(pattern):
    """Tokens of a small vocabulary of bytes, in the order of their ranks."""
    pairs = json.loads(byte_level(pattern, 500).to_str())["model"]["merges"]
    unbyte = {ord(c): b for b, c in bytes_to_characters().items()}
    return [bytes([b]) for b in range(256)] + [bytes(unbyte[ord(c)] for c in a + b) for a, b in pairs]


def listed(tokens):
    return [
        {"rank": r, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
        for r, t in enumerate(tokens)
    ]


TEKKEN = (
    rf"{BEFORE}{CAPITALS}*{SMALL}+|{BEFORE}{CAPITALS}+{SMALL}*|\p{{N}}|"
    rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
)


def megatron():
    """Megatron's TikTokenizer, told nothing but the file."""
    tokens = small_ranks(TEKKEN)
    named = ["<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"]
    special = {text: i for i, text in enumerate(named + [f"<SPECIAL_{i}>" for i in range(7, 1000)])}
    it = tiktoken.Encoding(
        "small",
        pat_str=TEKKEN,
        mergeable_ranks={t: r + 1000 for r, t in enumerate(tokens)},
        special_tokens=special,
    )
    return Files(
        {"vocab.json": json.dumps(listed(tokens), separators=(",", ":")).encode()},
        lambda text, plain: it.encode(text, disallowed_special=(), allowed_special=set() if plain else "all"),
        lambda ids: it.decode([i for i in ids if i >= 1000]),
    )


def tekken():
    tokens = small_ranks(TEKKEN)
    it = tiktoken.Encoding(
        "small", pat_str=TEKKEN, mergeable_ranks={t: r for r, t in enumerate(tokens)}, special_tokens={}
    )
    file = {
        "config": {
            "pattern": TEKKEN,
            "default_vocab_size": len(tokens) + 20,
            "default_num_special_tokens": 20,
            "version": "v3",
        },
        "vocab": listed(tokens),
    }
    return Files(
        {"tekken.json": json.dumps(file, separators=(",", ":")).encode()},
        lambda text, plain: [i + 20 for i in it.encode(text, disallowed_special=())],
        lambda ids: it.decode([i - 20 for i in ids]),
    )


def gpt2_files():
    """GPT-2's own two files."""
    model = json.loads((it := gpt2()).to_str())["model"]
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"])

    def ids(text, plain):
        it.encode_special_tokens = plain
        return it.encode(text).ids

    return Files(
        {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": merges.encode()}, ids, it.decode
    )


def bytes_to_characters():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


KINDS.update({f.__name__: f for f in (spm_pairs, spm_unigram, tekken, megatron, gpt2_files)})


def save(name, it):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    it.save(str(folder / "tokenizer.json"), pretty=False)
    strings = [t.decode("utf-8", "replace") for t in texts()]
    case = {
        "ids": [it.encode(t, add_special_tokens=False).ids for t in strings],
        "special": [it.encode(t).ids for t in strings],
    }
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
