# SPDX-License-Identifier: Apache-2.0
"""Records what transformers makes of dialogues by chat templates, for tests/unit/test_chat.c.

usage: record_chat.py [OUT.json TEMPLATE.jinja...]   without arguments: recorded/chat.json from templates/

Each template meets each dialogue of DIALOGUES, and each of SNIPPETS the names of NAMES. A case has its text and the
spans of generation tags (in bytes), or null where it is refused.
"""
import json
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
            for names in DIALOGUES]


def record_snippet(template):
    names = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False, **NAMES}
    return {"template": template, **outcome(template, names)}


if __name__ == "__main__":
    here = Path(__file__).parent
    out, *paths = sys.argv[1:] or [here / "recorded/chat.json", *sorted((here / "templates").glob("*.jinja"))]
    templates = [record(Path(path).stem, Path(path).read_bytes().decode()) for path in paths]
    snippets = [] if sys.argv[1:] else [record_snippet(snippet) for snippet in SNIPPETS]
    Path(out).write_text(json.dumps({"dialogues": dialogues(), "templates": templates, "names": NAMES,
                                     "snippets": snippets}, ensure_ascii=False, indent=0) + "\n")
