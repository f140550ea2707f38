# SPDX-License-Identifier: Apache-2.0
"""Records what transformers makes of dialogues and completions: token ids, and which of them the loss counts.

usage: record_answers.py   writes recorded/answers/

model/ is a small Llama that is trained for 20 steps on the dialogues of llama3.chatml, losses of prompts left out:
loss and norm of the gradient at each step, where the mean is over the tokens of a step, or of micro-batches of two.

Each TOKENIZER.TEMPLATE.txt has a line of ids and a line of weights for all documents together; the tests compare what
nxdata writes. Without a generation tag a turn of the assistant is what the template adds behind its own prompt.
"""
import json
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = Path(__file__).parent
OUT = HERE / "recorded/answers"
DIALOGUES = [
    [("user", "What is 2+2?"), ("assistant", "It is 4."), ("user", "And 3+3?"), ("assistant", "6")],
    [("system", "Answer in one w\u00f6rd."), ("user", "\u4f60\u597d?"), ("assistant", "  S\u00fc\u00df \U0001f600 yes\n")],
    [("user", "Say nothing."), ("assistant", "")],
    [("user", "x" * 40), ("assistant", "the quick brown fox " * 6)],
]
COMPLETIONS = [("Translate: house\n", "Haus"), ("", "only an answer"), ("\u00dcber ", "\u4f60\u597d \U0001f600"), ("q", "")]


def messages(dialogue):
    return [{"role": role, "content": content} for role, content in dialogue]


def turns(tokenizer, template, dialogue):
    """Spans in characters of the assistant's turns, by what each adds."""
    def text(n, prompt):
        return tokenizer.apply_chat_template(dialogue[:n], chat_template=template, tokenize=False,
                                             add_generation_prompt=prompt)
    return [(len(text(i, True)), len(text(i + 1, False)))
            for i, message in enumerate(dialogue) if message["role"] == "assistant"]


def by_turns(tokenizer, template, dialogue):
    text = tokenizer.apply_chat_template(dialogue, chat_template=template, tokenize=False)
    encoded = tokenizer(text, add_special_tokens=False)
    mask = [0] * len(encoded["input_ids"])
    for begin, end in turns(tokenizer, template, dialogue):
        for token in range(encoded.char_to_token(begin), encoded.char_to_token(end - 1) + 1):
            mask[token] = 1
    return encoded["input_ids"], mask


def by_tag(tokenizer, template, dialogue):
    made = tokenizer.apply_chat_template(dialogue, chat_template=template, return_dict=True,
                                         return_assistant_tokens_mask=True)
    return made["input_ids"], made["assistant_masks"]


def completion(tokenizer, prompt, answer):
    asked = [tokenizer.bos_token_id] + tokenizer(prompt, add_special_tokens=False)["input_ids"]
    answered = tokenizer(answer, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    return asked + answered, [0] * len(asked) + [1] * len(answered)


def write(name, documents):
    documents = [document for document in documents if any(document[1])]
    lines = [" ".join(str(number) for document in documents for number in document[part]) for part in (0, 1)]
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")


def make_model():
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=432, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2))
    with torch.no_grad():
        for tensor in model.parameters():
            tensor += 0.05 * torch.randn_like(tensor)
    return model


def loss_of(model, documents):
    """Sum of the losses of what counts, and how many these are."""
    total, count = 0.0, 0
    for ids, mask in documents:
        labels = torch.tensor([token if counts else -100 for token, counts in zip(ids, mask)][1:])
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1]
        total = total + torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
        count += int((labels != -100).sum())
    return total, count


def train(documents, micro_batch):
    model = make_model().double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    steps = []
    for _ in range(20):
        parts = [loss_of(model, documents[at:at + micro_batch]) for at in range(0, len(documents), micro_batch)]
        loss = sum(total / count for total, count in parts) / len(parts)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps.append(f"{loss.item():.9g} {norm.item():.9g}")
    return "\n".join(steps) + "\n"


def record_training(documents):
    make_model().save_pretrained(OUT / "model")
    (OUT / "model/generation_config.json").unlink(missing_ok=True)
    (OUT / "trained_step.txt").write_text(train(documents, len(documents)))
    (OUT / "trained_micro.txt").write_text(train(documents, 2))


def record(name):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "recorded/tokenizers" / name / "tokenizer.json", folder)
        shutil.copy(OUT / "tokenizer_config.json", folder)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text()
        if path.stem not in ("chatml", "llama2-format", "llama3-format"):
            continue
        make = by_tag if "generation %}" in template else by_turns
        documents = [make(tokenizer, template, messages(dialogue)) for dialogue in DIALOGUES]
        write(f"{name}.{path.stem}", documents)
        if name == "llama3" and path.stem == "chatml":
            record_training(documents)
    write(f"{name}.completions", [completion(tokenizer, *pair) for pair in COMPLETIONS])


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    (OUT / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>", "special": true}, '
                                               '"tokenizer_class": "PreTrainedTokenizerFast"}\n')
    with open(OUT / "dialogues.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"messages": messages(dialogue)}) + "\n" for dialogue in DIALOGUES)
    with open(OUT / "completions.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"prompt": prompt, "completion": answer}) + "\n" for prompt, answer in COMPLETIONS)
    for tokenizer_name in ("llama3", "llama2"):
        record(tokenizer_name)
