#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Secrets in every position (names of keys, the environment, references of references, URLs, keys that services give
# out, the command line, scripts): none is in what any command prints in any format, nor in a plan. TAP.
# Usage: secrets.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1") root=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export NX_TEST_SECRET=Zq7hidden NX_TEST_NAME=NX_TEST_SECRET NX_TEST_SIZE=Zq7hidden
secret='Zq7hidden\|hf_Zq7'
# What is printed has no secret; and not because nothing was printed.
silent() {
  printed=$("$nxcfg" "$@" 2>&1 </dev/null)
  bad=0
  if printf '%s' "$printed" | grep -q "$secret"; then bad=1; fi
  if [ -z "$printed" ]; then bad=1; fi
  if [ $bad = 1 ]; then printf '%s\n' "$printed" | grep "$secret" | sed 's/^/# /'; fi
  result "$(printf '%s' "$*" | sed 's/Zq7[a-z0-9]*/.../g')" $bad
}
write() { # NAME LINE: the quick start of NxDT with this line at its end
  cp "$root/conf/nxdt/quickstart.yaml" "$1.yaml"
  printf '%s\n' "$2" >>"$1.yaml"
}
write key 'wandb: {api-key: Zq7hidden, user_auth: Zq7hidden, passwd: [Zq7hidden]}'
write text 'mirror: {at: "https://me:Zq7hidden@host/x", with: hf_Zq7hidden0123456789}'
# shellcheck disable=SC2016
write query 'mirror: [https://host/x?a=1&token=Zq7hidden, "s3://b/x?X-Amz-Signature=Zq7hidden"]'
write environment 'mine: ${oc.env:NX_TEST_SECRET}'
# shellcheck disable=SC2016
write nested 'mine: ${oc.env:${oc.env:NX_TEST_SECRET}}'
# shellcheck disable=SC2016
write path 'mine: ${${oc.env:NX_TEST_SECRET}}'
# shellcheck disable=SC2016
write resolver 'mine: ${multiply:${oc.env:NX_TEST_SECRET}, 2}'
# shellcheck disable=SC2016
write unknown 'mine: ${${oc.env:NX_TEST_SECRET}:1}'
# shellcheck disable=SC2016
write copied 'mine: {password: Zq7hidden, copy: "${.password}", wrong: "${${.password}}"}'
write broken 'wandb: {api_key: Zq7hidden, api_key: Zq7hidden'
sed 's#^  explicit_log_dir: .*#  explicit_log_dir: "https://host/x?sig=Zq7hidden"#' "$root/conf/nxdt/quickstart.yaml" >signed.yaml
# shellcheck disable=SC2016
sed 's/^  explicit_log_dir: .*/  explicit_log_dir: runs\/${oc.env:NX_TEST_SECRET}/; s/^  num_layers: .*/  num_layers: ${oc.env:NX_TEST_SIZE}/' \
  "$root/conf/nxdt/quickstart.yaml" >settings.yaml
# shellcheck disable=SC2016
sed 's/^  explicit_log_dir: .*/  explicit_log_dir: runs\/${oc.env:NX_TEST_SECRET}/' "$root/conf/nxdt/quickstart.yaml" \
  >planned.yaml
{
  echo 'export WANDB_API_KEY=Zq7hidden'
  echo 'HF_TOKEN="Zq7hidden"'
  cat "$root/conf/megatron/quickstart.sh"
} >script.sh
# shellcheck disable=SC2016
sed 's#--num-layers#--load "/models/$WANDB_API_KEY/x" --wandb-project "p-$HF_TOKEN" --num-layers#' script.sh >passed.sh
grep -q HF_TOKEN passed.sh || exit 1
for file in key text query signed environment nested path resolver unknown copied broken settings planned; do
  for format in text short json github gitlab sarif; do silent validate --notes --format $format "$file.yaml"; done
  silent validate --hermetic $file.yaml
  silent validate --hermetic --format sarif $file.yaml
  silent validate --for nxrun $file.yaml
  silent plan $file.yaml
  silent plan --format json $file.yaml
  silent plan --why run.directory --why model.layers $file.yaml
  silent resolve $file.yaml
  silent resolve --format json $file.yaml
  silent diff "$root/conf/nxdt/quickstart.yaml" $file.yaml
  silent diff --format json "$root/conf/nxdt/quickstart.yaml" $file.yaml
  for to in nx nxdt megatron neox xorl; do silent convert $file.yaml --to $to; done
done
for command in validate plan 'convert --to nx'; do
  # shellcheck disable=SC2086
  silent $command script.sh
  # shellcheck disable=SC2086
  silent $command passed.sh
  # shellcheck disable=SC2086
  silent $command "$root/conf/nxdt/quickstart.yaml" --set exp_manager.wandb_logger_kwargs.api_key=Zq7hidden --notes
done
silent plan --all passed.sh
silent plan --why load passed.sh
silent diff passed.sh "$root/conf/megatron/quickstart.sh"
silent validate "$root/conf/nxdt/quickstart.yaml" +model.hf_token=Zq7hidden --notes
silent validate "$root/conf/nxdt/quickstart.yaml" --set model.no_token=Zq7hidden --set model.hf_tokn=hf_Zq7hidden0123456789
silent plan planned.yaml -o hidden.plan
[ ! -e hidden.plan ]
result "a plan that would hold a value of the environment is not written" $?
"$nxcfg" plan planned.yaml -o shown.plan --reveal >/dev/null
grep -q Zq7hidden shown.plan
result "unless it may" $?

sed 's/^exp_manager:/&\n  wandb_logger_kwargs: {api_key: Zq7hidden}/' "$root/conf/nxdt/quickstart.yaml" >harmless.yaml
"$nxcfg" plan harmless.yaml -o other.plan >/dev/null
[ -s other.plan ] && ! grep -q "$secret" other.plan
result "a plan has nothing of keys that it does not need" $?
finish
