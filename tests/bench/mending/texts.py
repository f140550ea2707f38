# SPDX-License-Identifier: Apache-2.0
"""A configuration as lines of text with the settings that stand in them, one a line: YAML, or a script's options."""
import re
import shlex
from typing import NamedTuple

import yaml

YAML_SETTING = re.compile(r'^(\s*(?:- )?"?)([A-Za-z_][\w.\-]*)("?\s*:\s*)(.*?)(\s*,?\s*(?:\s#.*)?)$')
SCRIPT_SETTING = re.compile(r"^(\s+--)([\w-]+)((?: +(?=[^\s\\]))?)([^\\]*?)(\s*\\)?$")
OF_THE_LAUNCHER = {"nproc-per-node", "nnodes", "node-rank", "master-addr", "master-port", "rdzv-endpoint",
                   "rdzv-backend"}
PROGRAMS = {"bert": "pretrain_bert.py", "t5": "pretrain_t5.py", "multimodal": "pretrain_vlm.py"}


class Setting(NamedTuple):
    line: int
    before: str
    key: str
    between: str
    value: str
    after: str

    def written(self, **changed):
        new = self._replace(**changed)
        return new.before + new.key + (new.between or (" " if new.value else "")) + new.value + new.after

    def name(self):
        return self.key.replace("-", "_")

    def depth(self):
        return len(self.before.rstrip('"'))


class Text:
    """avoid: lines that further slips leave alone."""

    def __init__(self, lines, avoid=()):
        self.lines, self.avoid = list(lines), avoid
        self.settings = [one for one in map(self.setting, range(len(self.lines))) if one and one.line not in avoid]

    def choose(self, chance, wanted=lambda setting: True):
        candidates = [one for one in self.settings if wanted(one)]
        return chance.choice(candidates) if candidates else None

    def find(self, key):
        return next((one for one in self.settings if one.name() == key.replace("-", "_")), None)

    def replaced(self, line, *new):
        return self.lines[:line] + list(new) + self.lines[line + 1:]


class Yaml(Text):
    def __init__(self, lines, avoid=()):
        self.flow = any(line.startswith("{") for line in lines)
        super().__init__(lines, avoid)

    def setting(self, number):
        match = YAML_SETTING.match(self.lines[number])
        return Setting(number, *match.groups()) if match else None

    def top(self):
        """Where the outermost braces begin."""
        return next((number for number, line in enumerate(self.lines) if line.strip() == "{"), None)

    def with_setting(self, key, value):
        """Line and lines with a setting more, where the file has outermost braces."""
        top = self.top()
        if top is None:
            return None
        return top + 1, self.lines[:top + 1] + [f'  "{key}": {value},'] + self.lines[top + 1:]


class Script(Text):
    flow = False

    def setting(self, number):
        match = SCRIPT_SETTING.match(self.lines[number])
        if not match or match[2].replace("_", "-") in OF_THE_LAUNCHER:
            return None
        return Setting(number, *(group or "" for group in match.groups()))

    def with_setting(self, key, value):
        first = self.settings[0] if self.settings else None
        if not first:
            return None
        new = first.written(key=key, value=value, between=" " if value else "")
        return first.line, self.lines[:first.line] + [new] + self.lines[first.line:]


def script_of(path, settings):
    """A script that trains with the settings of one of Megatron's own tests, on 8 ranks."""
    options = []
    for key, value in settings["MODEL_ARGS"].items():
        words = value if re.fullmatch(r"[\w./,${}:=+\- ]*", value) else shlex.quote(value)
        options.append("  " + key if value == "true" else f"  {key} {words}")
    variables = sorted(set(re.findall(r"\$\{(\w+)\}", "\n".join(options))))
    program = next((program for part, program in PROGRAMS.items() if part in path), "pretrain_gpt.py")
    environment = [f"export {key}={value}" for key, value in (settings.get("ENV_VARS") or {}).items()]
    lines = ["#!/bin/bash", *environment, *(f"{name}=/{name.lower()}" for name in variables),
             f"torchrun --nproc_per_node 8 --nnodes 1 {program} \\"]
    return "\n".join(lines) + "\n" + " \\\n".join(options) + "\n"


def read(path):
    """Text and the suffix of its name."""
    with open(path, errors="replace") as file:
        text = file.read()
    suffix = path[path.rindex("."):]
    if "MODEL_ARGS:" in text and suffix == ".yaml":
        return script_of(path, yaml.load(text, yaml.BaseLoader)), ".sh"
    return text, suffix
