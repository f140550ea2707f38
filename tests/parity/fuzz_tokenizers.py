# SPDX-License-Identifier: Apache-2.0
"""Random tokenizers, compared with `tokenizers` on random texts, encoded and decoded again: normalizers x pre-tokenizers x
models x added tokens x post-processors x decoders.

  fuzz_tokenizers.py PROGRAM [--n N] [--seed S] [--only K]

PROGRAM is tests/parity/tokenize. What it refuses by name is counted; what differs is printed with the tokenizer.json,
and the exit status is 1 then. --only: of these the K-th alone.
"""

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WORDS = ("the of and Über straße naïve İstanbul ﬁne x² Ⅷ 你好 世界 こんにちは 한국어 привет مرحبا שלום ไทย नमस्ते 🙂 👩‍👩‍👧 "
         "don't can't 123 4567 3.14 a_b C++ <s> </s> [MASK] <mask> ▁x # ## @@ é é ö\u0308 \u200d \u00a0 \u3000 \t \r\n \n ！ … — “q”").split(" ")
ALPHABET = sorted(set("".join(WORDS)) | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?'\"-_()[]{}<>/\\|@#$%^&*+=~`▁Ġ"))
# Marks that combine, joiners, directions, controls, forms that fold to others, what lies at the ends of planes.
HOSTILE = ["e\u0301\u0323", "\u0344", "\u0958", "\u1E9B\u0323", "\uFB03", "\uFDFA", "\u3392", "\uFF21\uFF42", "\u212B", "\u2126",
           "\U0001F3F4\U000E0067\U000E0062\U000E007F", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\u2764\uFE0F", "\U0001F1E9\U0001F1EA",
           "\u202Eabc\u202C", "\u2066x\u2069", "\u200F", "\uFEFF", "\u00AD", "\u180E", "\u2028", "\x85", "\x00", "\x07", "\x7F", "\x1c",
           "\uFFFD", "\uFFFE", "\U0010FFFF", "\uE000", "\U0001D400", "\U00020000", "\uAC00\u11A8", "\u1100\u1161", "\u0130", "\u0131",
           "\u03A3", "\u0391\u03A3", "\u1F88", "\u01C5", "\u00DF", "\u1E9E", "\u0E33", "\u0F73", "\u3000", "\u2009", "\u30AB\u3099",
           "\uFF76\uFF9E", "\u4E00", "\u3007", "\u30FC", "<s>x</s>", "[MASK]", "\u00B2\u00B3", "\u0661\u0662", "\u00BD", "\u2160"]


def charsmap():
  """SentencePiece's own, of a model that it trained."""
  from sentencepiece import sentencepiece_model_pb2
  model = sentencepiece_model_pb2.ModelProto()
  model.ParseFromString((Path(__file__).parent / "recorded/tokenizers/spm_unigram/tokenizer.model").read_bytes())
  return model.normalizer_spec.precompiled_charsmap


CHARSMAP = charsmap()


def random_text(r):
  parts = []
  for _ in range(r.randrange(0, 12)):
    kind = r.random()
    if kind < 0.6: parts.append(r.choice(WORDS))
    elif kind < 0.8: parts.append("".join(r.choice(ALPHABET) for _ in range(r.randrange(1, 6))))
    elif kind < 0.9: parts.append(r.choice([" ", "  ", "\n", "\t", "   ", ""]))
    elif kind < 0.95: parts.append(chr(r.choice([r.randrange(32, 0x250), r.randrange(0x250, 0xD800), r.randrange(0xE000, 0x1FFFF)])))
    elif kind < 0.98: parts.append(r.choice(HOSTILE))
    else: parts.append(r.choice(ALPHABET + HOSTILE) * r.randrange(20, 300))
  return r.choice(["", " "]).join(parts)


def random_normalizer(r, depth=0):
  simple = [lambda: normalizers.NFC(), lambda: normalizers.NFD(), lambda: normalizers.NFKC(), lambda: normalizers.NFKD(),
            lambda: normalizers.Lowercase(), lambda: normalizers.StripAccents(),
            lambda: normalizers.Strip(r.random() < .5, r.random() < .5),
            lambda: normalizers.Replace(r.choice([" ", "a", "é", "''", "``", "ab"]), r.choice(["▁", "", "x", "\"", " "])),
            lambda: normalizers.Replace(Regex(r.choice([r"\s+", r" {2,}", r"[0-9]", r"(?i)the", r"\p{P}"])), r.choice([" ", "▁", "#", ""])),
            lambda: normalizers.Prepend("▁"), lambda: normalizers.Nmt(),
            lambda: normalizers.ByteLevel(), lambda: normalizers.Precompiled(CHARSMAP),
            lambda: normalizers.BertNormalizer(r.random() < .5, r.random() < .5, r.choice([None, True, False]), r.random() < .5)]
  if depth == 0 and r.random() < .4:
    return normalizers.Sequence([random_normalizer(r, 1) for _ in range(r.randrange(1, 4))])
  return r.choice(simple)()


def random_split(r, depth=0):
  behaviours = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
  simple = [lambda: pre_tokenizers.Whitespace(), lambda: pre_tokenizers.WhitespaceSplit(), lambda: pre_tokenizers.BertPreTokenizer(),
            lambda: pre_tokenizers.Metaspace("▁", r.choice(["always", "never", "first"]), r.random() < .7),
            lambda: pre_tokenizers.FixedLength(r.randrange(1, 8)), lambda: pre_tokenizers.UnicodeScripts(),
            lambda: pre_tokenizers.CharDelimiterSplit(r.choice("_- a")),
            lambda: pre_tokenizers.Punctuation(r.choice(behaviours)), lambda: pre_tokenizers.Digits(r.random() < .5),
            lambda: pre_tokenizers.Split(r.choice([" ", "a", "'"]), r.choice(behaviours), r.random() < .2),
            lambda: pre_tokenizers.Split(Regex(r.choice([r"\s+", r"\p{L}+", r"\d{1,3}", r"[^\s\p{L}\p{N}]+", r"(?i:'s|'t)", r"\w+|[^\w\s]+"])),
                                         r.choice(behaviours), r.random() < .3)]
  if depth == 0 and r.random() < .4:
    return pre_tokenizers.Sequence([random_split(r, 1) for _ in range(r.randrange(1, 4))])
  return r.choice(simple)()


def random_bpe(r, symbols, byte_level):
  vocab = {s: i for i, s in enumerate(symbols)}
  merges = []
  for _ in range(r.randrange(0, 120)):
    a, b = r.choice(list(vocab)), r.choice(list(vocab))
    if len(a + b) > 8 or a + b in vocab: continue
    vocab[a + b] = len(vocab)
    merges.append((a, b))
  options = {}
  if not byte_level:
    if r.random() < .5:
      vocab.setdefault("<unk>", len(vocab))
      options["unk_token"] = "<unk>"
      options["fuse_unk"] = r.random() < .5
    if r.random() < .3:
      for byte in range(256): vocab.setdefault(f"<0x{byte:02X}>", len(vocab))
      options["byte_fallback"] = True
    if r.random() < .15: options["end_of_word_suffix"] = "</w>"
    if r.random() < .1:
      options["continuing_subword_prefix"] = "##"
      for s in symbols: vocab.setdefault("##" + s, len(vocab))
      merges = []
      for _ in range(60):
        a, b = r.choice(list(vocab)), r.choice([v for v in vocab if v[:2] == "##"])
        if a + b[2:] not in vocab and len(a + b) < 9:
          vocab[a + b[2:]] = len(vocab)
          merges.append((a, b))
  if r.random() < .2: options["ignore_merges"] = True
  return models.BPE(vocab=vocab, merges=merges, **options)


def random_words(r, n):
  return {"".join(r.choice(ALPHABET) for _ in range(r.randrange(1, 5))) for _ in range(n)} | {w for w in WORDS if w and r.random() < .5}


def random_tokenizer(r):
  kind = r.choice(["bytes", "bpe", "bpe", "unigram", "wordpiece", "wordlevel"])
  if kind == "bytes": it = Tokenizer(random_bpe(r, pre_tokenizers.ByteLevel.alphabet(), True))
  elif kind == "bpe": it = Tokenizer(random_bpe(r, [c for c in ALPHABET if r.random() < .95], False))
  elif kind == "unigram":
    pieces = [("<unk>", 0.0)] + [(w, -r.random() * 12) for w in sorted(random_words(r, 200) | set(ALPHABET))]
    fallback = r.random() < .3
    if fallback: pieces += [(f"<0x{b:02X}>", -12.0) for b in range(256)]
    it = Tokenizer(models.Unigram(pieces, 0, fallback))
  elif kind == "wordpiece":
    words = sorted(random_words(r, 200) | set(ALPHABET))
    vocab = {w: i for i, w in enumerate(["[UNK]"] + words + ["##" + w for w in words])}
    it = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=r.choice([5, 100])))
  else:
    it = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["[UNK]"] + sorted(random_words(r, 300)))}, unk_token="[UNK]"))
  if r.random() < .7: it.normalizer = random_normalizer(r)
  if kind == "bytes":
    split = pre_tokenizers.ByteLevel(r.random() < .5, use_regex=r.random() < .7)
    it.pre_tokenizer = split if r.random() < .6 else pre_tokenizers.Sequence([random_split(r, 1), split])
    it.decoder = decoders.ByteLevel()
  elif r.random() < .8: it.pre_tokenizer = random_split(r)
  tokens = [AddedToken(w, single_word=r.random() < .3, lstrip=r.random() < .3, rstrip=r.random() < .3, normalized=r.random() < .5)
            for w in r.sample(["<s>", "</s>", "[MASK]", "<mask>", "don't", "世界", "the", "a b", "é"], r.randrange(0, 4))]
  if tokens: (it.add_special_tokens if r.random() < .5 else it.add_tokens)(tokens)
  if r.random() < .6: it.post_processor = random_processor(r)
  if r.random() < .6: it.decoder = random_decoder(r)
  # What its file says of these is meant for batches: transformers sets them anew for each call.
  if r.random() < .2: it.enable_truncation(r.randrange(3, 9))
  if r.random() < .2: it.enable_padding(length=r.choice([None, 64]), pad_id=0, pad_token="<pad>")
  return it


def broken(r, text):
  """Its bytes, with some that are no UTF-8 among them."""
  made = bytearray(text.encode())
  for _ in range(r.choice([0, 0, 0, 1, 3])):
    made[(at := r.randrange(len(made) + 1)):at] = r.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\x80",
                                                          b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\r", b"\x00"])
  return bytes(made)


def random_processor(r):
  """What stands around a text: one step, or several, the later outside."""
  token = lambda: (r.choice(["[A]", "[B]", "[C]"]), r.randrange(0, 90))
  def template():
    before, after = ([token() for _ in range(r.randrange(0, 3))] for _ in range(2))
    ids = dict(before + after)
    return processors.TemplateProcessing(single=[f"{t}:0" for t, _ in before] + ["$A:0"] + [f"{t}:0" for t, _ in after],
                                         special_tokens=list(ids.items()))
  kinds = [template, lambda: processors.BertProcessing(token(), token()), lambda: processors.ByteLevel(trim_offsets=False),
           lambda: processors.RobertaProcessing(token(), token(), trim_offsets=r.random() < .5)]
  if r.random() < .6: return r.choice(kinds)()
  return processors.Sequence([r.choice(kinds[1:])() for _ in range(r.randrange(1, 3))] + [r.choice(kinds)()])


def random_decoder(r):
  kinds = [lambda: decoders.ByteFallback(), lambda: decoders.Fuse(), lambda: decoders.Metaspace("▁", r.choice(["always", "first", "never"])),
           lambda: decoders.WordPiece("##", r.random() < .5), lambda: decoders.Replace(r.choice(["▁", "a", "##"]), r.choice([" ", ""])),
           lambda: decoders.Strip(r.choice([" ", "a"]), r.randrange(0, 3), r.randrange(0, 3)), lambda: decoders.ByteLevel(),
           lambda: decoders.BPEDecoder(r.choice(["</w>", "a"]))]
  steps = [r.choice(kinds)() for _ in range(r.choice([1, 1, 2, 3]))]
  return steps[0] if len(steps) == 1 else decoders.Sequence(steps)


def ours(program, path, texts, special=True):
  data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
  done = subprocess.run([program, path, *["special"] * special, "keep"], input=data, capture_output=True)
  if done.returncode: return None, done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
  out, at, result = done.stdout, 0, []
  for _ in texts:
    (n,) = struct.unpack_from("<I", out, at)
    at += 4
    if n == 0xFFFFFFFF:
      result.append(None)
      continue
    ids = list(struct.unpack_from(f"<{n}I", out, at))
    at += 4 * n
    (size,) = struct.unpack_from("<I", out, at)
    result.append((ids, out[at + 4:at + 4 + size].decode(errors="replace")))
    at += 4 + size
  return result, None


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("program")
  parser.add_argument("--n", type=int, default=200)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--only", type=int)
  a = parser.parse_args()
  refused, wrong, n_texts = {}, 0, 0
  for k in range(a.n):
    r = random.Random(f"{a.seed} {k}")
    if a.only is not None and k != a.only: continue
    try: it = random_tokenizer(r)
    except Exception: continue
    texts = [broken(r, random_text(r)) for _ in range(40)]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
      it.save(file.name)
      result, why = ours(a.program, file.name, texts)
      spec = json.load(open(file.name))
    it.no_truncation()
    it.no_padding()
    if result is None:
      why = why.split(".json: ")[-1][:100]
      refused[why] = refused.get(why, 0) + 1
      continue
    for text, ids in zip(texts, result):
      try:
        theirs = it.encode(text.decode(errors="replace")).ids
        theirs = theirs, it.decode(theirs, skip_special_tokens=False)
      except BaseException: theirs = None
      n_texts += 1
      if ids == theirs or theirs is None: continue  # tokenizers itself panics at some
      wrong += 1
      shown = {key: spec[key] for key in ("normalizer", "pre_tokenizer", "added_tokens", "post_processor", "decoder")}
      model = {key: value for key, value in spec["model"].items() if key not in ("vocab", "merges")}
      print(f"--- {k}: {text!r}\n  theirs {theirs}\n  ours   {ids}\n  {json.dumps(shown, ensure_ascii=False)}\n  {model}")
      break
  print(f"{a.n} tokenizers, {n_texts} texts: {wrong} differ; refused: {refused}")
  sys.exit(wrong > 0)


if __name__ == "__main__":
  main()
