#!/bin/bash
# NxDT reads a file by its name, and Hydra's overrides.
torchrun --nproc_per_node 32 training_orchestrator.py --config-path=conf --config-name=hf_llama3_8B_config trainer.devices=32
