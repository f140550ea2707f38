#!/bin/sh
# Dialogues and completions as nxdata makes them: the ids and the counted tokens are those that transformers gives. TAP.
# usage: answers.sh NXDATA PARITY
# SPDX-License-Identifier: Apache-2.0
nxdata=$(realpath "$1") parity=$(realpath "$2")
. "$(dirname "$0")/lib.sh"
answers=$parity/recorded/answers

numbers() { # FILE FORMAT: on one line
  od -An -v -w1048576 -t "$2" "$1" | awk '{ $1 = $1; print }'
}

same() { # NAME: what was built is what was recorded
  { numbers built.bin u2 && numbers built.weights f4; } >got && cmp got "$answers/$1.txt" >>out 2>&1
  report "$1" $?
}

build() { # ARGUMENTS...
  "$nxdata" build "$@" -o built --force >out 2>&1 || cat out
}

for name in llama3 llama2; do
  mkdir $name
  cp "$parity/recorded/tokenizers/$name/tokenizer.json" "$answers/tokenizer_config.json" $name
  for template in chatml llama2-format llama3-format; do
    build "$answers/dialogues.jsonl" --tokenizer $name --messages messages --template "$parity/templates/$template.jinja"
    same $name.$template
  done
  cp "$parity/templates/chatml.jinja" $name/chat_template.jinja
  build "$answers/dialogues.jsonl" --tokenizer $name --messages messages
  same $name.chatml
  build "$answers/completions.jsonl" --tokenizer $name --completion completion
  same $name.completions
done

build "$answers/long.jsonl" --tokenizer llama3 --field input --completion output --max-tokens 64 --append-eod
numbers built.bin u2 >got && cmp got "$answers/long.txt" >>out 2>&1 && grep -q '^too long' out
report "what a sequence has no room for is left out as NxDT leaves it out" $?
build "$answers/dialogues.jsonl" --tokenizer llama3 --messages messages --loss-on all
[ "$(numbers built.weights f4 | tr ' ' '\n' | sort -u)" = 1 ]
report "every token counts where it is asked for" $?
cp "$parity/templates/llama3-format.jinja" own.jinja
for workers in 1 3; do
  build "$answers/dialogues.jsonl" --tokenizer llama3 --messages messages --template own.jinja --workers $workers
  cat built.bin built.idx built.weights >with-$workers
done
cmp with-1 with-3 >out 2>&1
report "the same with any number of threads" $?

cat >wrong.jsonl <<'JSON'
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
{"messages": "a"}
JSON
expect "a dialogue that is none" 1 'wrong.jsonl:2: its messages is no list of messages' \
  "$nxdata" build wrong.jsonl --tokenizer llama3 --messages messages -o wrong
from() { # NAME DIALOGUE PATTERN
  echo "{\"messages\": $2}" >odd.jsonl
  expect "$1" 1 "$3" "$nxdata" build odd.jsonl --tokenizer llama3 --messages messages -o odd
}
from "messages of ShareGPT" '[{"from": "human", "value": "a"}]' "odd.jsonl:1: .*message 1 is written with from and value: rename"
from "a message without a role" '[{"role": "user", "content": "a"}, {"content": "b"}]' 'message 2 is without a role'
from "content that is null" '[{"role": "user", "content": null}]' 'message 1 is of content that is null'
from "content that is a list" '[{"role": "user", "content": [{"type": "text", "text": "a"}]}]' 'content that is a list'
from "a message that is a text" '["a"]' 'message 1 is no object with role and content'
from "no answer" '[{"role": "user", "content": "a"}]' 'nothing to write: .* 1 records have no token that counts'
sed 2d wrong.jsonl >one.jsonl
echo '{{ raise_exception("no system text") }}' >strict.jinja
expect "a dialogue that the template refuses" 1 'one.jsonl:1: strict.jinja, line 1.*refuses this dialogue: no system text' \
  "$nxdata" build one.jsonl --tokenizer llama3 --messages messages --template strict.jinja -o wrong
echo '{% include "x" %}' >include.jinja
expect "a template that is not covered" 2 "include.jinja, line 1, column 4: the statement 'include' is not covered" \
  "$nxdata" build one.jsonl --tokenizer llama3 --messages messages --template include.jinja -o wrong
rm llama3/chat_template.jinja
expect "a tokenizer without a template" 2 'has no chat template' \
  "$nxdata" build one.jsonl --tokenizer llama3 --messages messages -o wrong
# The first answer is written without its thoughts when a second one follows.
cat >forgets.jinja <<'JINJA'
{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content if loop.last else m.content | trim('t ') }}{% else %}{{ m.content }}{% endif %}{% endfor %}
JINJA
echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "t b"}, {"role": "assistant", "content": "c"}]}' >forgotten.jsonl
expect "a template that forgets" 1 'writes message 2 another way where the dialogue goes on' \
  "$nxdata" build forgotten.jsonl --tokenizer llama3 --messages messages --template forgets.jinja -o wrong
finish
