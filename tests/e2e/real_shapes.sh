#!/bin/sh
# What real configurations train, made small: each distinct shape (kind of model, of parallelism, of numbers) of the files
# of conf/, of golden tests and of those below NX_SHARED/corpora that nxrun accepts trains 20 steps on 2 to 8 ranks, in the layout that
# it asks for, with degrees of 2 at most. So does whatever lies below further folders. TAP.
# usage: real_shapes.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT [FOLDER...]
# SPDX-License-Identifier: Apache-2.0
set -u
. "$(dirname "$0")/../tap.sh"
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source_root=$(realpath "$5")
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source_root" || exit 99 # configurations name the folders of their models from there
: >"$work/shapes"

# value FILE SECTION KEY: of a converted file, or nothing
value() {
  awk -v section="$2:" -v key="  $3:" '/^[a-z]/ {inside = $1 == section} inside && index($0, key) == 1 {print $2}' "$1"
}

# two FILE KEY: a degree of the mesh, 2 at most
two() {
  degree=$(value "$1" mesh "$2")
  case $degree in '' | 1 | null) echo 1 ;; *) echo 2 ;; esac
}

# there FILE SECTION KEY: whether it is, and is not 0 or nothing
there() {
  case $(value "$@") in '' | 0 | null | false) echo no ;; *) echo yes ;; esac
}

# What tells trainings apart.
shape_of() {
  for of in 'model activation' 'model normalization' 'model position_embedding' 'model block' 'model bias' \
    'model tied_embeddings' 'model qk_norm' 'model rope_scaling' 'moe top_k' 'moe routing' 'moe dropless' 'lora rank' 'lora base_type' \
    'optimizer name' 'optimizer zero_stage' 'precision param' 'precision compute' 'precision products' 'sequence_parallel:' \
    'recompute granularity' 'schedule name' 'attention ring' 'attention ulysses' 'attention sliding_windows' 'alignment strategy' \
    'precision stochastic_rounding' 'moe router_activation' 'moe router_bias' 'moe load_bias' 'optimizer eight_bits'; do
    # shellcheck disable=SC2086
    printf '%s ' "$(value "$1" ${of% *} ${of#* })"
  done
  for of in 'model sliding_window' 'model attention_sinks' 'model attention_soft_cap' 'model latent_rank' 'model predict_depth' \
    'model hidden_dropout' 'moe shared_ffn_hidden' 'moe groups' 'moe capacity_factor' 'precision loss_scale'; do
    # shellcheck disable=SC2086
    there "$1" ${of% *} ${of#* }
  done | tr '\n' ' '
  copies=$(value "$1" mesh kv_replicator)
  [ "${copies:-1}" = 1 ] || printf 'copied '
  [ "$(value "$1" model kv_heads)" = "$(value "$1" model heads)" ] && printf 'alike '
  for degree in tensor pipeline context expert virtual_pipeline; do two "$1" "$degree"; done | tr '\n' ' '
}

# shrink FILE WORLD DATA: the options that make it small
shrink() {
  heads=4 kv_heads=4 layers=4
  [ "$(value "$1" model kv_heads)" = "$(value "$1" model heads)" ] || kv_heads=2
  [ "$(there "$1" model latent_rank)" = no ] || kv_heads=$heads
  [ "$(two "$1" virtual_pipeline)" = 1 ] || layers=8
  copies=$(value "$1" mesh kv_replicator) window=null
  [ "${copies:-1}" = 1 ] || [ "$(two "$1" tensor)" = 1 ] || { kv_heads=1 && set -- "$@" mesh.kv_replicator=2; }
  [ "$(there "$1" model sliding_window)" = no ] || window=16
  micro=1 vocab=424
  case $(value "$1" alignment strategy) in
  '' | null) vocab=250 && set -- "$@" data.synthetic=true ;;
  sft) set -- "$@" data.kind=completions ;;
  kto) micro=2 && set -- "$@" data.kind=completions ;;
  *) set -- "$@" data.kind=pairs ;;
  esac
  [ $vocab = 250 ] || set -- "$@" "data.prepared=$work/prepared" "data.path=[$work/answers.jsonl]" "data.tokenizer=$work/tokenizer" 'data.document_tokens=[32]'
  set -- "$@" mesh.world="$2" mesh.tensor="$(two "$1" tensor)" mesh.pipeline="$(two "$1" pipeline)" \
    mesh.virtual_pipeline="$(two "$1" virtual_pipeline)" mesh.context="$(two "$1" context)" mesh.expert="$(two "$1" expert)" \
    batch.micro=$micro batch.global=8 \
    model.layers=$layers model.hidden=64 model.heads=$heads model.kv_heads=$kv_heads model.head_dim=16 model.ffn_hidden=128 \
    model.sequence=64 model.max_positions=64 model.vocab=$vocab model.vocab_divisor=16 model.sliding_window=$window \
    optimizer.lr=1e-3 schedule.max_steps=20 schedule.warmup_steps=2 schedule.constant_steps=0 run.directory="$work/run"
  [ -z "$(value "$1" moe experts)" ] || set -- "$@" moe.experts=4 moe.ffn_hidden=32
  [ "$(value "$1" moe top_k)" -le 2 ] 2>/dev/null || [ "$(there "$1" moe top_k)" = no ] || set -- "$@" moe.top_k=2
  [ "$(there "$1" moe pattern)" = no ] || set -- "$@" "moe.pattern=\"[0]+[1]*$((layers - 1))\""
  [ "$(there "$1" moe groups)" = no ] || set -- "$@" moe.groups=2 moe.top_groups=1
  [ "$(there "$1" model latent_rank)" = no ] || set -- "$@" model.latent_rank=32 model.latent_rope_dim=8
  [ "$(there "$1" model latent_query_rank)" = no ] || set -- "$@" model.latent_query_rank=32
  [ "$(value "$1" attention ring)$(value "$1" attention ulysses)" != truetrue ] || set -- "$@" mesh.ulysses=2
  shift 2
  printf ' --set nx:%s' "$@"
}

train() { # FILE NAME OPTION...
  file=$1 name=$2
  shift 2
  rm -f "$work/whole.yaml" # of another file
  "$nxcfg" convert "$file" --to nx -o "$work/whole.yaml" --world-size 8 "$@" >"$work/log" 2>&1
  [ -s "$work/whole.yaml" ] || return
  shape=$(shape_of "$work/whole.yaml")
  grep -qxF "$shape" "$work/shapes" && return
  echo "$shape" >>"$work/shapes"
  # of these the small one has its own
  awk '/^[a-z]/ {keep = $1 !~ /^(mesh|batch|pipeline|data|evaluate|checkpoint|run):/} keep && !/^  vocab_padded:/' "$work/whole.yaml" >"$work/small.yaml"
  world=$(($(two "$work/whole.yaml" tensor) * $(two "$work/whole.yaml" pipeline) * $(two "$work/whole.yaml" context) * 2))
  [ "$world" -gt 8 ] && world=8
  # shellcheck disable=SC2046
  "$nxcfg" plan "$work/small.yaml" --dialect nx -o "$work/plan.bin" $(shrink "$work/whole.yaml" "$world") >"$work/log" 2>&1
  if [ $? -ne 0 ]; then
    result "$name compiles" 1 "$(cat "$work/log")"
    return
  fi
  rm -rf "$work/run"
  if grep -q '^alignment:' "$work/small.yaml" && ! "$nxdata" prepare "$work/plan.bin" >"$work/log" 2>&1; then
    result "$name is prepared" 1 "$(cat "$work/log")"
    return
  fi
  timeout 120 "$mpiexec" -n "$world" "$nxrun" "$work/plan.bin" </dev/null >"$work/log" 2>&1
  result "$name trains on $world ranks" $? "$(tail -5 "$work/log")"
}

mkdir "$work/tokenizer"
cp tests/parity/recorded/tokenizers/llama3/tokenizer.json tests/parity/recorded/answers/tokenizer_config.json "$work/tokenizer"
awk 'BEGIN { for (i = 0; i < 40; i++)
  printf "{\"prompt\": \"the question %d is \", \"chosen\": \"%d and so on\", \"rejected\": \"not %d\", \"completion\": \"%d, maybe\", \"label\": %s}\n",
    i, i, 7 * i, 3 * i, i % 3 ? "true" : "false" }' >"$work/answers.jsonl"

for file in "$source_root"/conf/*/*.yaml "$source_root"/conf/*/*.yml "$source_root"/conf/*/*.sh \
  "$source_root"/tests/golden/megatron/files/*.sh "$source_root"/tests/golden/xorl/files/*.yaml "${NX_SHARED:-/nowhere}"/corpora/*/*.yaml \
  "${NX_SHARED:-/nowhere}"/corpora/neox/*/*.yml "${NX_SHARED:-/nowhere}"/corpora/neox/*/*/*.yml \
  $(for folder in "$@"; do find "$folder" -name '*.sh' -o -name '*.y*ml'; done); do
  [ -f "$file" ] || continue
  name=${file#"$source_root"/}
  "$nxcfg" validate "$file" --for nxrun --world-size 8 >"$work/log" 2>&1 || "$nxcfg" validate "$file" --for nxrun >"$work/log" 2>&1 || continue
  train "$file" "${name#"${NX_SHARED:-}"/}"
done

# Shapes that files of now and then have, laid over one that is there anyway.
while read -r file settings; do
  # shellcheck disable=SC2046,SC2086
  train "$file" "$file with $settings" $(printf ' --set nx:%s' $settings)
  [ -s "$work/whole.yaml" ] || result "$file with $settings is converted" 1 "$(cat "$work/log")"
done <<'END'
conf/nxdt/llama-7b.yaml optimizer.name=soap
conf/nxdt/llama-7b.yaml optimizer.eight_bits=true
conf/nxdt/llama-7b.yaml mesh.kv_replicator=2 model.kv_heads=4
conf/nxdt/llama-7b.yaml model.sliding_window=64 model.attention_sinks=true
conf/nxdt/llama-7b.yaml precision.products=fp8
conf/neox/fp16.yml optimizer.name=onebitadam optimizer.freeze_step=10 optimizer.zero_stage=0
conf/neox/fp16.yml precision.loss_scale=1024
conf/xorl/experts.yaml moe.routing=quantiles
END
finish
