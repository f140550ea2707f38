#!/bin/bash
# A tool has options of its own, and nothing of a training.
python tools/preprocess_data.py --input corpus.json --output-prefix corpus --vocab-file vocab.json --workers 4
