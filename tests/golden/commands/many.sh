#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many files in one process: what is printed is what each alone would print, in order, whatever the threads do; and a
# folder is every configuration below it. TAP. Usage: many.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/all/sub/deep" "$work/all/.git" "$work/empty"
i=0
for file in *.yaml ../validate/*.yaml ../validate/files/*.yaml; do
  i=$((i + 1))
  cp "$file" "$work/all/$(printf '%03d' $i).yaml"
done
cp wrong.yaml "$work/all/sub/deep/x.yml"
cp wrong.yaml "$work/all/.git/hidden.yaml"
cp wrong.yaml "$work/all/.hidden.yaml"
echo text >"$work/all/README.md"
ln -s "$work/all" "$work/all/sub/again"
cd "$work" || exit 1
(
  mkdir too && cd too || exit 1
  for level in $(seq 66); do mkdir "$level" && cd "$level" || exit 1; done
  echo 'a: 1' >below.yaml
)
"$nxcfg" validate too >found 2>&1
[ $? = 2 ] && grep -q "more than 64 folders deep" found
result "folders that are not searched are named" $?
find all -name '*.y*ml' ! -path '*/.*' | LC_ALL=C sort >names
for format in text short; do
  while read -r file; do "$nxcfg" validate --format $format "$file"; done <names >wanted
  "$nxcfg" validate --format $format all >found
  result "$format: status of a folder with errors" $(($? != 1))
  cmp wanted found
  result "$format: $(wc -l <names) files print what each prints alone" $?
done
for format in json sarif gitlab; do
  "$nxcfg" validate --format $format all >first
  "$nxcfg" validate --format $format all >second
  cmp first second && [ -s first ]
  result "$format: the same every time" $?
done
"$nxcfg" validate empty 2>message
[ $? = 2 ] && grep -q 'there is no \*.yaml or \*.yml below empty' message
result "a folder without configurations" $?
finish
