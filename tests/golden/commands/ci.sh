#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The recipes of docs/ci.md and the hook do what they say, in a repository with a change: their own commands are run.
# TAP. Usage: ci.sh NXCFG SOURCE_ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$nxcfg" "$work/bin/nxcfg"
PATH=$work/bin:$PATH
HOME=$work
GIT_CONFIG_NOSYSTEM=1
export PATH HOME GIT_CONFIG_NOSYSTEM
check() { # NAME, after a command: passed where it gave 0
  result "$1" $?
}
command -v git >/dev/null || skip_all "there is no git"

# The yaml block behind `<!-- ci: NAME -->`.
block() {
  awk -v mark="<!-- ci: $1 -->" '$0 == mark { found = 1; next } found && /^```yaml/ { inside = 1; next }
    inside && /^```/ { exit } inside { print }' "$root/docs/ci.md"
}
# A text of a YAML file, by its steps.
value() {
  file=$1
  shift
  for step; do
    set -- "$@" --at "$step"
    shift
  done
  nxcfg resolve "$file" "$@" --format json 2>/dev/null | sed -e 's/^"//' -e 's/"$//' | awk '{
    for (i = 1; i <= length($0); i++) {
      c = substr($0, i, 1)
      if (c == "\\") { c = substr($0, ++i, 1); if (c == "n") c = "\n" }
      printf "%s", c
    }
    print ""
  }'
}
block github >"$work/github.yaml"
block gitlab >"$work/gitlab.yaml"
block pre-commit >"$work/pre-commit.yaml"

# A repository whose base is good; the change breaks one file, alters another, and touches no third.
git_quietly() { git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=main "$@" >/dev/null 2>&1; }
mkdir -p "$work/repo/configs/deep"
cd "$work/repo" || exit 1
plain=$root/tests/golden/ops/llama_tp2.yaml
cp "$plain" configs/one.yaml
cp "$plain" configs/deep/two.yml
echo 'not: [ a configuration' >configs/three.yaml
git_quietly init && git_quietly add . && git_quietly commit -m base
base=$(git rev-parse HEAD)
git_quietly update-ref refs/remotes/origin/main HEAD
sed -i 's/zero_stage: 1/zero_stge: 1/' configs/one.yaml
sed -i 's/lr: 1e-3/lr: 2e-3/' configs/deep/two.yml
cp "$plain" configs/four.yaml
cp "$plain" 'configs/fünf und mehr.yaml'
git_quietly add . && git_quietly commit -m change

# -- GitHub
value "$work/github.yaml" jobs configurations steps 2 run >"$work/validate.sh"
value "$work/github.yaml" jobs configurations steps 3 run >"$work/show.sh"
grep -q 'nxcfg validate' "$work/validate.sh" && grep -q 'nxcfg diff' "$work/show.sh"
check "github: the commands are found"
GITHUB_BASE_REF=main bash -e "$work/validate.sh" >"$work/out" 2>&1
[ $? != 0 ] && grep -q '^::error file=configs/one.yaml,line=7,col=23,title=NX1301::unknown key' "$work/out"
check "github: a broken file that changed is annotated"
! grep -q three "$work/out"
check "github: a file that did not change is not judged"
[ "$(LC_ALL=C sort changed | tr '\n' ' ')" = "configs/deep/two.yml configs/four.yaml configs/fünf und mehr.yaml configs/one.yaml " ]
check "github: what changed, in folders too, whatever it is called"
! grep -q 'cannot read' "$work/out"
check "github: all of it is read"
git_quietly checkout "$base" -- configs/one.yaml && git_quietly commit -m mended
GITHUB_BASE_REF=main bash -e "$work/validate.sh" >"$work/out" 2>&1
check "github: good files pass"
GITHUB_BASE_REF=main GITHUB_STEP_SUMMARY=$work/summary bash -e "$work/show.sh" >"$work/out" 2>&1
check "github: the change is shown"
grep -q 'optimizer.lr  *0.001 -> 0.002' "$work/summary" && grep -q '1 setting differs; restart-safe' "$work/summary"
check "github: by meaning"

# -- GitLab
i=0
while [ $i -lt 4 ]; do
  value "$work/gitlab.yaml" configurations script $i
  echo
  i=$((i + 1))
done >"$work/gitlab.sh"
sed -i 's/zero_stage: 1/zero_stge: 1/' configs/four.yaml
git_quietly commit -am broken
CI_MERGE_REQUEST_DIFF_BASE_SHA=$base bash -e "$work/gitlab.sh" >"$work/out" 2>&1
[ $? != 0 ] && grep -q '"check_name": "NX1301"' codequality.json && grep -q '"path": "configs/four.yaml"' codequality.json
check "gitlab: findings are in the report"
CI_MERGE_REQUEST_DIFF_BASE_SHA=HEAD bash -e "$work/gitlab.sh" >"$work/out" 2>&1 && [ "$(cat codequality.json)" = '[]' ]
check "gitlab: without a change the report is empty"

# -- action.yml; the test of packages runs the step that installs
sed -n 's/^      run: \(\$.*nxcfg validate\)/\1/p' "$root/action.yml" >"$work/action.sh"
mkdir -p "$work/nxcfg/bin" && ln -s "$nxcfg" "$work/nxcfg/bin/nxcfg"
RUNNER_TEMP=$work FILES=configs/four.yaml ARGUMENTS='-W error' bash -e "$work/action.sh" >"$work/out" 2>&1
[ $? = 1 ] && grep -q '^::error file=configs/four.yaml,line=7,col=23,title=NX1301::unknown key' "$work/out"
check "action: a broken file is annotated"
RUNNER_TEMP=$work FILES='configs/one.yaml configs/deep' ARGUMENTS='-W error' bash -e "$work/action.sh" >"$work/out" 2>&1
check "action: good files and folders pass"

# -- pre-commit
hook=$(value "$root/.pre-commit-hooks.yaml" 0 entry)
[ "$(value "$root/.pre-commit-hooks.yaml" 0 id)" = "$(value "$work/pre-commit.yaml" repos 0 hooks 0 id)" ] &&
  [ "$hook" = "nxcfg validate --searched --format short -q" ] && [ -f "$root/pyproject.toml" ]
check "pre-commit: the hook and README agree"
$hook configs/deep/two.yml >"$work/out" 2>&1
check "pre-commit: a good file passes"
$hook configs/four.yaml configs/deep/two.yml >"$work/out" 2>&1
[ $? = 1 ] && grep -q '^configs/four.yaml:7:23: error\[NX1301\]' "$work/out"
check "pre-commit: a broken one does not"
printf 'site_name: pages\n' >pages.yml
printf 'exclude: [configs/four.yaml]\n' >.nxcfg.yaml
$hook pages.yml configs/four.yaml >"$work/out" 2>&1 && $hook pages.yml >>"$work/out" 2>&1 && [ ! -s "$work/out" ]
check "pre-commit: what is no training's, or excluded, is left alone"
rm pages.yml .nxcfg.yaml
pattern=$(value "$work/pre-commit.yaml" repos 0 hooks 0 files)
[ "$(git ls-files | grep -cE "$pattern")" = 5 ]
check "pre-commit: files names the configurations"
for key in id name language types_or; do value "$root/.pre-commit-hooks.yaml" 0 $key; done >"$work/out"
[ "$(grep -c . "$work/out")" -ge 4 ]
check "pre-commit: the hook has what pre-commit demands"

# What pre-commit itself makes of both, where it is installed.
if command -v pre-commit >/dev/null; then
  pre-commit validate-manifest "$root/.pre-commit-hooks.yaml" >"$work/out" 2>&1
  check "pre-commit takes the hook"
  # the hook with the nxcfg that is here, which pre-commit else builds
  printf "repos:\n- repo: local\n  hooks:\n  - {id: nxcfg-validate, name: nxcfg, entry: '%s', language: system,
    files: '%s', require_serial: true}\n" "$hook" "$pattern" >.pre-commit-config.yaml
  git_quietly add .pre-commit-config.yaml
  pre-commit run --all-files >"$work/out" 2>&1
  [ $? = 1 ] && grep -q '^configs/four.yaml:7:23: error\[NX1301\]' "$work/out"
  check "pre-commit stops a broken file"
  rm configs/four.yaml configs/three.yaml && git_quietly add -A && git_quietly commit -m mended
  pre-commit run --all-files >"$work/out" 2>&1
  check "pre-commit lets good ones pass"
fi
finish
