#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tools/package makes, installed as each is meant to be and run where there is nothing else, as TAP: an empty root
# file system, a bare virtual environment. Then what a user feels: the program's size and how soon it starts.
# Usage: packages.sh ROOT
. "$(dirname "$0")/../tap.sh"
root=$(realpath "$1")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
nice "$root/tools/package" "$work/dist" >"$work/log" 2>&1
result 'tools/package' $? "$(cat "$work/log")"
cd "$work" || exit 1

# Runs nxcfg, which stands at usr/bin in this folder, with the folder as its root.
bare() { # FOLDER NAME
  cp "$root/conf/nxdt/quickstart.yaml" "$1/quickstart.yaml"
  if unshare -r true 2>/dev/null; then
    unshare -r chroot "$1" /usr/bin/nxcfg validate quickstart.yaml >printed 2>&1
  else
    env -i "$1/usr/bin/nxcfg" validate "$1/quickstart.yaml" >printed 2>&1
  fi
  [ $? -eq 0 ] && grep -q 'valid nxdt' printed
  result "$2 in an empty root file system" $? "$(cat printed)"
}

mkdir -p tar/usr/bin && tar -C tar/usr/bin --strip-components=1 -xzf dist/nxcfg-*.tar.gz
bare tar 'the tarball'
if command -v dpkg-deb >/dev/null; then
  dpkg-deb -x dist/nxcfg_*.deb deb && bare deb 'the Debian package'
  [ -s deb/usr/share/man/man1/nxcfg.1.gz ] && [ -s deb/usr/share/bash-completion/completions/nxcfg ]
  result 'the Debian package has a manual page and completion' $?
else
  skip 'the Debian package' 'dpkg-deb is not here'
fi
if python3 -m venv --help >/dev/null 2>&1 && python3 -m venv venv >/dev/null 2>&1; then
  venv/bin/pip install --no-index --no-deps --quiet dist/nxcfg-*.whl >printed 2>&1 &&
    venv/bin/nxcfg validate "$root/conf/neox/quickstart.yml" >printed 2>&1
  result 'the wheel in a bare virtual environment' $? "$(cat printed)"
  mkdir -p wheel/usr/bin && cp venv/bin/nxcfg wheel/usr/bin && bare wheel "the wheel's program"
  awk '/^      run: [|]$/ { inside = 1; next } /^    - / { inside = 0 } inside' "$root/action.yml" >install.sh
  RUNNER_TEMP=$work/runner INSTALL="$(echo dist/nxcfg-*.whl)" ACTION=$root bash -e install.sh >printed 2>&1 &&
    runner/nxcfg/bin/nxcfg --version >printed 2>&1
  result 'the step of action.yml that installs' $? "$(cat printed)"
else
  skip 'the wheel' 'python3 -m venv does not work here'
fi

program=deb/usr/bin/nxcfg
[ -e "$program" ] || program=tar/usr/bin/nxcfg
size=$(stat -c %s "$program")
[ "$size" -le $((6 * 1024 * 1024)) ]
result "the static program has at most 6 MiB, the C library in it" $? "$size bytes"
# Microseconds of a start in the best of 20 rounds of 20, since other programs run beside. How long a fork takes is the
# machine's: true tells.
starts_us() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    from=$(date +%s%N)
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "$@" >/dev/null; done
    echo $((($(date +%s%N) - from) / 20000))
  done | sort -n | head -n 1
}
best=$(starts_us "$program" --version) least=$(starts_us /bin/true)
[ "$best" -le $((least + 1000)) ]
result "it starts within 1 ms more than true" $? "$best us, true $least us"
finish
