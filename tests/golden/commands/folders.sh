#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A repository as a new user has it, as TAP: what init finds and writes, what folders stand for, what is left out; the
# help of every command within 80 columns; completion in the shells that are here. Usage: folders.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

expect() { # NAME TEXT...: each stands in what was printed; ! before one that does not
  name=$1 bad=
  shift
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

mkdir -p .git conf/nxdt scripts k8s build/out old
cp "$root"/conf/nxdt/quickstart.yaml conf/nxdt/a.yaml
cp "$root"/conf/nxdt/quickstart.yaml conf/nxdt/b.yaml
cp "$root"/conf/neox/quickstart.yml conf/neox.yml
cp "$root"/conf/megatron/quickstart.sh scripts/train.sh
cp "$root"/conf/nxdt/quickstart.yaml build/out/copy.yaml
cp "$root"/conf/nxdt/quickstart.yaml old/wrong.yaml
sed -i 's/devices: .*/devices: many/' old/wrong.yaml
printf 'apiVersion: v1\nkind: Service\n' >k8s/service.yaml
printf '#!/bin/bash\nmake "$@"\nfor f in *.c; do echo "$f"; done\n' >scripts/build.sh
printf '#!/bin/bash\nmytool --set a=1 --set b=2 --dry-run run.yaml\n' >scripts/tool.sh
printf '/build/\n*.log.yaml\n!keep.log.yaml\n' >.gitignore
cp conf/nxdt/a.yaml conf/x.log.yaml
cp conf/nxdt/a.yaml conf/keep.log.yaml

"$nxcfg" validate . >printed 2>&1
expect 'a folder: configurations and scripts, less what git leaves out' 'conf/nxdt/a.yaml: valid' 'scripts/train.sh: valid' \
  'conf/keep.log.yaml: valid' '!x.log.yaml' '!build/out' '!build.sh' '!tool.sh' '6 files: 5 valid, 1 wrong' \
  '3 files below folders are no training configurations'
mkdir none
"$nxcfg" validate none conf/neox.yml none >printed 2>&1
[ $? -eq 2 ] || echo 'is no error' >printed
expect 'a folder without any is told, and what stands beside it is judged' 'conf/neox.yml: valid' 'script below none'
rmdir none
"$nxcfg" init >printed 2>&1
expect 'init says what it found' '6 of 9 files are training configurations' 'conf/nxdt/*.yaml ' 'scripts/train.sh ' \
  'k8s/ ' 'wrote .nxcfg.yaml'
cp .nxcfg.yaml printed
expect 'init writes patterns with their systems' 'match: "conf/nxdt/*.yaml"' 'dialect: nxdt' 'match: "conf/*.yml"' \
  'dialect: neox' 'match: "scripts/train.sh"' 'dialect: megatron' '- "k8s/"'
mkdir -p ../parts.$$/configs && (
  cd ../parts.$$ && mkdir -p .git
  printf '{"pipe_parallel_size": 1, "data_path": "d", "vocab_file": "v", "merge_file": "m"}\n' >configs/setup.yml
  sed -n p "$root/conf/neox/quickstart.yml" >configs/whole.yml
  "$nxcfg" init && cat .nxcfg.yaml && "$nxcfg" validate . && ! "$nxcfg" validate --dialect neox /dev/stdin <configs/setup.yml
) >printed 2>&1
expect 'init finds parts of configurations' '1 file ' 'parts of configurations, judged so' '- "configs/setup.yml"' \
  'partial: true' '2 files: 2 valid, 0 wrong' 'NX6911'
rm -r ../parts.$$
# What names may hold that YAML and patterns read otherwise.
mkdir -p ../odd.$$ && (
  cd ../odd.$$ && mkdir -p .git 'fol"der' && echo 'x: 1' >'fol"der/x.yaml'
  sed -n p "$root/conf/neox/quickstart.yml" >'a "quoted" [name]\.yml'
  sed -n p "$root/conf/nxdt/quickstart.yaml" >'a "quoted" n.yml'
  "$nxcfg" init && "$nxcfg" validate .
) >printed 2>&1
expect 'init writes any name so that it is read again' '2 files: 2 valid, 0 wrong' '!NX'
rm -r ../odd.$$
! "$nxcfg" init >printed 2>&1
result 'init replaces nothing' $?
sed -i 's|^exclude:|exclude:\n  - old/\n  - "*.log.yaml"|' .nxcfg.yaml
"$nxcfg" validate . >printed 2>&1
result 'a folder is valid with what is excluded' $? "$(cat printed)"
expect 'what is excluded is left out' '!old/' '!keep.log.yaml' '4 files: 4 valid, 0 wrong'
"$nxcfg" validate old/wrong.yaml >printed 2>&1
expect 'a file that is named is judged all the same' 'old/wrong.yaml: 1 error'
(cd conf && "$nxcfg" validate ..) >printed 2>&1
expect 'from another folder' '../conf/nxdt/a.yaml: valid' '!old/'
printf '#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n' | sed '1i #!/bin/bash' >scripts/job.sbatch
cat "$root"/conf/neox/quickstart.yml | grep -v global_num_gpus >conf/neox.yml
rm .nxcfg.yaml
"$nxcfg" init >/dev/null 2>&1
cp .nxcfg.yaml printed
expect 'the world size that a Slurm script asks for' 'world_size: 32'
mkdir "$work/none" && cd "$work/none" || exit 1
! "$nxcfg" init >../printed 2>&1
result 'init where there is nothing' $?
cd "$work" || exit 1

# -- a verdict at every change
wait_for() { # TEXT in `printed`
  tries=0
  until grep -q "$1" printed || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
}
ln -s conf/nxdt/a.yaml link.yaml
echo 'trainer: {num_nodes: 1}' >layer.yaml
"$nxcfg" validate --watch link.yaml -l layer.yaml >printed 2>&1 &
watcher=$!
wait_for waiting
sed -i 's/devices: .*/devices: many/' conf/nxdt/a.yaml
wait_for '1 error'
echo 'trainer: {num_nodess: 1}' >layer.yaml
wait_for '2 errors'
kill "$watcher"
wait "$watcher" 2>/dev/null
expect '--watch judges again, for links and layers too' 'link.yaml: valid' 'link.yaml: 1 error' 'link.yaml: 2 errors'

# -- help and completion
"$nxcfg" --help >printed
long=
for command in $(sed -nE 's/^  ([a-z-]+) .*/\1/p' printed); do
  "$nxcfg" help "$command" >help.text || long="$long; no help of $command"
  grep -q "^usage: nxcfg $command" help.text || long="$long; no usage of $command"
  long="$long$(awk -v c="$command" 'length($0) > 80 { printf "; %s: %s", c, $0 }' help.text)"
done
[ -z "$long" ]
result 'the help of every command, within 80 columns' $? "$long"
! "$nxcfg" help nonsense >/dev/null 2>&1
result 'help of what is no command' $?
"$nxcfg" explain mesh >printed 2>&1
expect 'explain lists a group' 'mesh holds' 'mesh.tensor ' 'mesh.world '
for shell in bash zsh fish; do
  "$nxcfg" completion $shell >"completion.$shell"
  if ! command -v $shell >/dev/null; then
    skip "completion: $shell" 'this shell is not here'
    continue
  fi
  $shell -n "completion.$shell"
  result "completion: $shell reads it" $?
done
mkdir -p bin && ln -sf "$nxcfg" bin/nxcfg
complete_in_fish() {
  PATH=$work/bin:$PATH fish --no-config -c 'source completion.fish; for line in $argv; complete -C "$line"; end' -- "$@"
}
if command -v fish >/dev/null; then
  complete_in_fish 'nxcfg val' 'nxcfg validate --stat' 'nxcfg explain mesh.tens' 'nxcfg convert a.yaml --to ne' \
    'nxcfg plan a.yaml --why mesh.tens' 'nxcfg tune a.yaml --machine h1' >printed 2>&1
  expect 'completion: fish' 'validate' '--statistics' 'mesh.tensor' 'neox' 'h100' '!test:'
else
  skip 'completion: fish' 'this shell is not here'
fi
complete_in_bash() { # in a file: the line of a shell has its own functions
  PATH=$work/bin:$PATH bash -c 'compopt() { : ; }; source ./completion.bash
    for line; do COMP_WORDS=($line) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=() && _nxcfg && echo "${COMPREPLY[@]}"; done' bash "$@"
}
complete_in_bash 'nxcfg val' 'nxcfg validate --stat' 'nxcfg explain mesh.tens' 'nxcfg convert a.yaml --to ne' \
  'nxcfg plan a.yaml --why mesh.tens' 'nxcfg tune a.yaml --machine h' 'nxcfg plan a.yaml --assume mesh.wor' 'nxcfg machines tpu-v4' >printed 2>&1
expect 'completion: bash' 'validate' '--statistics' 'mesh.tensor' 'neox' 'h100 h100-4' 'mesh.world' 'tpu-v4' '!bash:' '!head'
# compadd takes words only where zsh completes a line; here it prints those that go on as the line does.
complete_in_zsh() {
  PATH=$work/bin:$PATH zsh -f -c 'compdef() { : }; _files() { : }; source ./completion.zsh
    compadd() { for word; do [[ $word == ${words[CURRENT]}* && $word != -- ]] && print -r -- $word; done; true }
    for line; do words=(${(s: :)line}); CURRENT=$#words; _nxcfg; done' zsh "$@"
}
if command -v zsh >/dev/null; then
  complete_in_zsh 'nxcfg val' 'nxcfg validate --stat' 'nxcfg explain mesh.tens' 'nxcfg convert a.yaml --to ne' \
    'nxcfg plan a.yaml --why mesh.tens' 'nxcfg tune a.yaml --machine h1' >printed 2>&1
  expect 'completion: zsh' 'validate' '--statistics' 'mesh.tensor' 'neox' 'h100'
else
  skip 'completion: zsh' 'this shell is not here'
fi
PATH=$work/bin:$PATH bash -c '
  . ./completion.bash
  complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nxcfg 2>/dev/null; echo "${COMPREPLY[@]}"; }
  complete_words nxcfg val
  complete_words nxcfg validate --stat
  complete_words nxcfg explain mesh.tens
  complete_words nxcfg validate --dialect nxd' >printed
expect 'completion: commands, options, names, dialects' validate --statistics mesh.tensor nxdt

# Nobody waits for what a pipe beside a configuration may bring some day.
mkdir -p pipes/model pipes/weights && cp "$root/conf/xorl/quickstart.yaml" pipes/x.yaml
sed -i 's#config_path: .*#config_path: model#' pipes/x.yaml
cp "$root/conf/nx/quickstart.yaml" pipes/n.yaml
mkfifo pipes/model/config.json pipes/weights/model.safetensors.index.json pipes/piped.yaml pipes/hosts
(cd pipes && timeout 20 "$nxcfg" validate x.yaml --world-size 2) >printed 2>&1
expect 'a pipe for a config.json' 'NX1315' 'cannot read model/config.json: Invalid argument'
(cd pipes && timeout 20 "$nxcfg" plan n.yaml --set run.init_from=weights) >printed 2>&1
expect 'a pipe for an index of weights' 'layout   2 ranks'
timeout 20 "$nxcfg" validate pipes >printed 2>&1
expect 'a pipe in a folder' 'pipes/n.yaml: valid' '!piped.yaml'
sed 's/"pipe-parallel-size"/"hostfile": "hosts", &/' "$root/conf/neox/quickstart.yml" >pipes/h.yml
(cd pipes && timeout 20 "$nxcfg" validate h.yml) >printed 2>&1
expect 'a pipe for a hostfile' 'h.yml: '
mkfifo pipes/.nxcfg.yaml
timeout 20 "$nxcfg" validate pipes/n.yaml >printed 2>&1
expect 'a pipe for a project file' 'NX1500' 'cannot read pipes/.nxcfg.yaml: Invalid argument'

! LC_ALL=C "$nxcfg" tune "$root/conf/nxdt/llama-7b.yaml" --machine trn2 --help 2>&1 | LC_ALL=C grep -q '[^ -~]'
result 'no other characters than those of the C locale' $?
finish
