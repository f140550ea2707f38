# Jobs over two hosts, the network namespaces $one and $two, with the addresses $net.1 and $net.2; to be sourced
# behind lib.sh.
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

# Four ranks of nxrun. Between hosts TCP alone: without that UCX finds the memory that these two share.
on_two_hosts() { # SECONDS ARGUMENT OF NXRUN...
  limit=$1
  shift
  timeout -s KILL "$limit" ip netns exec $one "$mpiexec" -launcher ssh -launcher-exec "$folder/enter" \
    -genv UCX_TLS tcp,self -hosts $net.1:2,$net.2:2 -n 4 "$nxrun" "$@" >out 2>&1
}

# Makes the two, with a cable between them; false: not here.
make_hosts() {
  ip netns add $one && ip netns add $two &&
    ip link add nx$$a netns $one type veth peer name nx$$b netns $two &&
    ip -n $one addr add $net.1/24 dev nx$$a && ip -n $two addr add $net.2/24 dev nx$$b &&
    for host in $one $two; do ip -n $host link set lo up || return 1; done &&
    ip -n $one link set nx$$a up && ip -n $two link set nx$$b up
  for _ in $(seq 50); do
    ip -n $one link show nx$$a | grep -q 'state UP' && ip -n $two link show nx$$b | grep -q 'state UP' && break
    sleep 0.1
  done
}

# For as long as the test runs; where they cannot be made, it skips and ends.
make_hosts_or_skip() { # NAME OF WHAT IS SKIPPED
  trap 'for host in $one $two; do ip netns pids $host 2>/dev/null | xargs -r kill -9; ip netns del $host; done \
    2>/dev/null; rm -rf "$folder"' EXIT
  command -v ip >/dev/null && make_hosts >out 2>&1 && return
  skip "$1" 'no network namespaces can be made here: it takes iproute2 and root'
  finish
}
