# SPDX-License-Identifier: Apache-2.0
"""Records what transformers makes of dialogues by chat templates, for tests/unit/test_chat.c.

usage: record_chat.py [--random N] [OUT.json TEMPLATE.jinja...]   without arguments: recorded/chat.json from templates/

--random: N made-up dialogues more, the same ones every time.
Each template meets each dialogue of DIALOGUES and ODD, and each of SNIPPETS the names of NAMES. A case has its text and the
spans of generation tags (in bytes), or null where it is refused.
"""
import json
import random
import sys
from datetime import datetime, timezone
from pathlib import Path

from transformers.utils.chat_template_utils import _compile_jinja_template, _render_with_assistant_indices

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place \u2014 today's \"best\" guess.",
    "parameters": {"type": "object", "required": ["place"], "properties": {
        "place": {"type": "string", "description": "City & country"},
        "unit": {"type": "string", "enum": ["c", "f"]}, "days": {"type": "integer", "default": 3}}}}}]
CALL = {"type": "function", "id": "call12345", "function": {"name": "get_weather", "arguments": {
    "place": "Z\u00fcrich", "days": 2, "exact": True, "scale": 0.5, "note": None}}}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


NOW = datetime(2024, 11, 5, 12, 34, 56, tzinfo=timezone.utc)


def message(role, content, **more):
    return {"role": role, "content": content, **more}


DIALOGUES = [
    {"messages": [message("user", "Hello")]},
    {"messages": [message("user", " spaces \n"), message("assistant", "\n Hi there \n")]},
    {"messages": [message("system", "Be brief."), message("user", "2+2?"), message("assistant", "4"),
                  message("user", "And 3+3?")], "add_generation_prompt": True},
    {"messages": [message("system", " S\u00fc\u00df \u2603 \U0001f600 "), message("user", "\u4f60\u597d\uff0c{{ messages }} <b>&'\""),
                  message("assistant", "\u00a0ok\u2028line"), message("user", "x\\n\ty"), message("assistant", "")]},
    {"messages": [message("user", "Weather?")], "tools": TOOLS, "add_generation_prompt": True},
    {"messages": [message("system", "Use tools."), message("user", "Weather?"),
                  message("assistant", "", tool_calls=[CALL]),
                  message("tool", "{\"t\": 21.5}", name="get_weather", tool_call_id="call12345"),
                  message("assistant", "It is warm."), message("user", "Thanks")],
     "tools": TOOLS, "add_generation_prompt": True},
    {"messages": [message("user", "Think"), message("assistant", "<think>\nhm, well\n</think>\n\nDone."),
                  message("user", "More"), message("assistant", "Yes.", reasoning_content="because")]},
    {"messages": [message("user", "q", name="ann"), message("user", "twice")]},
    {"messages": [message("assistant", "first"), message("user", "then")]},
    {"messages": []},
    {"messages": [message("user", "parts"), message("assistant", "a"), message("user", "b"), message("assistant", "c"),
                  message("system", "late")], "enable_thinking": False, "add_generation_prompt": True},
    {"messages": [message("user", [{"type": "text", "text": "part one"}, {"type": "text", "text": "two"}])]},
    {"messages": [message("user", None), message("assistant", None)]},
]

SECOND = CALL | {"id": "call67890", "function": {"name": "get_weather", "arguments": {
    "place": "Oslo", "list": [1, [2, {"a": None}]], "u": "\u2028\"\\"}}}
WRITTEN = CALL | {"function": {"name": "get_weather", "arguments": '{"place": "Oslo"}'}}
BARE = {"name": "get_weather", "arguments": {"place": "x"}}
MORE_TOOLS = TOOLS + [
    {"type": "function", "function": {"name": "search", "description": "", "parameters": {
        "type": "object", "required": [], "properties": {
            "q": {"type": ["string", "null"]}, "e": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "o": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}}}}},
    {"type": "function", "function": {"name": "noargs", "parameters": {}}}]

# Odd ones: several calls at once, arguments as text, roles that nobody has, contents of other types, keys that only some
# templates read.
ODD = [
    {"messages": [message("user", "a"), message("assistant", "", tool_calls=[CALL, SECOND]), message("tool", "1",
      tool_call_id="call12345"), message("tool", "2", tool_call_id="call67890"), message("assistant", "ok")],
      "tools": MORE_TOOLS},
    {"messages": [message("system", ""), message("user", "a"), message("assistant", None, tool_calls=[CALL]),
      message("tool", [{"type": "text", "text": "r"}])], "tools": MORE_TOOLS, "add_generation_prompt": True,
      "enable_thinking": True},
    {"messages": [message("user", "a"), message("assistant", "text before", tool_calls=[WRITTEN])], "tools": TOOLS},
    {"messages": [message("user", "a"), message("assistant", "x", tool_calls=[])], "tools": []},
    {"messages": [message("user", "a"), message("assistant", "x", tool_calls=[BARE])]},
    {"messages": [message("developer", "dev"), message("user", "a")], "add_generation_prompt": True,
      "reasoning_effort": "high"},
    {"messages": [message("system", "only")]},
    {"messages": [message("wizard", "a"), message("user", "b")]},
    {"messages": [message("user", "a"), message("assistant", "<think>\none\n</think>\n\nA"), message("user", "b"),
      message("assistant", "<think>two</think>B", reasoning_content="r2"), message("user", "c")],
      "add_generation_prompt": True, "enable_thinking": True},
    {"messages": [message("user", "a"), message("assistant", "B", reasoning_content="r"), message("assistant", "C",
      thinking="t"), message("assistant", "")], "thinking": True},
    {"messages": [message("user", "a\r\nb"), message("assistant", "</think>")]},
    {"messages": [message("user", "<|im_end|><|eot_id|>[INST]"), message("assistant", " x ")],
      "add_generation_prompt": True},
    {"messages": [message("user", [{"type": "image"}, {"type": "text", "text": "see"}]), message("assistant",
      [{"type": "text", "text": "cat"}])], "add_generation_prompt": True},
    {"messages": [message("user", [])]},
    {"messages": [message("user", {"type": "text", "text": "x"})]},
    {"messages": [message("user", 5)]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"content": "x"}]},
    {"messages": [message("user", "a")], "documents": [{"title": "T", "text": "body"}, {"title": "U", "text": "b2",
      "doc_id": 7}], "add_generation_prompt": True},
    {"messages": [message("user", "a")], "tools": MORE_TOOLS, "tools_in_user_message": False,
      "date_string": "01 Jan 2024", "builtin_tools": ["brave_search", "code_interpreter"]},
    {"messages": [message("system", "s"), message("system", "t"), message("user", "u"), message("user", "v"),
      message("assistant", "w"), message("assistant", "x")]},
    {"messages": [message("user", "a"), message("assistant", "b", weight=0), message("user", "c"),
      message("assistant", "d", name="bot")]},
    {"messages": [message("user", "a"), message("ipython", {"r": [1, 2.5, True]}), message("tool", {"r": "ü"})],
      "tools": TOOLS},
    {"messages": [message("user", "ÀÉ ß ΑΣ"), message("assistant", "É")]},
    {"messages": [message("user", "u" * 300), message("assistant", "\u202e\u0000x")]},
]


WORDS = ["Hello", " two words ", "\n\nline\r\n", "", "1.5", "{{ x }}", "{% if %}", "<|im_end|>", "[INST]", "<think>a</think>b", "</think>",
         "\u00dc\u00df", "\u4f60\u597d", "\U0001f469\u200d\U0001f467", "\u202eabc", "\u00a0", "\u2028", "\"q\" & <b>", "\\n", "a: 1\n- b", "\t"]


def random_value(r, depth=0):
    kinds = [lambda: r.choice(WORDS), lambda: r.randrange(-9, 10**10), lambda: r.choice([0.5, 1e20, -1e-7, 3.0]), lambda: None,
             lambda: r.random() < .5, lambda: [], lambda: {}]
    if depth < 2:
        kinds += [lambda: [random_value(r, depth + 1) for _ in range(3)],
                  lambda: {w: random_value(r, depth + 1) for w in r.sample(["a", "b\u00e9", "type", "text", "c d"], 2)}]
    return r.choice(kinds)()


def random_tool(r, k):
    kinds = ["string", "integer", "number", "boolean", "array", "object", ["string", "null"]]
    properties = {f"p{i}": {"type": r.choice(kinds), **({"description": r.choice(WORDS)} if r.random() < .7 else {}),
                            **({"enum": ["x", "y"]} if r.random() < .2 else {}), **({"items": {"type": "string"}} if r.random() < .2 else {})}
                  for i in range(r.randrange(0, 4))}
    schema = {"type": "object", "properties": properties, **({"required": list(properties)[:1]} if r.random() < .7 else {})}
    function = {"name": f"tool_{k}", "description": r.choice(WORDS), "parameters": schema, **({"strict": True} if r.random() < .1 else {}),
                **({"return": {"type": "string", "description": "r"}} if r.random() < .2 else {})}
    return {"type": "function", "function": function}


def random_call(r, tools):
    arguments = {f"p{i}": random_value(r) for i in range(r.randrange(0, 3))}
    name = r.choice(tools)["function"]["name"] if tools else "nothing"
    call = {"name": name, "arguments": arguments if r.random() < .8 else json.dumps(arguments)}
    return {"type": "function", "id": f"call{r.randrange(10000, 99999)}", "function": call} if r.random() < .9 else call


def random_turns(r, tools):
    text = lambda: "".join(r.choice(WORDS) for _ in range(r.randrange(1, 4)))
    parts = lambda: [{"type": "text", "text": text()} for _ in range(r.randrange(1, 3))] if r.random() < .05 else text()
    turns = [message(r.choice(["system", "system", "developer"]), parts())] if r.random() < .5 else []
    for _ in range(r.randrange(1, 5)):
        turns.append(message("user", parts()))
        while tools and r.random() < .4:
            calls = [random_call(r, tools) for _ in range(r.choice([1, 1, 2]))]
            turns.append(message("assistant", r.choice(["", None, text()]), tool_calls=calls))
            turns += [message("tool", parts(), name=tools[0]["function"]["name"], tool_call_id=call.get("id", "call00000")) for call in calls]
        turns.append(message("assistant", parts(), **({"reasoning_content": text()} if r.random() < .2 else {})))
    return turns if r.random() < .7 else turns[:-1]


def random_dialogue(k):
    r = random.Random(k)
    tools = [random_tool(r, i) for i in range(r.randrange(1, 4))] if r.random() < .4 else None
    names = {"messages": random_turns(r, tools), "tools": tools, "add_generation_prompt": r.random() < .5}
    for name in ["enable_thinking", "thinking", "tools_in_user_message", "clear_thinking", "preserve_thinking"]:
        if r.random() < .2: names[name] = r.random() < .5
    return names


NAMES = {"n": 7, "x": -2.5, "s": "a\u00fcB c\td\n", "e": "", "l": [3, 1, 2], "w": ["b", "A", "c", "a"],
         "d": {"k": 1, "items": 2, "b": {"c": [1, 2]}}, "t": True, "u": [{"a": 1, "b": "x"}, {"a": 2}, {"a": 1, "b": None}],
         "q": "it's \"q\" \\ \u2028", "big": 9007199254740993, "tiny": 1e-7}

SNIPPETS = Path(__file__).with_name("chat_snippets.txt").read_text().rstrip("\n").split("\n----\n")


def spans_in_bytes(text, spans):
    return [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in spans]


def render(template, names):
    compiled = _compile_jinja_template(template)
    compiled.globals["strftime_now"] = NOW.strftime
    text, spans = _render_with_assistant_indices(compiled, **names)
    return {"text": text, "spans": spans_in_bytes(text, spans)}


def outcome(template, names):
    try:
        return render(template, names)
    except Exception as error:  # a template may raise anything
        return {"text": None, "error": f"{type(error).__name__}: {error}"[:100]}


def record(name, template):
    return {"name": name, "template": template, "cases": [outcome(template, names) for names in dialogues()]}


def dialogues():
    return [{"tools": None, "documents": None, "add_generation_prompt": False, **SPECIAL, **names}
            for names in DIALOGUES + ODD + [random_dialogue(k) for k in range(N_RANDOM)]]


def record_snippet(template):
    names = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False, **NAMES}
    return {"template": template, **outcome(template, names)}


if sys.argv[1:2] == ["--random"]:
    N_RANDOM = int(sys.argv[2])
    del sys.argv[1:3]
else:
    N_RANDOM = 0

if __name__ == "__main__":
    here = Path(__file__).parent
    out, *paths = sys.argv[1:] or [here / "recorded/chat.json", *sorted((here / "templates").glob("*.jinja"))]
    templates = [record(Path(path).stem, Path(path).read_bytes().decode()) for path in paths]
    snippets = [] if sys.argv[1:] else [record_snippet(snippet) for snippet in SNIPPETS]
    Path(out).write_text(json.dumps({"dialogues": dialogues(), "templates": templates, "names": NAMES,
                                     "snippets": snippets}, ensure_ascii=False, indent=0) + "\n")
