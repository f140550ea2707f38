#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where nxcfg writes: a pipe or a device stays one, a link stays a link, and lost output is an error. TAP.
# Usage: outputs.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
file=../ops/llama_tp2.yaml
"$nxcfg" plan $file -o "$work/plan" >/dev/null || exit 1

mkfifo "$work/pipe"
cat "$work/pipe" >"$work/through" &
"$nxcfg" plan $file -o "$work/pipe" >/dev/null
result "a plan goes into a pipe" $?
if [ -p "$work/pipe" ]; then kept=0; else kept=1 && kill $!; fi
wait
result "which stays a pipe" $kept
cmp -s "$work/plan" "$work/through"
result "and gets the whole plan" $?

ln -s file "$work/link"
cp "$work/plan" "$work/file"
"$nxcfg" plan $file --set optimizer.lr=0.5 -o "$work/file" >/dev/null || exit 1
"$nxcfg" plan $file -o "$work/link" >/dev/null && [ -h "$work/link" ] && cmp -s "$work/plan" "$work/file"
result "a link stays a link, and its file is replaced" $?

cp $file "$work/own.yaml"
"$nxcfg" plan "$work/own.yaml" -o "$work/own.yaml" >"$work/message" 2>&1
[ $? = 2 ] && cmp -s $file "$work/own.yaml" && grep -q "is no plan, so it is not replaced" "$work/message"
result "a configuration is not replaced by its plan" $?

if command -v script >/dev/null; then
  cp ../validate/files/misspelt.yaml "$work/misspelt_with_a_name_that_is_so_long_that_no_line_of_eighty_columns_has_room.yaml"
  script -qec "$nxcfg validate --color never $work/misspelt*.yaml" /dev/null | tr -d '\r' |
    awk -v name="$work" '/^ *\|/ || /^ *[0-9]+ \|/ || index($0, name) { next } length > 80 { print "# " $0; bad = 1 } END { exit bad }'
  result "findings on a screen stay within 80 columns" $?
  narrow() { # NAME COMMAND...: on a screen with colours, none of its lines is wider than a screen
    name=$1 && shift
    TERM=xterm script -qc "$*" /dev/null </dev/null | sed 's/\r//; s/\x1b\[[0-9;]*m//g' >"$work/screen"
    LC_ALL=C.UTF-8 awk 'length > 80 { print "# " $0; bad = 1 } END { exit bad || NR < 3 }' "$work/screen"
    result "$name on a screen stays within 80 columns" $?
  }
  { printf 'trainer: ' && printf '%300s' | tr ' ' '[' && echo; } >"$work/deep.yaml"
  narrow "a long line" "cd $work && $nxcfg validate deep.yaml"
  printf 'model: {layers: 2, %s}\n' "$(seq -s ', ' -f 'unknown_%g: 1' 20)" >"$work/far.yaml"
  narrow "an excerpt behind a long comment" "cd $work && $nxcfg validate --dialect nx far.yaml"
  narrow "a long head in colours" "$nxcfg validate --dialect nxdt /dev/null"
  narrow "notes" "$nxcfg validate --notes ../../../conf/nxdt/llama-7b.yaml"
  narrow "rules that lack something" "$nxcfg validate --notes ../validate/files/bits_unquoted.yaml"
  narrow "a difference" "$nxcfg diff ../../../conf/megatron/llama-405b.sh ../../../conf/megatron/quickstart.sh"
  narrow "a list of options" "$nxcfg explain trainer"
  narrow "the head of every rule" "$nxcfg explain \$($nxcfg explain --names | grep '^NX') | grep '^NX'"
  narrow "what another system cannot say" "$nxcfg convert ../../../conf/nxdt/llama-7b.yaml --to megatron -o $work/narrow.sh"
fi

cp $file "$work/own.yaml"
ln "$work/own.yaml" "$work/same.yaml"
for words in "convert $work/own.yaml --to nx -o $work/own.yaml" "convert $work/own.yaml --to nx --force -o $work/own.yaml" \
  "tune $work/own.yaml --machine h100 -o $work/own.yaml" "convert $work/own.yaml --to nx -o $work/same.yaml" "convert $file -l $work/own.yaml --to nx -o $work/own.yaml"; do
  # shellcheck disable=SC2086
  "$nxcfg" $words >/dev/null 2>"$work/message"
  [ $? = 2 ] && grep -q "is read here, so it is not replaced" "$work/message" && cmp -s $file "$work/own.yaml"
  result "${words%% *} does not write over what it reads" $?
done

# What is another's stays; its like is replaced; --force is asked for where nothing tells them apart.
stays() { # MESSAGE WORDS...
  message=$1 && shift
  echo another >"$work/other"
  "$nxcfg" "$@" "$work/other" >/dev/null 2>"$work/message"
  [ $? = 2 ] && grep -q "$message" "$work/message" && [ "$(cat "$work/other")" = another ]
  result "$1 leaves what is another's" $?
}
stays "is there and is no converted configuration, .* or --force" convert $file --to neox -o
stays "is there, so it is not replaced: give --model-config-out another name, or --force" \
  convert $file --to xorl --model-config-out
stays "is there, so it is not replaced" tune $file --machine h100 -o
stays "is there and is no page" plan $file --html
stays "is there and is no picture" plan $file --svg
stays "is there and is no picture" show "$work/plan" --svg
"$nxcfg" convert $file --to neox -o "$work/again" >/dev/null 2>&1
sed -i 's/^# neox/# /;$d' "$work/again"
"$nxcfg" convert $file --to megatron -o "$work/again" >/dev/null 2>&1
sed -n 1p "$work/again" | grep -q "^# megatron, converted"
result "a converted configuration is replaced by another" $?
"$nxcfg" convert $file --to neox -o "$work/other" --force >/dev/null 2>&1
sed -n 1p "$work/other" | grep -q "^# neox, converted"
result "--force replaces what is there" $?

"$nxcfg" plan "" -o "$work/none" >/dev/null 2>"$work/message"
[ $? = 2 ] && grep -q "the name of a file is empty" "$work/message" && [ ! -e "$work/none" ]
result "a variable of the shell that is not set" $?

# A name may hold whatever a terminal or a shell would obey.
odd=$(printf 'odd\n\033[31mname')
cp $file "$work/$odd.yaml"
plain() { # NAME COMMAND...: prints the name, in one line
  name=$1 && shift
  (cd "$work" && "$nxcfg" "$@") >"$work/message" 2>&1
  grep -q 'odd.*name' "$work/message" && ! grep -q "$(printf '\033')" "$work/message"
  result "$name shows no odd name as it is" $?
}
plain plan plan "$odd.yaml" -o "$odd.plan"
plain "plan --all" plan "$odd.yaml" --all
plain tune tune "$odd.yaml" --machine h100 -o "$odd.tuned.yaml"
plain diff diff "$odd.yaml" "$odd.yaml"
plain convert convert "$odd.yaml" --to megatron
plain "what cannot be written" plan "$odd.yaml" -o "nowhere/$odd.plan"

mkdir "$work/limited"
for kept in "" "$work/plan"; do
  [ -z "$kept" ] || cp "$kept" "$work/limited/plan"
  (ulimit -f 4 && "$nxcfg" plan $file -o "$work/limited/plan") >/dev/null 2>"$work/message"
  [ $? = 2 ] && grep -q "cannot write .*plan: File too large" "$work/message" &&
    [ "$(ls "$work/limited")" = "${kept:+plan}" ] && { [ -z "$kept" ] || cmp -s "$kept" "$work/limited/plan"; }
  result "a limit on the size of files leaves what was there: ${kept:+the old plan}" $?
done
for delay in 1 2 3 4 5 6 7 8 9; do
  timeout -s KILL 0.00$delay "$nxcfg" plan $file -o "$work/limited/plan" >/dev/null 2>&1
  timeout -s KILL 0.0$delay "$nxcfg" plan $file -o "$work/limited/plan" >/dev/null 2>&1
done
# Who is killed between two calls of the kernel leaves a second name of the whole plan, which is rare.
whole=0
for left in "$work/limited"/*; do cmp -s "$work/plan" "$left" || whole=1; done
[ $whole = 0 ] && [ -e "$work/limited/plan" ] && [ "$(ls "$work/limited" | wc -l)" -le 2 ]
result "killed at any moment it leaves a whole plan, and nothing that is not whole" $?
rm -f "$work/limited"/plan.*.tmp

if [ -c /dev/full ]; then
  for words in --help --version "plan --help" "validate $file" "resolve $file" "schema nx" "explain mesh.tensor" "diff $file diff_lr.yaml" \
    "convert $file --to nx" "show $work/plan --ops"; do
    # shellcheck disable=SC2086
    "$nxcfg" $words >/dev/full 2>"$work/message"
    [ $? = 2 ] && grep -q "cannot write all of its output .*: No space left on device" "$work/message"
    result "${words%% *} notices a full disk" $?
  done
fi
"$nxcfg" show "$work/plan" --ops | grep -q " segment kind=constant "
result "values of an enumeration are shown by their names" $?
echo "<svg/>" >"$work/picture.svg"
cp "$work/picture.svg" "$work/before.svg"
(ulimit -f 0 && "$nxcfg" show "$work/plan" --svg "$work/picture.svg") >/dev/null 2>&1
[ $? = 2 ] && cmp -s "$work/before.svg" "$work/picture.svg"
result "a picture that cannot be written leaves what was there" $?
sed 's/^seed:/sead:/' ../../../conf/nxdt/quickstart.yaml >"$work/mend.yaml"
cp "$work/mend.yaml" "$work/before.yaml"
said=$(ulimit -f 0 && "$nxcfg" validate --fix "$work/mend.yaml" 2>/dev/null)
found=$?
case $said in *" fixed"*) told=1 ;; *"unknown key sead"*) told=0 ;; *) told=1 ;; esac
[ $found$told = 20 ] && cmp -s "$work/before.yaml" "$work/mend.yaml"
result "what cannot be mended is not said to be" $? "exit $found: $said"
(ulimit -f 0 && "$nxcfg" sign --new-key "$work/key") >/dev/null 2>&1
[ $? = 2 ] && [ ! -e "$work/key" ] && [ ! -e "$work/key.pub" ]
result "of a key that cannot be written nothing is left" $?
"$nxcfg" show "$work" 2>&1 | grep -q "Is a directory"
result "a folder is no plan" $?
"$nxcfg" show "$work/plan" --opps 2>&1 | grep -q "unknown option --opps"
result "an unknown option is named" $?
# ---- and what it does not wait for ----

mkfifo "$work/data.idx"
timeout 20 "$nxcfg" plan ../../../conf/neox/quickstart.yml --set train_iters=null --set train_epochs=1 \
  --set "data_path=$work/data" >/dev/null 2>&1
result "a pipe is no index of a dataset" $?
finish
