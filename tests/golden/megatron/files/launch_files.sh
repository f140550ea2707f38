#!/bin/bash
# Nothing is started: the words that end in .py are files that other commands look at.
CHANGED=$(git diff --name-only | grep '\.py$')
for file in $CHANGED; do
  black --check pretrain_gpt.py $file
done
find . -name "*.py" | xargs isort
${PYTHON} --version
