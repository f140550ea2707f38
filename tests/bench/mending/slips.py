# SPDX-License-Identifier: Apache-2.0
"""The slips of people who write configurations. Each takes a text and chance, and gives the new lines and the numbers
of those that are wrong now, or None where the text has no place for it."""
import re
from typing import Callable, NamedTuple

from words import CONTRADICTIONS, FOREIGN, LAYOUT

YAML = ("nxdt", "neox", "xorl")
SCRIPT = ("megatron",)
EVERY = YAML + SCRIPT


def is_int(setting):
    return re.fullmatch(r"-?\d+", setting.value) is not None


def is_number(setting):
    return re.fullmatch(r"-?\d*\.?\d+([eE][+-]?\d+)?", setting.value) is not None


def is_fraction(setting):
    return is_number(setting) and not is_int(setting)


def is_scalar(setting):
    return setting.value != "" and setting.value[0] not in "{[&*|>" and not setting.value.endswith("{")


def is_null(setting):
    return setting.value.lower() in ("null", "none")


def is_bool(setting):
    return setting.value.lower() in ("true", "false")


def is_flag(setting):
    return setting.value == ""


def is_option(setting):
    return setting.before.endswith("--")


def is_word(setting):
    bare = setting.value.strip("\"'")
    return re.fullmatch(r"[A-Za-z_]{4,}", bare) is not None and not is_bool(setting) and not is_null(setting)


def is_set(setting):
    return is_scalar(setting) and not is_null(setting)


def is_quoted(setting):
    return setting.value[:1] in ('"', "'") and len(setting.value) > 2


def is_continued(setting):
    return setting.after.endswith("\\")


def misspelt(word, chance):
    place = chance.randrange(1, max(2, len(word) - 1))
    ways = [
        word[:place] + word[place + 1:place + 2] + word[place] + word[place + 2:],
        word[:place] + word[place + 1:],
        word[:place] + word[place] + word[place:],
        word[:place] + chance.choice("aeiostrn") + word[place + 1:],
        word[:-1] if word.endswith("s") else word + "s",
    ]
    return chance.choice([way for way in ways if way and way != word])


def change(wanted, **how):
    """The slip that writes a part of a setting otherwise; how says of each part what it becomes."""
    def slip(text, chance):
        setting = text.choose(chance, wanted)
        if not setting:
            return None
        parts = {part: new(text, setting, chance) for part, new in how.items()}
        return text.replaced(setting.line, setting.written(**parts)), {setting.line}
    return slip


def one_of(make):
    """make lists what a setting may become."""
    return lambda text, setting, chance: chance.choice(make(text, setting))


def no_number(text, setting):
    unit = f'"{setting.value}K"' if text.flow else setting.value + "k"
    words = f'"{setting.value} tokens"' if text.flow else setting.value + " tokens"
    return [f'"{setting.value}"', "abc", words, f'"{setting.value}k"', "{}", unit]


def no_number_argument(text, setting):
    return ["abc", setting.value + "k", setting.value + "GB", f'"{setting.value} tokens"']


def fraction_for_int(text, setting):
    return [setting.value + ".0", setting.value + ".5", "1e4"]


def out_of_range(text, setting):
    return ["-1", "0", "-" + setting.value.lstrip("-"), "0" if is_int(setting) else "1.5"]


def other_count(text, setting):
    count = int(setting.value)
    return [str(other) for other in (count + 1, count * 3, max(1, count - 1), 3, 5, 7, count * 2 + 1) if other != count]


def other_bool(text, setting):
    is_on = setting.value.lower() == "true"
    return [f'"{setting.value}"', f'"{setting.value.capitalize()}"', "1" if is_on else "0", '"yes"', "enabled", "y"]


def with_unit(text, setting):
    value = setting.value
    if text.flow:
        return [f'"{value}GB"', '"4K"', f"{value}%", f'"{value}*2"']
    return [f"{value}_GB", f"{value}kb", "1,024", "4K", f"{value}%", f"~{value}", f"{value} x 2"]


def other_word(text, setting, chance):
    bare = setting.value.strip("\"'")
    quote = setting.value[0] if setting.value[0] in "\"'" else ""
    case = bare.upper() if bare.islower() else bare.lower()
    return quote + chance.choice([misspelt(bare, chance), misspelt(bare, chance), case]) + quote


def half_quoted(text, setting):
    return [setting.value[:-1], setting.value[1:]]


def other_colon(text, setting):
    quote = '"' if setting.between.startswith('"') else ""
    return [quote + colon for colon in (" ", ":", " = ", "=")]


def joined(text, setting):
    return [setting.key + sign + setting.value for sign in (":", " = ", "")]


def of_layout(system):
    return lambda setting: setting.name() in LAYOUT[system] and is_int(setting)


def foreign(system):
    def new(text, setting, chance):
        return FOREIGN[system][setting.name()]
    return change(lambda setting: setting.name() in FOREIGN[system], key=new)


def to_top_of_braces(text, chance):
    """A setting of a map within the outermost braces moves out of it."""
    def within(setting):
        return setting.depth() >= 4 and is_scalar(setting) and any(
            above.value.startswith("{") and above.depth() < setting.depth()
            for above in text.settings if setting.line - 8 <= above.line < setting.line)
    setting, top = text.choose(chance, within), text.top()
    if not setting or top is None:
        return None
    moved = setting.written(before="  " + setting.before.lstrip(), after=",")
    rest = text.replaced(setting.line)
    return rest[:top + 1] + [moved] + rest[top + 1:], {top + 1}


def to_other_section(text, chance):
    """A setting moves to the outermost level, or into another section."""
    setting = text.choose(chance, lambda one: is_scalar(one) and one.depth() >= 2 and "-" not in one.before)
    if not setting:
        return None
    rest, bare = text.replaced(setting.line), text.lines[setting.line].strip()
    sections = [line for line, content in enumerate(rest[:-1])
                if re.match(r"[a-z_]+:\s*$", content) and rest[line + 1].startswith(" ")]
    own = max((line for line in sections if line < setting.line), default=-1)
    others = [line for line in sections if line != own]
    if not others or chance.random() < 0.5:
        place, depth = len(rest) - (not rest[-1]), 0
    else:
        place = chance.choice(others) + 1
        depth = len(rest[place]) - len(rest[place].lstrip())
    return rest[:place] + [" " * depth + bare] + rest[place:], {place}


def move(text, chance):
    return (to_top_of_braces if text.flow else to_other_section)(text, chance)


def ends_command(text, setting):
    return not is_continued(setting) and setting.line > 0 and text.lines[setting.line - 1].endswith("\\")


def leave_out(text, chance):
    setting = text.choose(chance, lambda one: is_scalar(one) or is_option(one))
    if not setting:
        return None
    rest = text.replaced(setting.line)
    if ends_command(text, setting):
        rest[setting.line - 1] = rest[setting.line - 1].rstrip("\\ ")
    return rest, set()


def repeat(text, chance):
    """A setting stands twice, with another count where it is one."""
    setting = text.choose(chance, lambda one: is_scalar(one) and not ends_command(text, one))
    if not setting:
        return None
    if text.flow and "," not in setting.after:
        setting = setting._replace(after="," + setting.after)
    again = str(int(setting.value) + 1) if is_int(setting) else setting.value
    both = setting.written(), setting.written(value=again)
    return text.replaced(setting.line, *both), {setting.line, setting.line + 1}


def shift(text, chance):
    setting = text.choose(chance, lambda one: is_scalar(one) and one.depth() >= 2 and "-" not in one.before)
    if text.flow or not setting:
        return None
    line = text.lines[setting.line]
    return text.replaced(setting.line, chance.choice([" " + line, "  " + line, line[1:], line[1:]])), {setting.line}


def indent_with_tab(text, setting, chance):
    return "\t" + setting.before.lstrip()


def is_indented(setting):
    return setting.depth() >= 2


def no_comma(text, chance):
    setting = text.choose(chance, lambda one: is_scalar(one) and "," in one.after)
    if not text.flow or not setting:
        return None
    return (text.replaced(setting.line, setting.written(after=setting.after.replace(",", "", 1))),
            {setting.line, setting.line + 1})


def no_continuation(text, chance):
    setting = text.choose(chance, is_continued)
    if not setting:
        return None
    return (text.replaced(setting.line, setting.written(after=chance.choice(["", " \\ ", " ,\\"]))),
            {setting.line, setting.line + 1})


def other_dashes(text, setting):
    return [setting.before[:-1], setting.before[:-2]]


def contradict(system):
    def slip(text, chance):
        wrong = set()
        for key, value in chance.choice(CONTRADICTIONS[system]).items():
            there = text.find(key)
            if there and not (value and is_scalar(there)):
                return None
            if there:
                line, lines = there.line, text.replaced(there.line, there.written(value=value))
            else:
                line, lines = text.with_setting(key, value) or (None, None)
            if lines is None:
                return None
            wrong = {other + (not there and other >= line) for other in wrong} | {line}
            text = type(text)(lines)
        return text.lines, wrong
    return slip


class Kind(NamedTuple):
    name: str
    systems: tuple
    slip: Callable
    pairs: bool = True  # whether it leaves the number of lines as it is, so that another slip may follow


def nothing(text, setting, chance):
    return ""


def value_again(text, setting):
    return [f"{setting.value} {setting.value.split()[0]}"]


def with_comment(text, setting):
    return [setting.after + comment for comment in (" // note", " /* note */", "  # note")]


def is_long(setting):
    return len(setting.key) > 4


def misspelt_key(text, setting, chance):
    return misspelt(setting.key, chance)


KINDS = [
    Kind("typo", EVERY, change(is_long, key=misspelt_key)),
    Kind("depth", YAML, move, False),
    Kind("type", YAML, change(is_number, value=one_of(no_number))),
    Kind("type", SCRIPT, change(is_number, value=one_of(no_number_argument))),
    Kind("exponent", YAML, change(is_fraction, value=one_of(lambda text, setting: ["1e-4", "3e-5", "1e-5"]))),
    Kind("fraction", EVERY, change(is_int, value=one_of(fraction_for_int))),
    Kind("range", EVERY, change(is_number, value=one_of(out_of_range))),
    *(Kind("layout", (system,), change(of_layout(system), value=one_of(other_count))) for system in EVERY),
    *(Kind("foreign", (system,), foreign(system)) for system in EVERY),
    Kind("bool", YAML, change(is_bool, value=one_of(other_bool))),
    Kind("bool", SCRIPT, change(is_flag, value=one_of(lambda text, setting: ["true", "1", "True", "False"]))),
    Kind("list", YAML, change(is_set, value=one_of(lambda text, setting: [f"[{setting.value}]"]))),
    Kind("list", SCRIPT, change(is_set, value=one_of(value_again))),
    Kind("null", YAML, change(is_set, value=one_of(lambda text, setting: ["null", "null" if text.flow else ""]))),
    Kind("null", SCRIPT, change(is_set, value=nothing)),
    Kind("missing", EVERY, leave_out, False),
    Kind("word", EVERY, change(is_word, value=other_word)),
    Kind("twice", EVERY, repeat, False),
    Kind("indent", YAML, shift),
    Kind("tab", YAML, change(is_indented, before=indent_with_tab)),
    Kind("dashes", SCRIPT, change(lambda setting: "-" in setting.key, before=one_of(other_dashes))),
    Kind("colon", YAML, change(is_scalar, between=one_of(other_colon))),
    Kind("colon", SCRIPT, change(is_scalar, key=one_of(joined), value=nothing)),
    Kind("quote", YAML, change(is_quoted, value=one_of(half_quoted))),
    Kind("comma", YAML, no_comma, False),
    Kind("comma", SCRIPT, no_continuation, False),
    Kind("comment", YAML, change(is_scalar, after=one_of(with_comment))),
    Kind("comment", SCRIPT, change(is_continued, after=one_of(lambda text, setting: ["  # note \\"]))),
    Kind("unit", YAML, change(is_int, value=one_of(with_unit))),
    *(Kind("contradiction", (system,), contradict(system), False) for system in CONTRADICTIONS),
]
