# Two hosts, which are the network namespaces $one and $two, with the addresses $net.1 and $net.2, and jobs over them;
# to be sourced in the folder of a test or bench ($folder), which $mpiexec and $nxrun are known to.
# SPDX-License-Identifier: Apache-2.0

# What mpiexec calls in place of ssh: enter [option]... HOST COMMAND...
cat >enter <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in *.1) host=$one ;; *) host=$two ;; esac
shift
exec ip netns exec \$host sh -c "\$*"
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

end_hosts() {
  for host in $one $two; do ip netns pids $host | xargs -r kill -9; ip netns del $host; done 2>/dev/null
  rm -rf "$folder"
}

# The two without a cable, for as long as the script runs; false: not here.
make_hosts() {
  trap end_hosts EXIT
  command -v ip >/dev/null && ip netns add $one && ip netns add $two
}

# One between them.
connect_hosts() {
  ip link add nx$$a netns $one type veth peer name nx$$b netns $two &&
    ip -n $one addr add $net.1/24 dev nx$$a && ip -n $two addr add $net.2/24 dev nx$$b &&
    for host in $one $two; do ip -n $host link set lo up || return 1; done &&
    ip -n $one link set nx$$a up && ip -n $two link set nx$$b up || return 1
  for _ in $(seq 50); do
    ip -n $one link show nx$$a | grep -q 'state UP' && ip -n $two link show nx$$b | grep -q 'state UP' && break
    sleep 0.1
  done
}

no_hosts='no network namespaces can be made here: it takes iproute2 and root'

# Both, or a test skips and ends.
make_hosts_or_skip() { # NAME OF WHAT IS SKIPPED
  { make_hosts && connect_hosts; } >out 2>&1 && return
  skip "$1" "$no_hosts"
  finish
}
