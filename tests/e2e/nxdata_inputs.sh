#!/bin/sh
# nxdata reads what Hugging Face datasets, pyarrow and GPT-NeoX's builders wrote (tests/parity/record_datasets.py). TAP.
# usage: nxdata_inputs.sh NXDATA FOLDER
# SPDX-License-Identifier: Apache-2.0
set -u
nxdata=$(realpath "$1") recorded=$(realpath "$2")
. "$(dirname "$0")/lib.sh"

# documents.txt: FILE FIELD DOCUMENTS, then the ids of each. Bytes of texts are ids.
while read -r file field count; do
  i=0
  : >expected
  while [ $i -lt "$count" ]; do
    IFS= read -r line
    printf '%s\n' "$line" >>expected
    i=$((i + 1))
  done
  "$nxdata" build "$recorded/$file" --field "$field" --vocab 70000 --force -o set >out 2>&1 &&
    "$nxdata" show set >shown 2>>out && grep -v '^---' shown | diff expected - >>out
  report "$file, $field" $?
done <"$recorded/documents.txt"

expect 'a split by name' 0 'documents  *2$' "$nxdata" build "$recorded/splits" --split test -o second
expect 'a split that is not there' 2 'has no split dev, it has: train, test' \
  "$nxdata" build "$recorded/splits" --split dev -o none
expect 'a column that is not there' 1 'has no column body; it has: input_ids, text, n' \
  "$nxdata" build "$recorded/saved" --field body -o none
expect 'a null' 1 'null.arrow:2: its text is null' "$nxdata" build "$recorded/null.arrow" -o none
expect 'a null, skipped' 0 'documents  *2$' "$nxdata" build "$recorded/null.arrow" --on-error skip -o nulls
expect 'a null among ids' 1 'within.arrow:1: its token 1 is null' "$nxdata" build "$recorded/within.arrow" --field ids -o none
expect 'a null among labels' 1 'within.arrow:1: label 1 is null: -100' \
  "$nxdata" build "$recorded/within.arrow" --field whole --labels ids -o none
expect 'a null among messages' 1 'within.arrow:1: .*; message 2 is no object with role and content' \
  "$nxdata" build "$recorded/within.arrow" --messages messages --tokenizer "$recorded/../tokenizers/llama3/tokenizer.json" \
  --template "$recorded/../../templates/chatml.jinja" -o none
for kind in jsonl arrow; do
  "$nxdata" build "$recorded/messages.$kind" --messages messages --tokenizer "$recorded/../tokenizers/llama3/tokenizer.json" \
    --template "$recorded/../../templates/chatml.jinja" -o "messages-$kind" >out 2>&1 || break
done
cmp messages-jsonl.bin messages-arrow.bin >>out 2>&1 && cmp messages-jsonl.weights messages-arrow.weights >>out 2>&1
report 'messages in columns, without one of tools' $?
for kind in roles.arrow json; do
  "$nxdata" build "$recorded/$kind" --messages messages --tokenizer "$recorded/../tokenizers/llama3/tokenizer.json" \
    --template "$recorded/../../templates/chatml.jinja" -o again --force >out 2>&1 &&
    cmp messages-jsonl.bin again.bin >>out && cmp messages-jsonl.weights again.weights >>out
  report "messages of $kind: roles are numbers of a dictionary's values, or messages are JSON" $?
done
expect 'neither text nor ids' 1 'types.arrow:1: its other is neither' \
  "$nxdata" build "$recorded/types.arrow" --field other -o none
expect 'labels beside ids' 0 '0: *1:1 2:1$' sh -c "'$nxdata' build '$recorded/types.arrow' --field int32 \
  --labels int64 --vocab 200 -o labelled >/dev/null && '$nxdata' show --weights --count 1 labelled | tr '\n' ' ' |
  sed 's/.*tokens/0:/; s/ *$//'"
cp -r "$recorded/saved" picked && chmod -R u+w picked &&
  sed -i 's/"_data_files"/"_indices_data_files": [{"filename": "x"}], "_data_files"/' picked/state.json
expect 'rows that are picked' 2 'flatten_indices' "$nxdata" build picked -o none

# Cut short anywhere it is refused, or what is whole of it is read: nothing else.
cut() { # FILE FIELD STEP
  size=$(wc -c <"$recorded/$1")
  at=0 wrong=0
  while [ $at -lt "$size" ]; do
    head -c $at "$recorded/$1" >cut.arrow
    timeout 20 "$nxdata" build cut.arrow --field "$2" --force -o cut >out 2>&1
    [ $? -le 1 ] || wrong=1
    at=$((at + $3))
  done
  report "a file that is cut: $1" $wrong
}
cut types.arrow int32 397
cut lz4.arrow large_text 97
cut views.arrow text 97
cut dictionary.arrow text 97

# Datasets together: of the old kind, of other types, with weights.
expect 'the old kind, made new' 0 'type  *int16' "$nxdata" merge "$recorded/old-int16" -o new
cmp new.idx "$recorded/new-int16.idx" >out 2>&1 && cmp new.bin "$recorded/new-int16.bin" >out 2>&1
report 'is what a new builder writes' $?
expect 'floats become integers' 0 'type  *int32' "$nxdata" merge "$recorded/new-float64" -o whole
cmp whole.bin "$recorded/new-int32.bin" >out 2>&1
report 'of the same values' $?
expect 'types that differ' 0 'type  *int32' "$nxdata" merge "$recorded/new-uint8" "$recorded/old-int64" -o both
expect 'all of their documents' 0 'tokens  *14$' "$nxdata" check both
expect 'with weights' 0 'documents  *6$' "$nxdata" merge labelled "$recorded/new-uint16" -o weighed
[ "$(wc -c <weighed.weights)" -eq 52 ]
report 'of each token' $?
expect 'lengths' 0 '2 … 3  *4  ####' "$nxdata" show --lengths both
expect 'bytes' 0 'zwei Wörter' sh -c "'$nxdata' build '$recorded/saved' -o texts >/dev/null && '$nxdata' show --bytes texts"

# Tokenizers: what is built is shown as the text that it was made of.
tokenizers=$(dirname "$recorded")/tokenizers
printf 'Nine cats, 9 dogs <|endoftext|> and\n  a na\303\257ve \360\237\231\202.' >text.txt
expect 'a tokenizer' 0 'type  *uint16' "$nxdata" build text.txt --tokenizer "$tokenizers/gpt2" --append-eod -o gpt2
"$nxdata" show gpt2 --tokenizer "$tokenizers/gpt2" >out 2>&1
{ sed 1d out | head -c "$(wc -c <text.txt)" | cmp - text.txt; } >>out 2>&1
report 'gives the text back' $?
expect 'names of special tokens are text' 0 '<|endoftext|> and$' sh -c \
  "'$nxdata' build text.txt --tokenizer '$tokenizers/gpt2' --plain -o plain >/dev/null && ! cmp -s plain.bin gpt2.bin &&
  '$nxdata' show plain --tokenizer '$tokenizers/gpt2'"
expect 'which token ends a text' 2 'does not say which token ends' \
  "$nxdata" build text.txt --tokenizer "$tokenizers/t5" --append-eod -o none
expect 'is said' 0 'documents  *1$' "$nxdata" build text.txt --tokenizer "$tokenizers/t5" --eod '</s>' -o t5
expect 'a token that is none' 2 'has no token <none>' \
  "$nxdata" build text.txt --tokenizer "$tokenizers/gpt2" --eod '<none>' -o none
expect 'no tokenizer' 2 'none' "$nxdata" build text.txt --tokenizer none -o none

# What a tokenizer's files leave unsaid.
mkdir words pairs && cp "$tokenizers/gpt2_files/vocab.json" words/small-vocab.json &&
  cp "$tokenizers/gpt2_files/merges.txt" pairs/small-merges.txt
expect 'a vocabulary without its merges' 2 'words/small-merges.txt: No such file' \
  "$nxdata" build "$recorded/saved" --tokenizer words/small-vocab.json -o unsaid
"$nxdata" build "$recorded/saved" --tokenizer "$tokenizers/gpt2_files" -o beside >out 2>&1 &&
  "$nxdata" build "$recorded/saved" --tokenizer words/small-vocab.json --merges pairs/small-merges.txt -o unsaid >>out 2>&1 &&
  cmp beside.bin unsaid.bin >>out && cmp pairs/small-merges.txt unsaid.tokenizer/merges.txt >>out
report 'merges that stand elsewhere' $?
"$nxdata" show --text beside >shown && "$nxdata" show --tokenizer words/small-vocab.json --merges pairs/small-merges.txt \
  unsaid >out 2>&1 && cmp shown out
report 'and text by them' $?
for byte in $(seq 0 255); do
  echo "$(printf "\\$(printf %03o "$byte")" | base64) $byte"
done >bytes.tiktoken
{ cat bytes.tiktoken; echo 'MTI= 256'; } >small.tiktoken
{ echo '['; awk '{ printf "%s{\"rank\": %d, \"token_bytes\": \"%s\"}\n", (NR > 1 ? "," : ""), $2, $1 }' small.tiktoken; echo ']'; } >ranks.json
printf '{"text": "12<a><b>"}\n' >digits.jsonl
ids() { # FILE OPTION...
  file=$1
  shift
  "$nxdata" build digits.jsonl --tokenizer "$file" --force -o digits "$@" >out 2>&1 &&
    "$nxdata" show digits 2>>out | tail -n 1 | tr -s ' ' | sed 's/^ //' >>out && tail -n 1 out
}
[ "$(ids small.tiktoken --pattern v1)" = '49 50 60 97 62 60 98 62' ]
report 'ranks with a pattern: digits alone' $?
[ "$(ids small.tiktoken --pattern '[0-9]+|<|>|[ab]' --special '<a>' --special '<b>')" = '256 257 258' ]
report 'or with one of our own, and special tokens' $?
[ "$(ids ranks.json --pattern v1 --special '<a>' --special '<b>' --special-ids 10 --vocab 300)" = '59 60 0 1' ]
report 'a list of ranks, with its special tokens first' $?
expect 'which are more than all' 2 'of 300 token ids 1000 are kept for special tokens: say how many' \
  "$nxdata" build digits.jsonl --tokenizer ranks.json --vocab 300 --force -o digits
expect 'another pattern is another dataset' 0 'tokens  *3$' \
  "$nxdata" build digits.jsonl --tokenizer small.tiktoken --pattern '[0-9]+' --special '<a>' --special '<b>' --force -o digits
for threads in 1 2 4; do
  "$nxdata" build "$recorded/saved" --tokenizer "$tokenizers/llama3" --workers $threads -o many$threads || break
done >out 2>&1
cmp many1.bin many2.bin && cmp many1.bin many4.bin && cmp many1.idx many4.idx
report 'threads change nothing' $?
# The tokenizer goes with the documents; pairs stay together; what counts is told.
printf '%s\n' '{"prompt": "Say one. ", "chosen": "One.", "rejected": "Two."}' \
  '{"prompt": "Say two. ", "chosen": "Two it is.", "rejected": "No."}' \
  '{"prompt": "Say three. ", "chosen": "Three.", "rejected": "Thirty."}' >pairs.jsonl
"$nxdata" build pairs.jsonl --tokenizer "$tokenizers/gpt2" --chosen chosen --rejected rejected -o pairs >out 2>&1 &&
  "$nxdata" split pairs 67,33 --pairs -o pairs >out 2>&1 &&
  [ "$("$nxdata" info pairs-train | awk '/^documents/ { print $2 }')" = 4 ] &&
  [ "$("$nxdata" info pairs-valid | awk '/^documents/ { print $2 }')" = 2 ]
report 'a split keeps pairs together' $?
"$nxdata" merge pairs-train pairs-valid -o pairs-again >out 2>&1 && cmp pairs.bin pairs-again.bin >>out 2>&1 &&
  cmp pairs.weights pairs-again.weights >>out 2>&1
report 'and merged they are what they were' $?
expect 'as text, and what counts of it' 0 '^\[1\] *One\.$' "$nxdata" show --text --weights --pairs --count 1 pairs-again
expect 'which answer is which' 0 'document 1, rejected, ' "$nxdata" show --text --pairs pairs-valid
expect 'a dataset of pairs is checked' 0 'tokens count' "$nxdata" check --pairs pairs-train
"$nxdata" split pairs 50,50 -o halves >out 2>&1
expect 'and half a pair found' 1 'an even number' "$nxdata" check --pairs halves-train
expect 'nor is it split' 1 'an even number' "$nxdata" split --pairs halves-train 50,50 -o quarters
expect 'tokenizers that differ' 0 'are not the same' "$nxdata" merge texts pairs -o mixed
[ ! -e mixed.tokenizer ]
report 'are not copied' $?
finish
