#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of cases.txt and compares what is printed and the exit status with NAME.out, as TAP; UPDATE=1 rewrites. Usage: estimate.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
export LC_ALL=C
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  name=${line%% |*}
  # shellcheck disable=SC2086
  printed=$("$nxcfg" ${line#*| } 2>&1 </dev/null; echo "exit $?")
  golden "$line" "$name.out" <<END
$(printf '%s\n' "$printed" | sed '/^plan_id/d; s/and [0-9]* more (validate/and more (validate/; s/[0-9]* rules skipped/rules skipped/')
END
done <cases.txt

LC_ALL=C awk -f sums.awk ./*.out >sums.txt
[ "$(grep -vc '^[0-9]* tables$' sums.txt)" -eq 0 ] && [ "$(sed -n 's/ tables$//p' sums.txt)" -ge 12 ]
result 'tables add up' $? "$(cat sums.txt)"
rm -f sums.txt

# ---- one screen ----

conf=../../../conf h100=../../../machines/h100.yaml
for locale in C C.UTF-8; do
  LC_ALL=$locale "$nxcfg" plan $conf/megatron/llama-405b.sh --machine $h100 >screen
  sed -i '/^error/,/^$/d' screen # that it does not fit has lines of its own
  lines=$(wc -l <screen)
  [ "$lines" -ge 24 ] && [ "$lines" -le 40 ]
  result "405B in $locale: one screen of $lines lines" $?
  [ "$(tr -d '\200-\277' <screen | awk 'length > 80')" = "" ] # a character begins with one other byte
  result "405B in $locale: no line is longer than 80 columns" $?
done
LC_ALL=C.UTF-8 "$nxcfg" plan $conf/megatron/llama-405b.sh --memory 1TB | grep -q '█'
result 'bars of blocks where the locale has UTF-8' $?
for words in '^memory .* megatron  *nxrun$' '^time of a step of megatron on ' '^  in all .* tokens/s, .*(MFU)$' \
  ': does not fit$' '^plan_id '; do
  grep -q "$words" screen
  result "405B: $words" $?
done
"$nxcfg" validate model.yaml --machine device.yaml >screen
result 'a device that is too small: exit status' $(($? - 1))
for words in 'a rank of nx does not fit' 'of them for allocator, driver and communicators), and little allows' \
  'with mesh.tensor=4, sequence_parallel=true a rank needs'; do
  grep -q "$words" screen
  result "a device that is too small: $words" $?
done
rm -f screen

# ---- the page ----

"$nxcfg" plan model.yaml --set nx:mesh.world=8 --set nx:mesh.pipeline=2 --set nx:batch.micro=1 --set 'nx:run.name=</script>x' \
  --html page.html >/dev/null
[ "$(grep -o '</script>' page.html | wc -l)" = 2 ]
result 'a page: what a setting holds does not end its data' $?
for words in '"name":"one forward, one back (1F1B)"' '"stages":2,"chunks":2,"micro_batches":8,"shown":8' \
  '"stages_of":"nx"' '"name":"pipeline","size":2,"stride":4' '"path":"mesh.tensor"'; do
  grep -qF "$words" page.html
  result "a page: $words" $?
done
# 2 stages x 8 micro-batches, forward and back
[ "$(grep -o '"passes":\[\[.*\]\]' page.html | grep -o '\[[0-9]' | wc -l)" = 32 ]
result 'a page: every pass of the schedule' $?
"$nxcfg" plan model.yaml --set nx:mesh.world=8 --set nx:mesh.pipeline=2 --set nx:batch.micro=1 \
  --set nx:pipeline.schedule=gpipe --html page.html >/dev/null && grep -q '(GPipe)' page.html
result 'a page: GPipe' $?
"$nxcfg" plan model.yaml small.yaml --html page.html >screen 2>&1
[ $? -eq 2 ] && grep -q -- '--html takes one FILE' screen
result 'a page is of one file' $?
rm -f page.html screen
for file in no.plan*; do # what does not fit is not written
  [ ! -e "$file" ]
  result "$file is not written" $?
  rm -f "$file"
done
finish
