# Two hosts, which are the network namespaces $one and $two, with the addresses $net.1 and $net.2, and jobs over them;
# to be sourced in the folder of a test or bench ($folder), which $mpiexec and $nxrun are known to. With own_cores=1 each
# has its half of the cores, as of two machines; else both have all, and ranks of both take the first for their own.
# SPDX-License-Identifier: Apache-2.0

half=$(($(nproc) / 2 - 1)) # the last core of the first
[ $half -ge 0 ] || own_cores= half=0
# What mpiexec calls in place of ssh: enter [option]... HOST COMMAND...
cat >enter <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in *.1) host=$one cores=0-$half ;; *) host=$two cores=$((half + 1))-$((2 * half + 1)) ;; esac
shift
exec ip netns exec \$host ${own_cores:+taskset -c \$cores} sh -c "\$*"
END
chmod +x enter

# So many ranks of a program on each. Between hosts TCP alone: without that UCX finds the memory that these two share.
start_on_hosts() { # SECONDS RANKS PROGRAM [ARGUMENT]...
  limit=$1 each=$2
  shift 2
  timeout -s KILL "$limit" ip netns exec $one "$mpiexec" -launcher ssh -launcher-exec "$folder/enter" \
    -genv UCX_TLS tcp,self -hosts $net.1:$each,$net.2:$each -n $((2 * each)) "$@"
}

# Four ranks of nxrun.
on_two_hosts() { # SECONDS ARGUMENT OF NXRUN...
  seconds=$1
  shift
  start_on_hosts "$seconds" 2 "$nxrun" "$@" >out 2>&1
}

cable=
end_hosts() {
  [ -n "$cable" ] && kill "$cable"
  for host in $one $two; do ip netns pids $host | xargs -r kill -9; ip netns del $host; done 2>/dev/null
  rm -rf "$folder"
}

# The two without a cable, for as long as the script runs; false: not here.
make_hosts() {
  trap end_hosts EXIT
  command -v ip >/dev/null && ip netns add $one && ip netns add $two
}

await_fast_cable() {
  for _ in $(seq 50); do
    ip -n $one link show nx$$a | grep -q 'state UP' && ip -n $two link show nx$$b | grep -q 'state UP' && break
    sleep 0.1
  done
}
# One between them.
connect_hosts() {
  ip link add nx$$a netns $one type veth peer name nx$$b netns $two &&
    ip -n $one addr add $net.1/24 dev nx$$a && ip -n $two addr add $net.2/24 dev nx$$b &&
    for host in $one $two; do ip -n $host link set lo up || return 1; done &&
    ip -n $one link set nx$$a up && ip -n $two link set nx$$b up || return 1
  await_fast_cable
}

# The fast one, where there is one, goes up or down.
turn_fast_cable() { # up|down
  ip -n $one link set nx$$a "$1" && ip -n $two link set nx$$b "$1"
}
# Another, with a delay, losses and a rate, in place of the one before; $link is link.c.
shape_cable() { # DELAY_MS LOST_OF_1000 [MBIT_PER_S]
  remove_cable
  turn_fast_cable down # else UCX would use both
  "$link" $one $two "$@" >ready 2>out &
  cable=$!
  until [ -s ready ]; do
    kill -0 $cable 2>/dev/null || return 1
    sleep 0.05
  done
  ip -n $one addr add $net.1 peer $net.2 dev cable && ip -n $two addr add $net.2 peer $net.1 dev cable &&
    for host in $one $two; do ip -n $host link set lo up && ip -n $host link set cable up mtu 9000 txqueuelen 10000 || return 1; done
} 2>/dev/null
remove_cable() {
  [ -n "$cable" ] && kill "$cable" && wait "$cable"
  rm -f ready
  cable=
  turn_fast_cable up && await_fast_cable
  true
} 2>/dev/null

no_hosts='no network namespaces can be made here: it takes iproute2 and root'

# Both, or a test skips and ends.
make_hosts_or_skip() { # NAME OF WHAT IS SKIPPED
  { make_hosts && connect_hosts; } >out 2>&1 && return
  skip "$1" "$no_hosts"
  finish
}
