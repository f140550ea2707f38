#!/bin/sh
# A run on two hosts (network namespaces) is killed at random moments, also while checkpoints are written: a rank, the
# launcher, or a whole host. Each time it goes on from its last checkpoint; nothing is left behind, and in the end it
# has computed what a run without kills has. TAP.
# usage: kills.sh NXRUN NXCFG NXDATA MPIEXEC [KILLS [SEED]]
# SPDX-License-Identifier: Apache-2.0
set -u
# Memory that other programs share is not seen here.
if [ -z "${own_memory:-}" ] && unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
  own_memory=1 exec unshare -m sh "$0" "$@"
fi
[ -z "${own_memory:-}" ] || mount -t tmpfs tmpfs /dev/shm
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 kills=${5:-20} seed=${6:-$$}
tests=$(realpath "$(dirname "$0")")
. "$tests/lib.sh"

one=nxkill-$$-1 two=nxkill-$$-2 # namespaces
net=10.215.$(($$ % 250 + 1))
. "$tests/hosts.sh"
make_hosts_or_skip 'random kills'

small_training 'mesh: {world: 2, nodes: 2}' 'batch: {micro: 2, global: 8}' \
  'optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}' 'checkpoint: {every_steps: 2, keep: 3}'
steps=1000000 # of the plan: more than are trained while kills go on
"$nxcfg" plan base.yaml --set schedule.max_steps=$steps --set run.deadline_s=5 -o killed.bin >out 2>&1 || { cat out; exit 99; }
train() { # RUN [ARGUMENT]...: in the background; its hosts' processes are all of it
  to=$1
  shift
  : >"out.$to" # here, not when the shell that runs below gets so far: the run before it has written there
  ip netns exec $one "$mpiexec" -launcher ssh -launcher-exec "$folder/enter" -genv UCX_TLS tcp,self \
    -hosts $net.1:1,$net.2:1 -n 2 "$nxrun" killed.bin --dir "$to" "$@" >out.$to 2>&1 &
  job=$!
}
ranks() { # HOST...: the ids of nxrun's processes
  for host; do ip netns pids $host; done | xargs -r ps -o pid=,comm= -p | awk '$2 == "nxrun" { print $1 }'
}
segments() {
  find /dev/shm -mindepth 1
}
newest() {
  find killed/checkpoints -maxdepth 1 -name 'step-*[0-9]' 2>/dev/null | sed 's/.*step-0*//' | sort -n | tail -n 1
}
random() { # LIMIT: below it
  echo $((0x$(printf '%s %s' "$seed" "$((draws += 1))" | sha256sum | cut -c1-7) % $1))
}
draws=0

behind=0 lost=0 last=0 killed=0 writing=0 done=0
echo "# seed $seed"
while [ $done -lt "$kills" ]; do
  draws=$((done * 10))
  done=$((done + 1))
  train killed --resume
  for _ in $(seq 300); do # until it trains on
    grep -q '^step [0-9]' out.killed && break
    kill -0 $job 2>/dev/null || break
    sleep 0.05
  done
  from=$(sed -n 's/.*resumes from .*step-0*\([0-9]*\)$/\1/p' out.killed)
  grep -q '^step [0-9]' out.killed || from=${from:-$last} # it has not begun to train: nothing is known yet
  [ "${from:-0}" -eq "$last" ] || { lost=$((lost + 1)); echo "# kill $done: went on from ${from:-0}, not $last"; }
  what=$(random 4) draws=$((draws + 1)) moment=$(random 40) draws=$((draws + 1)) way=$(random 2)
  if [ "$way" -eq 1 ]; then # while a checkpoint is written
    for _ in $(seq 200); do
      [ -n "$(find killed/checkpoints -name '*.tmp*' 2>/dev/null)" ] && writing=$((writing + 1)) && break
      kill -0 $job 2>/dev/null || break
    done
  else sleep "0.$(printf %02d "$moment")"; fi
  case $what in
    0) ranks $one | xargs -r kill -9 ;;
    1) ranks $two | xargs -r kill -9 ;;
    2) ip netns pids $one | xargs -r ps -o pid=,comm= -p | awk '$2 ~ /^mpiexec/ { print $1 }' | xargs -r kill -9 ;;
    3) ip netns pids $two | xargs -r kill -9 ;;
  esac 2>/dev/null
  wait $job 2>/dev/null
  killed=$((killed + 1))
  for _ in $(seq 300); do # 30 s: six deadlines
    [ -z "$(ranks $one $two)" ] && break
    sleep 0.1
  done
  if [ -n "$(ranks $one $two)" ]; then
    behind=$((behind + 1))
    echo "# kill $done ($what): nxrun is still there"
    ranks $one $two | xargs -r kill -9
  fi
  last=$(newest) last=${last:-0}
done
echo "# $killed kills, $writing of them while a checkpoint was written, the last behind step $last"
[ $killed -eq "$kills" ] && [ $behind -eq 0 ]
report "$killed kills: no process stays" $?
[ $lost -eq 0 ]
report 'nothing behind the last checkpoint is lost' $?
end=$((last + 10))
train killed --resume --stop-after $end
wait $job
cp out.killed out
grep -q "^step $end/$steps" out
report 'the run comes to its end' $?
train plain --stop-after $end
wait $job
cp out.plain out
grep -q "^step $end/$steps" out
report 'and so does a run without kills' $?
[ -z "$(find killed -name '*.tmp*' -o -name '*.damaged*' | tee out)" ]
report 'no temporary file stays' $?
[ -z "$(segments | tee out)" ]
report 'no segment of shared memory stays' $?
for file in model moment1 moment2; do
  at=checkpoints/step-$(printf %06d $end)/$file.safetensors
  cmp plain/$at killed/$at || echo differs
done >out 2>&1
[ ! -s out ]
report 'every bit is that of a run without kills' $?
finish
