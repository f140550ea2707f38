#!/bin/sh
# nxdata from the command line: what it prints, its exit status, and what a failure leaves behind. TAP.
# usage: nxdata.sh NXDATA TEXT
# SPDX-License-Identifier: Apache-2.0
set -u
nxdata=$(realpath "$1") text=$(realpath "$2")
. "$(dirname "$0")/lib.sh"

n_bytes=$(wc -c <"$text")
expect 'build' 0 "tokens  *$n_bytes\$" "$nxdata" build "$text" -o text
expect 'info' 0 'type  *uint16, 2 bytes a token' "$nxdata" info text
expect 'info takes the name of either file' 0 "documents  *1\$" "$nxdata" info text.idx
expect 'check' 0 'no damage found' "$nxdata" check text
expect 'an existing dataset stays' 1 'give --force' "$nxdata" build "$text" -o text
expect 'unless forced' 0 "tokens  *$((2 * n_bytes + 2))\$" \
  "$nxdata" build --force --append-eod "$text" "$text" -o text
expect 'the end of a document is token 256' 0 '… 256 (' "$nxdata" check text
expect 'standard input' 0 'tokens  *3$' sh -c "printf abc | '$nxdata' build - -o three"
expect 'a text that begins with a dash' 0 'tokens  *3$' \
  sh -c "printf abc >-a && '$nxdata' build -o dash -- -a"

printf x >>three.bin
expect 'bytes that nothing uses are said' 0 'unused  *1 bytes' "$nxdata" check three
head -c 5 text.bin >three.bin
expect 'truncated data' 1 'cut short: .*; copy both of its files again' "$nxdata" check three
head -c 40 text.idx >three.idx
expect 'truncated index' 1 'cut short or damaged: .*nxdata build' "$nxdata" info three
printf 'no index at all, but a text that someone gave this name' >three.idx
expect 'another file' 1 'is not the index of a dataset: nxdata build makes one' "$nxdata" check three
rm text.bin
expect 'half of a dataset' 1 'text.bin: No such file' "$nxdata" check text

expect 'a missing dataset' 2 'cannot read .*none.idx' "$nxdata" check none
expect 'a missing text' 2 'cannot read .*none' "$nxdata" build none -o new
expect 'a missing folder' 1 'cannot write' "$nxdata" build "$text" -o none/new
expect 'an empty text' 1 'nothing is left of /dev/null' "$nxdata" build /dev/null -o new
expect 'full standard output' 1 'No space left' sh -c "'$nxdata' --help >/dev/full"
expect 'a limit on the size of files' 1 'File too large' sh -c "ulimit -f 1; '$nxdata' build '$text' -o new"
expect 'nothing is left of builds that failed' 0 '^0$' sh -c "ls | grep -c '^new' || true"

# Builds to one prefix at once: one of them is the dataset, whole; with --force the last.
at_once() { # OPTION
  for i in 1 2 3 4 5 6; do
    head -c "$((1000 * i))" "$text" >"part$i"
    "$nxdata" build "part$i" -o at_once $1 >"said$i" 2>&1 &
    echo $! >"pid$i"
  done
  built=0
  for i in 1 2 3 4 5 6; do wait "$(cat "pid$i")" && built=$((built + 1)); done
  cat said? >out
  "$nxdata" check at_once >>out 2>&1 && [ "$(find . -name 'at_once*' | wc -l)" -eq 3 ] &&
    grep -q "\"bytes\": $(stat -c %s at_once.bin | awk '{ print $1 / 2 }')" at_once.tokenizer/text.json
}
at_once '' && [ $built -eq 1 ] && [ "$(grep -c 'at_once.*exists' out)" -eq 5 ]
report 'of six builds at once one counts' $?
at_once --force && [ $built -eq 6 ]
report 'of six that replace it all do' $?
touch at_once.bin.tmp
expect 'a temporary name that is taken stays' 0 'tokens  *6000$' "$nxdata" build part6 --force -o at_once
expect 'as it was' 0 '^0$' sh -c 'wc -c <at_once.bin.tmp'

# Lines that are objects: text, tokens, nested fields, and what is malformed.
printf '%s\n' '{"text": "ab"}' '' '{"text": "c\u00e9", "n": 1}' >two.jsonl
expect 'lines of JSON' 0 'documents  *2$' "$nxdata" build two.jsonl -o two
expect 'their bytes' 0 'tokens  *5$' "$nxdata" info two
gzip -k two.jsonl
expect 'compressed' 0 'documents  *2$' "$nxdata" build two.jsonl.gz -o gz
cmp two.bin gz.bin >out 2>&1
report 'is the same' $?
{ head -c 20 two.jsonl | gzip; tail -c +21 two.jsonl | gzip; gzip </dev/null; head -c 512 /dev/zero; } >parts.jsonl.gz
expect 'compressed in parts, with zeros behind them' 0 'documents  *2$' "$nxdata" build parts.jsonl.gz -o gz --force
# A frame of zstd that is stored, behind one to be passed over, as pzstd writes.
{ printf '\120\052\115\030\003\0\0\0abc\050\265\057\375\040\054\141\001\0'; cat two.jsonl; } >two.jsonl.zst
[ "$(wc -c <two.jsonl)" -eq 44 ]
report 'a frame of so many bytes' $?
expect 'and one that is to be passed over' 0 'documents  *2$' "$nxdata" build two.jsonl.zst -o zst
cmp two.bin gz.bin >out 2>&1 && cmp two.bin zst.bin >out 2>&1
report 'are the same' $?
head -c 40 two.jsonl.gz >short.jsonl.gz
expect 'cut short' 1 'short.jsonl.gz is cut short' "$nxdata" build short.jsonl.gz -o new
printf '%s\n' '{"a": {"ids": [1, 70000]}}' '{"a": {"ids": []}}' '{"a": {"ids": [5]}}' >ids.jsonl
expect 'tokens of a nested field' 0 'type  *int32' "$nxdata" build ids.jsonl --field a.ids -o ids
expect 'what has no token is left out' 0 '^empty  *1 ' "$nxdata" build --force ids.jsonl --field=a.ids -o ids
expect 'ids beyond the vocabulary' 1 'ids.jsonl:1: its token 1 is 70000' \
  "$nxdata" build ids.jsonl --field a.ids --vocab 70000 -o new
printf '%s\n' '{"text": "good"}' '{"text": "bad' '{"no": 1}' '{"text": "too"}' >bad.jsonl
expect 'a malformed line is named' 1 'bad.jsonl:2: no JSON' "$nxdata" build bad.jsonl -o new
expect 'or skipped, and counted' 0 '^skipped  *2 .*bad.jsonl:2' "$nxdata" build bad.jsonl --on-error skip -o bad
expect 'a field that is missing' 1 'bad.jsonl:1: it has no field body; it has: text' \
  "$nxdata" build bad.jsonl --field body -o new
echo '{"i": [1, null]}' >null.jsonl
expect 'a null among ids' 1 'null.jsonl:1: entry 1 of i is null' "$nxdata" build null.jsonl --field i -o new
printf '\357\273\277 [\n{"text": "a,]\\"}{["} ,\n  {"text":\n"bc", "x": [{}, "]"]}, {"text": "d"}]\n' >list.json
expect 'a list of records' 0 'tokens  *10$' "$nxdata" build list.json -o list
gzip -c list.json >list.json.gz
expect 'a list, compressed' 0 'documents  *3$' "$nxdata" build list.json.gz -o list_gz
sed 's/{"text": "d"}/{"text": 4 5}/' list.json >ill.json
expect 'a member that is none' 1 'ill.json:3: no JSON' "$nxdata" build ill.json -o new
sed 's/]$//' list.json >cut.json
expect 'a list that is cut short' 1 'cut.json is cut short: its list does not end' "$nxdata" build cut.json -o new
echo '[]' >none.json
expect 'a list of nothing' 1 'none.json is empty' "$nxdata" build none.json -o new
printf '%s\n' '{"text": "a"}' '{"text": "bc"}' >lines.json
expect 'a file of JSON with a record a line' 0 'tokens  *3$' "$nxdata" build lines.json -o json
echo '[{"text": "a"}]' >list.jsonl
expect 'lines that are lists' 1 'list.jsonl:1: it is a list.*jq -c' "$nxdata" build list.jsonl -o new
printf '\377\376a\0' >utf16.txt
printf 'PAR1\0' >table
expect 'UTF-16' 1 'utf16.txt is no text, but UTF-16: iconv' "$nxdata" build utf16.txt -o new
expect 'Parquet by another name' 1 'table is no text, but Parquet' "$nxdata" build --lines table -o new
printf 'one\ntwo\r\n\nthree' >lines.txt
expect 'lines' 0 'documents  *3$' "$nxdata" build --lines lines.txt -o lines
expect 'the first of them' 0 'tokens  *6$' "$nxdata" build --lines --limit 2 lines.txt -o first
expect 'a limit on tokens' 0 '^too long  *1 ' "$nxdata" build --lines --max-tokens 3 lines.txt -o short
expect 'that cuts' 0 'tokens  *6$' "$nxdata" build --lines --max-tokens 2 --too-long cut lines.txt -o cut
printf '%s\n' '{"x": [1, 2, 3], "y": [-100, 2, 3]}' '{"x": [1, 2, 3], "y": [-100, 3, 4]}' >labels.jsonl
expect 'labels, beside their tokens and before' 0 'tokens  *7$' \
  "$nxdata" build labels.jsonl --field x --labels y -o labels
expect 'are weights' 0 '0 0 0 0 80 3f 0 0 80 3f 0 0 0 0 0 0 0 0 0 0 80 3f 0 0 80 3f' \
  sh -c "od -An -v -t x1 labels.weights | sed 's/ 00/ 0/g' | tr -d '\n'"
expect 'labels that are other tokens' 1 'labels.jsonl:1: label 1 is 2' \
  sh -c "sed -i 's/1, 2, 3\\], \"y\"/1, 5, 3], \"y\"/' labels.jsonl; '$nxdata' build labels.jsonl --field x --labels y -o new"
expect 'a kind that nothing reads' 2 'save_to_disk' sh -c "touch a.parquet; '$nxdata' build a.parquet -o new"
mkdir folder && cp two.jsonl lines.txt folder
expect 'a folder' 0 'documents  *3$' "$nxdata" build folder -o folder_set
expect 'nothing is left of these either' 0 '^0$' sh -c "ls | grep -c '^new' || true"

# The same bytes whatever the number of threads.
i=0
while [ $i -lt 3000 ]; do
  printf '{"text": "%s of %s"}\n' "$i" "$text"
  i=$((i + 1))
done >many.jsonl
for threads in 1 2 4; do "$nxdata" build many.jsonl --append-eod --workers $threads -o many$threads; done >out 2>&1
cmp many1.bin many2.bin && cmp many1.bin many4.bin && cmp many1.idx many2.idx && cmp many1.idx many4.idx
report 'one, two and four threads write the same' $?

# Ten documents by 6, 3, 1: the parts are they, in order.
for i in 0 1 2 3 4 5 6 7 8 9; do printf "document $i" >"doc$i"; done
"$nxdata" build doc? -o ten >out 2>&1
expect 'split' 0 'documents  *6$' "$nxdata" split ten 6,3,1 -o parts
cat parts-train.bin parts-valid.bin parts-test.bin | cmp - ten.bin >out 2>&1
report 'the parts are the whole' $?
expect 'its parts are sound' 0 'documents  *3$' "$nxdata" check parts-valid
expect 'a part exists' 1 'give --force' "$nxdata" split ten 6/3/1 -o parts
expect 'a part of nothing is not written' 0 'documents  *10$' "$nxdata" split ten 1 -o whole
test ! -e whole-valid.idx
report 'so there is none' $?
expect 'shares that are none' 2 'no shares' "$nxdata" split ten 0,0 -o none
expect 'shares that are too many' 2 'no shares' "$nxdata" split ten 1,1,1,1 -o none

expect 'no command' 2 'build, prepare, merge, split, show, info, check or merge-adapter' "$nxdata"
expect 'an unknown command' 2 'unknown command frob' "$nxdata" frob
expect 'an unknown option' 2 'unknown option --frob' "$nxdata" build --frob "$text" -o new
expect 'no text' 2 'which text' "$nxdata" build -o new
expect 'no name' 2 'give -o PREFIX' "$nxdata" build "$text"
expect 'no dataset' 2 'which dataset' "$nxdata" info
expect 'help' 0 '^usage: nxdata build' "$nxdata" --help
! "$nxdata" --help | sed 's/…/./g' | grep '.\{81\}' >out 2>&1
report 'help has lines of 80 columns' $?
expect 'version' 0 '^nxdata [0-9]' "$nxdata" --version
finish
