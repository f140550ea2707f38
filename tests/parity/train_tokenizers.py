#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small tokenizer in the pipeline of each family: of all classes that transformers builds one for, and of models
whose pipeline stands in their tokenizer.json alone, written here with the library's own parts.

  pip install transformers tokenizers; train_tokenizers.py FOLDER TEXT...
  compare_tokenizers.py build/tests/parity/tokenize FOLDER/*.json --text TEXT... --fuzz 3000 --decode
"""
import importlib
import inspect
import pathlib
import pkgutil
import sys

import transformers.models
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import TokenizersBackend

VOCAB = 1200
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+"]
DEEPSEEK_CODER = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+"]
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
NEMOTRON = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
FALCON3 = r"[0-9][0-9][0-9]"

split = lambda pattern, how="isolated", invert=False: pre_tokenizers.Split(Regex(pattern), how, invert)
byte_level = lambda **options: pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})
digits = pre_tokenizers.Digits
sequence = pre_tokenizers.Sequence


def byte_pairs(pre, normalizer=None, special=("<|endoftext|>",), processor=None, **options):
  it = Tokenizer(models.BPE(**options))
  it.pre_tokenizer, it.decoder = pre, decoders.ByteLevel()
  if normalizer: it.normalizer = normalizer
  it.post_processor = processor or processors.ByteLevel(trim_offsets=False)
  return it, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=list(special), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                 show_progress=False)


def piece_pairs(normalizer, pre, decoder, **options):
  """As SentencePiece's pairs are converted: characters, and bytes for those that are none."""
  it = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **options))
  it.normalizer, it.decoder = normalizer, decoder
  if pre: it.pre_tokenizer = pre
  special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
  return it, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=special, show_progress=False, max_token_length=12)


LLAMA2_DECODER = lambda: decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
FAMILIES = {
    "llama3": lambda: byte_pairs(sequence([split(CL100K), byte_level()]), ignore_merges=True, special=["<|begin_of_text|>", "<|eot_id|>"],
                                 processor=processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(
                                     single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])])),
    "qwen2": lambda: byte_pairs(sequence([split(QWEN), byte_level()]), normalizers.NFC(), special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
    "gpt_4o": lambda: byte_pairs(sequence([split(O200K), byte_level()]), ignore_merges=True),
    "deepseek_v3": lambda: byte_pairs(sequence([split(p) for p in DEEPSEEK] + [byte_level()]), normalizers.Sequence([]),
                                      special=["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"]),
    "deepseek_coder": lambda: byte_pairs(sequence([split(p) for p in DEEPSEEK_CODER] + [digits(True), byte_level()])),
    "kimi": lambda: byte_pairs(sequence([split(KIMI), byte_level()])),
    "nemotron": lambda: byte_pairs(sequence([split(NEMOTRON), byte_level()]), ignore_merges=True),
    "mistral_nemo": lambda: byte_pairs(sequence([split(O200K.replace(r"\p{N}{1,3}", r"\p{N}")), byte_level()]), ignore_merges=True),
    "bloom": lambda: byte_pairs(sequence([split(BLOOM), byte_level()]), processor=processors.ByteLevel(trim_offsets=False)),
    "falcon": lambda: byte_pairs(sequence([pre_tokenizers.Punctuation("contiguous"), byte_level(use_regex=True), digits(False), split(FALCON3)])),
    "falcon3": lambda: byte_pairs(sequence([pre_tokenizers.Punctuation("contiguous"), digits(True), byte_level(use_regex=True)])),
    "starcoder": lambda: byte_pairs(sequence([digits(True), byte_level(use_regex=True)])),
    "smollm": lambda: byte_pairs(sequence([digits(True), byte_level(use_regex=True)]), special=["<|endoftext|>", "<|im_start|>"]),
    "olmo": lambda: byte_pairs(byte_level(use_regex=True), normalizers.NFC(), special=["<|endoftext|>", "<|padding|>"]),
    "gpt_neox": lambda: byte_pairs(byte_level(use_regex=True), normalizers.NFC()),
    "opt": lambda: byte_pairs(byte_level(use_regex=True, add_prefix_space=False), special=["<pad>", "</s>"],
                              processor=processors.TemplateProcessing(single="</s> $A", special_tokens=[("</s>", 1)])),
    "roberta_prefix": lambda: byte_pairs(byte_level(use_regex=True, add_prefix_space=True), special=["<s>", "</s>"],
                                         processor=processors.RobertaProcessing(("</s>", 1), ("<s>", 0), True, True)),
    "cohere_command": lambda: byte_pairs(sequence([digits(True), byte_level(use_regex=True)]), normalizers.NFC()),
    "glm4": lambda: byte_pairs(sequence([split(CL100K), byte_level()]), ignore_merges=True),
    "granite": lambda: byte_pairs(sequence([digits(True), byte_level(use_regex=True)]), normalizers.Sequence([normalizers.NFKC()])),
    "phi3": lambda: piece_pairs(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, LLAMA2_DECODER()),
    "mistral_v3": lambda: piece_pairs(None or normalizers.Sequence([]), pre_tokenizers.Metaspace("▁", "first", False), LLAMA2_DECODER()),
    "yi": lambda: piece_pairs(normalizers.Sequence([normalizers.Replace(" ", "▁")]), None,
                              decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])),
    "internlm2": lambda: piece_pairs(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), split("▁+", "merged_with_next"),
                                     LLAMA2_DECODER()),
    "gemma3": lambda: piece_pairs(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous", False),
                                  decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])),
    "minicpm": lambda: piece_pairs(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), digits(True), LLAMA2_DECODER()),
}


def trainer_of(it):
  """For the model of a class of transformers."""
  special = [t.content for _, t in sorted(it.get_added_tokens_decoder().items())] or ["<unk>"]
  options = dict(vocab_size=VOCAB, special_tokens=special, show_progress=False)
  if isinstance(it.model, models.Unigram):
    unknown = "<unk>" if "<unk>" in special else special[0]
    return trainers.UnigramTrainer(unk_token=unknown, **options)
  if isinstance(it.model, models.WordPiece): return trainers.WordPieceTrainer(**options)
  if isinstance(it.model, models.WordLevel): return trainers.WordLevelTrainer(**options)
  bytes_of = "ByteLevel" in str(it.pre_tokenizer) or "ByteLevel" in str(it.normalizer)
  if it.model.end_of_word_suffix: options["end_of_word_suffix"] = it.model.end_of_word_suffix
  if it.model.byte_fallback: options["special_tokens"] = special + [f"<0x{byte:02X}>" for byte in range(256)]
  return trainers.BpeTrainer(**options, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if bytes_of else [], max_token_length=16)


def classes():
  found = {}
  for package in pkgutil.iter_modules(transformers.models.__path__):
    try: module = importlib.import_module(f"transformers.models.{package.name}.tokenization_{package.name}")
    except Exception: continue  # it asks for a package that is not there
    for name, kind in inspect.getmembers(module, inspect.isclass):
      if issubclass(kind, TokenizersBackend) and kind is not TokenizersBackend and kind.__module__ == module.__name__: found[name] = kind
  return found


def main():
  folder, texts = pathlib.Path(sys.argv[1]), [pathlib.Path(name).read_text(errors="replace") for name in sys.argv[2:]]
  folder.mkdir(parents=True, exist_ok=True)
  corpus = [line + "\n" for text in texts for line in text.split("\n")]
  for name, make in FAMILIES.items():
    if (folder / f"{name}.json").exists(): continue
    it, trainer = make()
    it.train_from_iterator(corpus, trainer)
    it.add_tokens([AddedToken("<|extra|>", normalized=False, lstrip=True), AddedToken("naïve", single_word=True)])
    it.save(str(folder / f"{name}.json"))
  left_out = []
  for name, kind in classes().items():
    try:
      if (folder / f"{name}.json").exists(): continue
      it = kind()._tokenizer
      it.train_from_iterator(corpus, trainer_of(it))
      it.save(str(folder / f"{name}.json"))
    except Exception as error: left_out.append(f"{name} ({type(error).__name__}: {str(error)[:80]})")
  print(f"{len(list(folder.glob('*.json')))} tokenizers; not made: {'; '.join(left_out) or 'none'}")


if __name__ == "__main__":
  main()
