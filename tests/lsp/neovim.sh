#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The language server in Neovim without a screen, as a user has it; skipped where Neovim is not. TAP.
# Usage: neovim.sh NXCFG FOLDER
. "$(dirname "$0")/../tap.sh"
command -v nvim >/dev/null || skip_all 'nvim is not here'
NXCFG=$(realpath "$1")
script=$(realpath "$2")/neovim.lua
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
CONFIGURATION=$folder/broken.yaml HOME=$folder
export NXCFG CONFIGURATION HOME
cat >"$CONFIGURATION" <<END
schedule:
  max_stepz: 100
run:
  log_every: 10
mesh: {world: 1}
batch: {micro: 1, global: 2}
model: {layers: 2, hidden: 64, ffn_hidden: 128, heads: 4, sequence: 32, vocab: 250}
optimizer: {name: adamw, lr: 1e-3}
data: {path: [tokens]}
END
printf 'files:\n  - {match: broken.yaml, dialect: nx}\n' >.nxcfg.yaml
timeout 60 nvim --headless --clean -n -S "$script" 2>log || {
  echo 'Bail out! Neovim did not end well'
  sed 's/^/# /' log
  exit 1
}
