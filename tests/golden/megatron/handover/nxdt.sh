#!/bin/bash
# NxDT reads a file by its name, and Hydra's overrides; one of these is known to nobody here.
torchrun --nproc_per_node 32 training_orchestrator.py --config-path=../../../conf/nxdt --config-name=quickstart \
  trainer.max_steps=7 exp_manager.explicit_log_dir=$(date)
