#!/bin/bash
# The file is on another machine: what it says is not judged.
python ./deepy.py train.py /configs/large.yml
