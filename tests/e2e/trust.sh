#!/bin/sh
# Signed plans and weights, and paths that a plan may name: what is not trusted or not allowed never runs. TAP.
# usage: trust.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"
here=$(realpath .)

printf '%2000s' 'A text to train on. ' >text
mkdir data outside
"$nxdata" build text -o data/set >/dev/null || exit 99
cat >base.yaml <<END
mesh: {world: 2}
batch: {micro: 1, global: 2}
model: {layers: 1, hidden: 16, ffn_hidden: 32, heads: 2, kv_heads: 2, sequence: 8, vocab: 300, vocab_divisor: 4}
optimizer: {name: adamw, lr: 3e-3}
schedule: {max_steps: 2}
data: {path: [$here/data/set]}
run: {name: run, directory: $here/runs/one}
END
plan() { # NAME [SETTING=VALUE]...
  name=$1
  shift
  for setting; do set -- "$@" --set "nx:$setting"; shift; done
  "$nxcfg" plan base.yaml "$@" -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
run="$mpiexec -n 2 $nxrun"

# ---- keys ----
passes 'a key is made' "$nxcfg" sign --new-key key
[ "$(stat -c %a key)" = 600 ] && grep -qE '^nx-ed25519 [0-9a-f]{64}$' key.pub && ! grep -q "$(cut -d' ' -f2 key)" key.pub
report 'for its owner alone, with a public half' $?
expect 'and never replaced' 2 'cannot write key: File exists' "$nxcfg" sign --new-key key
"$nxcfg" sign --new-key other >/dev/null
{ echo '# who may sign'; echo; sed 's/$/ the CI of our group/' key.pub; } >trusted

# ---- plans ----
plan signed
expect 'a plan that is not signed' 1 'signed.bin has no signature signed.bin.sig: No such file' \
  $run signed.bin --trust trusted
grep -q 'nxcfg sign signed.bin --key KEY signs it' out
report 'is refused with what to do' $?
chmod 644 key
expect 'a key that others may read' 2 'chmod 600 key' "$nxcfg" sign signed.bin --key key
chmod 600 key
passes 'a plan is signed' "$nxcfg" sign signed.bin --key key
passes 'and looked at' "$nxcfg" sign signed.bin --trust trusted
expect 'and runs' 0 '^step 2/2' $run signed.bin --trust trusted
plan changed schedule.max_steps=3
cp signed.bin.sig changed.bin.sig
expect 'a plan that was changed' 1 'changed.bin.sig does not fit it: one of the two was changed (--trust)' \
  $run changed.bin --trust trusted --dir changed
expect 'looked at' 1 'does not fit it' "$nxcfg" sign changed.bin --trust trusted
"$nxcfg" sign changed.bin --key other
expect 'a plan that another has signed' 1 'is of a key that is not trusted' $run changed.bin --trust trusted --dir changed
echo 'nx-ed25519-signature plan 12' >changed.bin.sig
expect 'half a signature' 1 'changed.bin.sig is no signature' $run changed.bin --trust trusted --dir changed
tr -d '\n' <signed.bin.sig | sed 's/ plan / folder /' >changed.bin.sig
expect 'a signature of a folder' 1 'is a signature of something else' $run changed.bin --trust trusted --dir changed
cp key.pub wrong
echo 'nx-ed25519 12ab' >>wrong
expect 'keys that are none' 1 'line 2 of wrong is no public key' $run signed.bin --trust wrong
expect 'no keys' 1 'cannot read the trusted keys gone: No such file' $run signed.bin --trust gone
expect 'what is no plan' 2 'base.yaml is no plan' "$nxcfg" sign base.yaml --key key
expect 'a key that is none' 2 'key.pub is no secret key' "$nxcfg" sign signed.bin --key key.pub
printf '#!/bin/sh\n[ "$PMI_RANK" = 1 ] && cd other_host\nexec "$@"\n' >elsewhere
chmod +x elsewhere
mkdir other_host
cp signed.bin trusted other_host
expect 'a signature that one rank lacks' 1 'signed.bin has no signature' "$mpiexec" -n 2 ./elsewhere "$nxrun" signed.bin \
  --trust trusted --dir "$here/runs/two"
[ ! -e changed ] && [ ! -e runs/two ]
report 'none of these made a folder' $?

# ---- checkpoints and weights ----
step=runs/one/checkpoints/step-000002
plan longer schedule.max_steps=3
"$nxcfg" sign longer.bin --key key
again="$run longer.bin --resume --trust trusted --trust-weights"
expect 'a checkpoint that is not signed' 1 "$step is not signed: it has no SHA256SUMS (--trust-weights)" $again
expect 'may be taken without --trust-weights' 0 '^  resident' $run longer.bin --trust trusted --dry-run
passes 'it is signed' "$nxcfg" sign $step --key key
(cd $step && sha256sum --status -c SHA256SUMS)
report 'in a list that sha256sum reads' $?
touch $step/more.safetensors
expect 'with a file more' 1 'has more.safetensors, which was not signed' "$nxcfg" sign $step --trust trusted
rm $step/more.safetensors
cp $step/moment1.safetensors whole
printf x | dd of=$step/moment1.safetensors bs=1 seek=2000 conv=notrunc 2>/dev/null
expect 'with other bytes' 1 'moment1.safetensors is not the file that was signed' "$nxcfg" sign $step --trust trusted
cp whole $step/moment1.safetensors
sed -i 's/^./0/' $step/SHA256SUMS
expect 'with another list' 1 'SHA256SUMS.sig does not fit it' $again
"$nxcfg" sign $step --key key
expect 'as it was signed, it is gone on from' 0 '^step 3/3' $again
grep -q "resumes from $here/$step" out && [ ! -e $step/../step-000002.damaged ]
report 'and stays' $?
plan begins run.init_from="$here/$step" run.directory="$here/runs/three"
"$nxcfg" sign begins.bin --key key
expect 'signed weights begin a run' 0 '^step 2/2' $run begins.bin --trust trusted --trust-weights
echo '{}' >$step/model.safetensors.index.json
expect 'weights with a file more do not' 1 'has model.safetensors.index.json, which was not signed' \
  $run begins.bin --trust trusted --trust-weights --dir runs/four
rm $step/model.safetensors.index.json
expect '--trust-weights alone' 2 'trust-weights belongs to --trust' $run begins.bin --trust-weights

# ---- folders ---- (two ranks meet once; one is enough for the rest)
fence="--allow data --allow runs"
rm -rf runs
mkdir runs
plan fits run.tokenizer=bytes
expect 'a plan within the folders that are allowed' 0 '^step 2/2' $run fits.bin $fence
plan hostile run.directory="$here/outside/run"
expect 'a plan that leads out of them, on two ranks' 1 'run.directory: .* is outside of the folders' $run hostile.bin $fence
refused() { # NAME PATTERN PLAN [OPTION]...
  name=$1 pattern=$2
  shift 2
  find outside data -newer mark >before
  expect "$name" 1 "$pattern" "$nxrun" "$@" $fence
  [ ! -s before ] && [ -z "$(find outside data -newer mark)" ]
  report "$name: nothing was written there" $?
}
touch mark
for case in run.directory="$here/outside/run" run.directory="$here/runs/../outside/run" run.tensorboard="$here/outside/events" \
  run.wandb="$here/outside" \
  run.init_from=/etc checkpoint.load="$here/outside" run.tokenizer=/etc/passwd 'data.path=[/etc/passwd]' \
  run.directory="$here/runsaway"; do
  what=${case%%=*}
  plan hostile mesh.world=1 "$case"
  refused "$case" "^nxrun: $what: .* is outside of the folders that --allow names ($here/data, $here/runs)" hostile.bin
done
ln -s "$here/outside" runs/link
plan hostile mesh.world=1 run.directory="$here/runs/link/run"
refused 'a link out of them' "run.directory: .*, which is $here/outside/run is outside" hostile.bin
ln -s "$here/outside/later" runs/dangling
plan hostile mesh.world=1 run.directory="$here/runs/dangling"
refused 'a link to what is not there yet' 'run.directory: .*dangling is outside' hostile.bin
rm runs/link runs/dangling
mkdir -p runs/planted/checkpoints
ln -s "$here/outside/metrics" runs/planted/metrics.jsonl
plan hostile mesh.world=1 run.directory="$here/runs/planted"
refused 'a link in the run'"'"'s folder' 'metrics.jsonl is outside' hostile.bin
rm runs/planted/metrics.jsonl
rmdir runs/planted/checkpoints
ln -s "$here/outside" runs/planted/checkpoints
refused 'its checkpoints elsewhere' "checkpoints, which is $here/outside is outside" hostile.bin
mv data/set.bin outside/set.bin
ln -s "$here/outside/set.bin" data/set.bin
touch mark
plan hostile mesh.world=1
refused 'data that a link leads to' "a file that the plan leads to: .*set.bin, which is $here/outside/set.bin is outside" \
  hostile.bin --dir runs/five
rm data/set.bin
mv outside/set.bin data/set.bin
touch mark
expect 'what the command line names is allowed' 0 '^step 2/2' $run fits.bin $fence --dir elsewhere_too --metrics numbers.jsonl
expect 'a folder that is not there' 1 'allow gone: No such file' $run fits.bin --allow gone
expect 'all of them' 0 '^step 2/2' $run fits.bin --allow / --dir six
finish
