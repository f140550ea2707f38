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
  "$nxcfg" validate --format short "$file" | grep -q NX1310 && continue # no training's
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
without_totals() {
  grep -vE '^[0-9]+ files: |^[0-9]+ can be mended with '
}
find all -name '*.y*ml' ! -path '*/.*' | LC_ALL=C sort >names
for format in text short; do
  while read -r file; do "$nxcfg" validate --format $format "$file"; done <names | without_totals >wanted
  "$nxcfg" validate --format $format all >all_printed
  result "$format: status of a folder with errors" $(($? != 1))
  without_totals <all_printed >found
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
[ $? = 2 ] && grep -q 'there is no \*.yaml, \*.yml or script below empty' message
result "a folder without configurations" $?
mkdir ci
printf 'name: ci\non: [push]\njobs: {test: {runs-on: ubuntu, steps: [{run: make}]}}\n' >ci/workflow.yml
printf 'services: {web: {image: nginx}}\nvolumes: {}\n' >ci/compose.yaml
printf 'apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Pod\n' >ci/pods.yaml
printf 'compute_environment: LOCAL_MACHINE\nmixed_precision: bf16\nnum_processes: 8\n' >ci/accelerate.yaml
printf 'train_batch_size: 8\nzero_optimization: {stage: 2}\nfp16: {enabled: true}\n' >ci/deepspeed.yaml
printf 'kind: {{ .Values.kind }}\n' >ci/template.yaml
printf -- '- hosts: all\n' >ci/list.yml
: >ci/empty.yaml
"$nxcfg" validate ci >found 2>message
[ $? = 2 ] && [ ! -s found ] && grep -q '8 files below folders are no training configurations' message
result "a folder without a training" $?
"$nxcfg" validate --memory 80GB --for nxrun ci >found 2>message
[ $? = 2 ] && [ ! -s found ] && grep -q '8 files below folders are no training configurations' message
result "nor one that takes memory" $?
cp all/001.yaml ci/of.yaml
printf 'trainer:\n  devices: 8\n   num_nodes: 1\n' >ci/unreadable.yaml
{ "$nxcfg" validate ci/of.yaml && "$nxcfg" validate ci/unreadable.yaml; } | without_totals >wanted
"$nxcfg" validate ci 2>message | without_totals >found
printf '8 files below folders are no training configurations and not judged (a file that is named is judged)\n' >>wanted
cmp wanted found && [ ! -s message ]
result "what is no training's is left alone below a folder, and counted; what cannot be read is not" $?
"$nxcfg" validate ci/compose.yaml >found
[ $? = 1 ] && grep -q NX1310 found
result "a file that is named is judged" $?
finish
