#!/bin/bash
# GPT-NeoX's launcher starts the program behind it, with files of a folder.
python ./deepy.py ./train.py -d ../../../conf/neox quickstart
