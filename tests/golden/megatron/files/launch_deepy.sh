#!/bin/bash
# GPT-NeoX's launcher starts the program behind it, which reads files.
python ./deepy.py ./train.py -d configs 125M.yml local_setup.yml
