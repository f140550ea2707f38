#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages of `nxcfg plan --html` in headless Chromium, as TAP: 1280 and 400 pixels wide, light and dark, no text
# overlaps another or is cut, nothing scrolls sideways (probe.html), nothing is loaded. With SCREENSHOTS=1 pictures go
# to FOLDER. Skips without Chromium.
# Usage: pages.sh NXCFG SOURCE_ROOT FOLDER
. "$(dirname "$0")/../tap.sh"
nxcfg=$(realpath "$1") here=$(realpath "$(dirname "$0")")
cd "$2" || exit 1
out=$3
for browser in chromium chromium-browser google-chrome; do command -v "$browser" >/dev/null && break; browser=; done
[ -n "$browser" ] || skip_all 'Chromium is not installed (Debian: apt-get install chromium)'
mkdir -p "$out" && out=$(realpath "$out")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# Chromium's own window has at least 500 pixels, so each width is that of a frame; the title collects what they find.
frames() { # PAGE
  echo "<!DOCTYPE html><style>iframe{border:0;height:2600px;vertical-align:top}</style>"
  for width in 1280 400; do echo "<iframe src='$1' width='$width'></iframe>"; done
  echo '<script>onload = () => {
    const found = [...document.querySelectorAll("iframe")].map(f => f.contentDocument.title);
    document.body.dataset.found = found.join(" | ");
  }</script>'
}

browse() { # SCHEME ARGUMENT...: 0 is dark, 1 light
  scheme=$1
  shift
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
    --user-data-dir="$work/profile" --blink-settings=preferredColorScheme="$scheme" --window-size=1760,2600 "$@" 2>/dev/null
}

screenshot() { # NAME SCHEME FILE: to look at, with SCREENSHOTS=1
  [ -z "${SCREENSHOTS:-}" ] || browse "$2" --screenshot="$out/$1.png" "file://$3" >"$work/log"
}

page() { # NAME ARGUMENT of nxcfg plan...
  name=$1
  shift
  "$nxcfg" plan "$@" --html "$work/$name.html" >/dev/null
  [ -s "$work/$name.html" ]
  result "$name: a page is written" $?
  ! grep -qE '(src|href)=|url\(|@import|https?://[^w]|fetch\(|XMLHttp' "$work/$name.html"
  result "$name: it loads nothing" $?
  cat "$work/$name.html" "$here/probe.html" >"$work/probe.html"
  browse 1 --dump-dom "file://$work/$name.html" | grep -o 'class="number">[0-9.]* GiB' >"$work/sizes"
  ! grep -v '[0-9]\.[0-9]\{3\} GiB' "$work/sizes"
  result "$name: the sizes of a column have decimals alike" $?
  frames probe.html >"$work/frames.html"
  frames "$name.html" >"$work/plain.html"
  for scheme in 0 1; do
    look=$([ $scheme = 0 ] && echo dark || echo light)
    found=$(browse $scheme --dump-dom "file://$work/frames.html" | grep -o 'data-found="[^"]*"')
    for width in 1280 400; do
      echo "$found" | grep -q "width $width $look texts [1-9][0-9]* wrong 0:"
      result "$name: $width pixels, $look: no text overlaps or is cut" $?
    done
    echo "$found" | sed 's/^/# /'
    screenshot "$name-$look" $scheme "$work/plain.html"
  done
}

# That the probe finds what is wrong: two words on one place, and one beside the window.
echo '<!DOCTYPE html><body><p style="position:absolute;top:90px">one</p><p style="position:absolute;top:90px">two</p>
<p style="position:absolute;left:99%;white-space:nowrap">a text that leaves the window</p>' |
  cat - "$here/probe.html" >"$work/wrong.html"
browse 1 --dump-dom "file://$work/wrong.html" | grep -q '<title>PROBE .* wrong [1-9].*cut: a text.*overlap: '
result 'the probe finds texts that overlap and texts that are cut' $?

echo '<!DOCTYPE html><body><div style="overflow-x:auto;width:99px"><p style="width:999px">far</p></div>' |
  cat - "$here/probe.html" >"$work/wrong.html"
browse 1 --dump-dom "file://$work/wrong.html" | grep -q '<title>PROBE .* wrong 1: scrolls sideways: far<'
result 'the probe finds what scrolls sideways' $?

"$nxcfg" plan conf/nxdt/pipeline.yaml -o "$work/plan" >/dev/null && "$nxcfg" show "$work/plan" --svg "$work/plan.svg"
{ echo '<!DOCTYPE html><body><div class=scroll style="overflow:auto">'; cat "$work/plan.svg" "$here/probe.html"; } >"$work/svg.html"
browse 1 --dump-dom "file://$work/svg.html" | grep -o '<title>PROBE [^<]*' >"$work/log"
grep -q 'texts [1-9][0-9]* wrong 0:' "$work/log"
result 'show --svg: no text overlaps or is cut' $?
sed 's/^/# /' "$work/log"
screenshot schedule 1 "$work/svg.html"

"$nxcfg" plan conf/megatron/llama-405b.sh --lr --svg "$work/rate.svg" >/dev/null
grep -q '>4e-05<' "$work/rate.svg" && grep -q '>600000<' "$work/rate.svg"
result 'plan --lr --svg: both axes have ticks' $?
{ echo '<!DOCTYPE html><body><div class=scroll style="overflow:auto">'; cat "$work/rate.svg" "$here/probe.html"; } >"$work/rate.html"
browse 1 --dump-dom "file://$work/rate.html" | grep -o '<title>PROBE [^<]*' >"$work/log"
grep -q 'texts [1-9][0-9]* wrong 0:' "$work/log"
result 'plan --lr --svg: no text overlaps or is cut' $?
sed 's/^/# /' "$work/log"
screenshot rate 1 "$work/rate.html"

page 405b conf/megatron/llama-405b.sh --machine machines/h100.yaml
page interleaved conf/nxdt/pipeline.yaml
page several tests/golden/megatron/files/launch_job.sh --machine machines/h100.yaml
sed 's|</body>|<script>document.title = [...document.querySelectorAll("#programs a")].map(a => a.className + a.textContent) + " " + document.querySelector("#summary").textContent.match(/[0-9]+ ranks/)</script>|' \
  "$work/several.html" >"$work/programs.html"
for shown in '#0 selfprogram 1,program 2,program 3 16 ranks' '#2 program 1,program 2,selfprogram 3 32 ranks'; do
  browse 1 --dump-dom "file://$work/programs.html${shown%% *}" | grep -q "<title>${shown#* }<"
  result "a script that starts several programs: ${shown#* }" $?
done
page unknown tests/golden/estimate/unknown.yaml --memory 1GB
finish
