#!/bin/bash
# A tool's own options: the beginning of one is enough, as argparse takes it; one is misspelt, two have no such value.
python tools/merge_datasets.py --in corpus --output-prefx merged
python tools/checkpoint/convert.py --model-type GPT --loader mcore --saver mcore --target-tensor-parallel-size two
python tools/checkpoint/convert.py --model-type T5 --loader mcore --saver mcore --load-dir a --save-dir b
