#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What --fix makes of files, as TAP. For each file here: the diff of the safe repairs and of all of them, as it stands in
# NAME.diff (UPDATE=1 rewrites it). Then files of conf/ with one slip each: what is mended is not found again, twice is
# once, and no other line changes. Usage: mend.sh NXCFG FOLDER CONF
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
conf=$(realpath "$3")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

for file in *.yaml *.yml *.sh; do
  [ "$file" = mend.sh ] && continue
  found=$(
    echo "== safe"
    "$nxcfg" validate --diff "$file"
    echo "== all"
    "$nxcfg" validate --diff --unsafe "$file"
    echo "exit $?"
  )
  golden "$file" "$file.diff" <<END
$found
END
done

# A slip in every seventh line that has a key: two letters change places, one is lost, one comes twice, a number is
# quoted.
slip() {
  awk -v line="$2" -v kind="$3" '
    NR == line {
      match($0, /[a-z][a-z_-]*[a-z]/)
      at = RSTART + int(RLENGTH / 2)
      if (kind == 0) $0 = substr($0, 1, at - 1) substr($0, at + 1, 1) substr($0, at, 1) substr($0, at + 2)
      if (kind == 1) $0 = substr($0, 1, at - 1) substr($0, at + 1)
      if (kind == 2) $0 = substr($0, 1, at) substr($0, at)
      if (kind == 3 && match($0, /: *[0-9]+ *$/)) sub(/[0-9]+ *$/, "\"&\"")
    }
    { print }' "$1"
}
n_slips=0
for file in "$conf"/*/*.yaml "$conf"/*/*.yml "$conf"/*/*.sh; do
  case $file in */nx/*) continue ;; esac
  folder=$work/$(basename "$(dirname "$file")")
  mkdir -p "$folder"
  for line in $(awk 'NR % 7 == 0 && /^ *(--|")?[a-z][a-z_-][a-z_-][a-z_-][a-z_-]*[a-z]"?[: ]/ { print NR }' "$file"); do
    n_slips=$((n_slips + 1))
    slip "$file" "$line" $((n_slips % 4)) >"$folder/$n_slips-$(basename "$file")"
  done
done
cp -r "$work" "$work.before"
trap 'rm -rf "$work" "$work.before"' EXIT
"$nxcfg" validate --fix -q "$work" >/dev/null 2>&1
n_mended=$(diff -rq "$work.before" "$work" | wc -l)
[ "$n_mended" -gt $((n_slips / 3)) ]
result "of $n_slips files with a slip more than a third are mended" $? "$n_mended"
found=$("$nxcfg" validate --format json "$work" | awk '/"safe": true/ { n++ } END { print n + 0 }')
[ "$found" = 0 ]
result "a second run finds nothing of what is mended" $? "$found are left"
cp -r "$work" "$work.once"
trap 'rm -rf "$work" "$work.before" "$work.once"' EXIT
"$nxcfg" validate --fix -q "$work" >/dev/null 2>&1
difference=$(diff -r "$work.once" "$work")
result "mended twice is mended once" $? "$difference"
changed=$(diff -r "$work.before" "$work" | grep -c '^<')
[ "$changed" -le "$((n_mended * 2))" ]
result "no other line changes" $? "$changed lines of $n_mended files"

{
  printf 'TENSOR=1\nargs=()\n'
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo 'args+=(--tensor-model-parallel-size $TENSR)'; done
  echo 'torchrun pretrain_gpt.py "${args[@]}" --mock-data'
} >"$work/often.sh"
"$nxcfg" validate --fix -q "$work/often.sh" >/dev/null
! grep -q TENSR "$work/often.sh"
result "a misspelling that comes fourteen times is mended at once" $?

# What is put in ends its line as the others do.
sed 's/$/\r/' elsewhere.yml >"$work/cr.yml"
"$nxcfg" validate --fix --unsafe -q "$work/cr.yml" >/dev/null
"$nxcfg" validate --fix --unsafe - <elsewhere.yml | sed 's/$/\r/' | cmp -s - "$work/cr.yml"
result "lines that end in CR LF do so afterwards" $?

# What somebody saves after a file was read stays: the layer, a pipe, is read behind it.
cp keys.yaml "$work/saved.yaml"
mkfifo "$work/layer"
(
  exec 3>"$work/layer"
  echo '# saved' >>"$work/saved.yaml"
  exec 3>&-
  while [ -p "$work/layer" ]; do : >"$work/layer"; done
) &
said=$("$nxcfg" validate --fix -q "$work/saved.yaml" -l "$work/layer" 2>&1 >/dev/null)
ended=$?
kill $! && wait $! 2>/dev/null
rm "$work/layer"
grep -v '^# saved' "$work/saved.yaml" | cmp -s - keys.yaml && [ "$ended" = 2 ]
result "a file that has changed since it was read is not written" $? "$said"

# What a person has to find the same: the rights of a script, links, standard input, the exit status.
cp keys.yaml "$work/run.yaml"
chmod 750 "$work/run.yaml"
ln -s run.yaml "$work/link.yaml"
"$nxcfg" validate --fix -q "$work/link.yaml" >/dev/null
[ -L "$work/link.yaml" ] && [ "$(stat -c %a "$work/run.yaml")" = 750 ] && ! cmp -s keys.yaml "$work/run.yaml"
result "a link and the rights of its file stay" $?
"$nxcfg" validate --fix - <keys.yaml | cmp -s - "$work/run.yaml"
result "standard input is mended to standard output" $?
"$nxcfg" validate --diff "$work/run.yaml" >/dev/null
result "--diff ends with 0 where nothing can be mended" $?
! "$nxcfg" validate --diff keys.yaml >/dev/null
result "and with 1 where something can" $?
"$nxcfg" validate --diff --color always keys.yaml | sed 's/\x1b\[3[12]m//; s/^\x1b\[0m//' >"$work/plain"
"$nxcfg" validate --diff keys.yaml | cmp -s - "$work/plain"
result "colours change nothing else" $?
"$nxcfg" validate --diff --color always keys.yaml | grep -q "$(printf '\033')\[32m+"
result "what is new is green" $?
printf '\357\273\277' | cat - keys.yaml >"$work/mark.yaml"
"$nxcfg" validate --fix -q "$work/mark.yaml" >/dev/null
tail -c +4 "$work/mark.yaml" | cmp -s - "$work/run.yaml"
result "a byte-order mark stays" $?
finish
