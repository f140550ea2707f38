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
