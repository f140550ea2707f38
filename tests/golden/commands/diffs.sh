#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nxcfg diff compares, and for whom it prints, as TAP: pipes, standard input, revisions, folders; github, markdown.
# Usage: diffs.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
conf=$(realpath "$2")/conf
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

expect() { # NAME STATUS WANTED TEXT...: the exit status, and what stands in what was printed; ! before one that does not
  name=$1 bad=
  [ "$2" = "$3" ] || bad="exit status $2"
  shift 3
  for text in "$@"; do
    case $text in
    !*) ! grep -qF -- "${text#?}" printed || bad="$bad; prints ${text#?}" ;;
    *) grep -qF -- "$text" printed || bad="$bad; does not print $text" ;;
    esac
  done
  [ -z "$bad" ]
  result "$name" $? "$bad
$(cat printed)"
}

# What no setting holds, or what one would hold if the length of the training were known.
sed 's/^    - path: .*/    - path: org\/texts/; s/max_steps: .*/num_train_epochs: 2/' "$conf/../tests/golden/xorl/base.yaml" >base.yaml
sed 's/^    - path: .*/&\n      name: other/' base.yaml >edited.yaml
"$nxcfg" diff base.yaml edited.yaml >printed 2>&1
expect 'a key of a dataset' $? 1 'data.datasets[0].name' 'unknown -> "other"'
sed 's/lr_warmup_ratio: .*/lr_warmup_ratio: 0.2/' base.yaml >edited.yaml
"$nxcfg" diff base.yaml edited.yaml >printed 2>&1
expect 'a share of a length that is not known' $? 1 'train.lr_warmup_ratio' '0.1 -> 0.2'

# What says the kind of the model says more than that.
mamba() {
  printf '#!/bin/bash\npython pretrain_mamba.py --spec %s.mamba_layer_specs mamba_stack_spec --hybrid-layer-pattern %s --num-layers 4 \\\n' "$1" "$2"
  printf -- '--hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 \\\n'
  printf -- '--train-iters 10 --lr 1e-4 --mock-data --vocab-size 99 --tokenizer-type NullTokenizer\n'
}
mamba one 'M*M*' >one.sh
mamba two 'M*M*' >two.sh
mamba one 'MM**' >three.sh
"$nxcfg" diff one.sh two.sh >printed 2>&1
expect 'a specification of layers' $? 1 '  spec ' '1 option differs; changes the training'
"$nxcfg" diff one.sh three.sh >printed 2>&1
expect 'a pattern of layers' $? 1 '  hybrid-layer-pattern ' '1 option differs; changes the training'

# Programs that are not known, and what starts them.
ray() {
  printf '#!/bin/bash\nray job submit -- python3 %s --actor-num-nodes 1 --hf-checkpoint /m --lr 1e-4 --seq-length 64\n' "$1"
}
ray train.py >one.sh
ray train_async.py >two.sh
"$nxcfg" diff one.sh two.sh >printed 2>&1
expect 'another program' $? 1 '"train.py" -> "train_async.py"' '1 option differs; changes the training'

# Files that Hydra composes of others mean what the whole means.
mkdir -p hydra/model
cp "$conf/nxdt/quickstart.yaml" whole.yaml
sed '/^model:/,/^[a-z]/{/^model:/d;/^ /d;}' whole.yaml >hydra/base.yaml
sed -n '/^model:/,/^[a-z]/{s/^  //p;}' whole.yaml >hydra/model/small.yaml
printf 'defaults:\n  - base\n  - model: small\n  - optional data: nowhere\n  - _self_\nseed: 99\n' >hydra/run.yaml
"$nxcfg" diff whole.yaml hydra/run.yaml >printed 2>&1
expect 'a defaults list' $? 1 'run.seed' '1234 -> 99' ': 1 setting differs' '!error'
sed 's/  - base/  - nowhere/' hydra/run.yaml >hydra/lost.yaml
"$nxcfg" validate hydra/lost.yaml >printed 2>&1
expect 'a defaults list whose file is not there' $? 1 'error[NX1408]' 'hydra/nowhere.yaml, which is not here' '!NX1307'

mkdir a b
cp "$conf/nxdt/quickstart.yaml" a/one.yaml
cp a/one.yaml a/two.yaml
cp a/one.yaml b/one.yaml
sed 's/gradient_clip_val: .*/gradient_clip_val: 0.5/' a/one.yaml >b/two.yaml
cp a/one.yaml a/gone.yaml
cp a/one.yaml b/new.yaml
printf 'kind: Service\n' >b/service.yaml

cat b/two.yaml | "$nxcfg" diff a/one.yaml - >printed 2>&1
expect 'standard input' $? 1 'optimizer.clip_norm' '1.0 -> 0.5'
mkfifo pipe
cat a/one.yaml >pipe &
"$nxcfg" diff pipe b/one.yaml >printed 2>&1
expect 'a pipe' $? 0 'mean the same'
"$nxcfg" diff a b >printed 2>&1
expect 'folders: file by file' $? 1 'a/one.yaml and b/one.yaml mean the same' 'a/two.yaml and b/two.yaml: 1 setting differs' \
  'a/gone.yaml is only in a' 'b/new.yaml is only in b' '!service.yaml'
"$nxcfg" diff a b --format json >printed 2>&1
expect 'folders: one list' $? 1 '"same": true' '"only": "b"' '"class"'
"$nxcfg" diff a/two.yaml b/two.yaml --format markdown >printed 2>&1
expect 'a comment for a pull request' $? 1 '| what | before | after | effect |' '| `optimizer.clip_norm` | 1.0 | 0.5 |'
"$nxcfg" diff a/two.yaml b/two.yaml --format github >printed 2>&1
expect 'annotations' $? 1 '::notice file=b/two.yaml,line=18' 'optimizer.clip_norm: 1.0 -> 0.5'
"$nxcfg" diff a/one.yaml b/one.yaml --format nonsense >printed 2>&1
expect 'a format that there is not' $? 2 '--format takes text, json, github or markdown'

if ! command -v git >/dev/null; then
  skip 'revisions' 'git is not here'
  finish
fi
export GIT_CONFIG_GLOBAL=/dev/null
git init -q . && git add a && git -c user.name=n -c user.email=e commit -qm first
sed -i 's/gradient_clip_val: .*/gradient_clip_val: 0.25/' a/two.yaml
cp a/one.yaml a/fresh.yaml
"$nxcfg" diff --git HEAD a/two.yaml >printed 2>&1
expect 'a file and what it was' $? 1 '1.0 -> 0.25' 'HEAD:a/two.yaml and a/two.yaml: 1 setting differs'
(cd a && "$nxcfg" diff --git HEAD two.yaml) >printed 2>&1
expect 'from within a folder' $? 1 '1.0 -> 0.25'
"$nxcfg" diff --git HEAD a >printed 2>&1
expect 'a folder and what it was' $? 1 'HEAD:a/one.yaml and a/one.yaml mean the same' 'a/fresh.yaml is only in the working tree'
mkdir a/deep && cp a/one.yaml a/deep/four.yaml && printf 'kind: Service\n' >a/deep/service.yaml
git add a && git -c user.name=n -c user.email=e commit -qm second
rm -r a/deep a/one.yaml
"$nxcfg" diff --git HEAD a >printed 2>&1
expect 'a folder of which files are gone' $? 1 'a/one.yaml is only in HEAD' 'a/deep/four.yaml is only in HEAD' '!service'
(cd a && "$nxcfg" diff --git HEAD . deep/four.yaml) >printed 2>&1
expect 'this folder, and a file whose folder is gone' $? 1 'HEAD:fresh.yaml and fresh.yaml mean the same' \
  'one.yaml is only in HEAD' 'deep/four.yaml is only in HEAD' '!./'
"$nxcfg" diff --git HEAD~9 a >printed 2>&1
expect 'a folder at a revision that there is not' $? 2 'git knows no revision HEAD~9 of a'
"$nxcfg" diff --git nonsense a/two.yaml >printed 2>&1
expect 'a revision that there is not' $? 2 'git knows no revision nonsense'
"$nxcfg" diff --git --output=x a/two.yaml >printed 2>&1
expect 'an option is no revision' $? 2 'is no revision'
# A source that both have stands once, and speeds are told as elsewhere.
sed 's/tensor_model_parallel_size: 8/tensor_model_parallel_size: 4/' "$conf/nxdt/llama-7b.yaml" >other.yaml
"$nxcfg" diff "$conf/nxdt/llama-7b.yaml" other.yaml --machine trn2 >printed 2>&1
expect "sources and speeds" $? 1 "     (derived by NX2001 from mesh.world, mesh.tensor, mesh.pipeline," \
  '      -> other.yaml:58, distributed_strategy.tensor_model_parallel_size)' "ktokens/s -> " '!e+04'
[ "$(grep '^     ' printed | awk 'length > 80')" = '' ]
result "sources: no line is longer than 80 columns" $? "$(cat printed)"
finish
