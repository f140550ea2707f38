# SPDX-License-Identifier: Apache-2.0
"""What each system says of a file. A judge tells why it is refused, or None; it is made in a process of its own, since
two systems have packages of the same name."""
import contextlib
import enum
import importlib
import io
import math
import os
import re
import subprocess
import sys
import tempfile
import types
import typing

import nxdt_rules
from absent import leave_out

HOST_DEVICES = 8
# What Megatron's checkpoints do about keys that they do not expect.
STRICTNESS = ["assume_ok_unexpected", "log_unexpected", "log_all", "raise_unexpected", "raise_all", "return_unexpected",
              "return_all", "ignore_all"]
# Variables that Megatron's checks read.
ENVIRONMENT = ("CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_ALGO")
# With no PATH every program is one that is not found: what it would be given is printed instead.
CAPTURE = 'command_not_found_handle() { printf "%%s\\0" %s "$@" "end of arguments"; }\n' % " ".join(
    f'"${name}"' for name in ENVIRONMENT)


def refusal(check, *arguments):
    """Why the check fails. argparse exits with its message on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            check(*arguments)
            return None
        except (Exception, SystemExit) as error:
            return f"{type(error).__name__}: {error} {said.getvalue()[-200:]}"[:300]


class Devices:
    count = HOST_DEVICES

    @staticmethod
    def device_count():
        return Devices.count

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def get_device_capability(*_):
        return 9, 0


def neox(path):
    sys.path.insert(0, path)
    leave_out("torch", "deepspeed", "megatron.mpu", "megatron.logging", "megatron.tokenizer", "wandb", "requests",
              "tokenizers", "transformers", "tiktoken")
    import torch
    torch.cuda = Devices
    torch.distributed = types.SimpleNamespace(is_initialized=lambda: False, get_rank=lambda: 0)
    runner = importlib.import_module("deepspeed.launcher.runner")
    runner.DLTS_HOSTFILE, runner.fetch_hostfile = "/job/hostfile", lambda file: None
    runner.parse_inclusion_exclusion = lambda pool, *_: {host: list(range(slots)) for host, slots in pool.items()}
    arguments = importlib.import_module("megatron.neox_arguments.arguments")
    arguments.version = lambda package: "2.7.0"

    def judge(file, world):
        Devices.count = world
        return refusal(arguments.NeoXArgs.from_ymls, [file])
    return judge


def launched(file):
    """Environment and arguments of the first program in Python that a script starts; a text where it starts none."""
    with open(file, errors="replace") as script, tempfile.TemporaryDirectory() as folder:
        command = ["/bin/bash", "-r", "-c", CAPTURE + script.read()]
        try:
            run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={"PATH": folder}, timeout=20)
        except subprocess.TimeoutExpired:
            return "the script does not end"
    for call in run.stdout.split("end of arguments\0"):
        words = call.split("\0")[:-1]
        if any(word.endswith(".py") for word in words):
            return dict(zip(ENVIRONMENT, words)), words[len(ENVIRONMENT):]
    return f"no program: {run.stderr[-200:]}"


def ranks(words):
    sizes = re.findall(r"--(?:nproc[-_]per[-_]node|nnodes)[ =](\d+)\b", " ".join(words))
    return math.prod(int(size) for size in sizes)


def megatron(path):
    sys.path.insert(0, path)
    leave_out("torch", "transformer_engine", "megatron.training.activations", "megatron.training.utils",
              "megatron.training.tokenizer", "megatron.core", "apex", "tensorstore", "zarr", "numpy", "wandb")
    import torch
    torch.__version__, torch.cuda = "2.4.0", Devices
    torch.float, torch.half, torch.bfloat16 = "float", "half", "bfloat16"
    # The package's own initialization imports the training.
    training = types.ModuleType("megatron.training")
    training.__path__ = [os.path.join(path, "megatron", "training")]
    sys.modules["megatron.training"] = training
    validation = importlib.import_module("megatron.core.dist_checkpointing.validation")
    validation.StrictHandling = enum.Enum("StrictHandling", {name.upper(): name for name in STRICTNESS})
    utilities = importlib.import_module("megatron.training.utils")
    utilities.update_use_dist_ckpt = lambda given: setattr(given, "use_dist_ckpt", given.ckpt_format != "torch")
    arguments = importlib.import_module("megatron.training.arguments")

    def check():
        arguments.validate_args(arguments.parse_args())

    def judge(file, _):
        call = launched(file)
        if isinstance(call, str):
            return call
        environment, words = call
        program = next(place for place, word in enumerate(words) if word.endswith(".py"))
        os.environ.update(environment, WORLD_SIZE=str(ranks(words[:program])), RANK="0")
        sys.argv = words[program:]
        return refusal(check)
    return judge


def xorl(path):
    sys.path.insert(0, os.path.join(path, "src"))
    leave_out("torch", "transformers", "wandb", "triton", "numpy", "xorl.ops", "einops", "safetensors", "xorl.models",
              "deep_gemm")
    loss = importlib.import_module("xorl.ops.loss")
    loss.CrossEntropyMode = typing.Literal["eager", "compiled", "bi_fused", "quack_linear", "fused_quack"]
    arguments = importlib.import_module("xorl.arguments")

    def judge(file, world):
        local = str(min(world, HOST_DEVICES))
        os.environ.update(WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=local, RANK="0", LOCAL_RANK="0")
        sys.argv = ["train.py", file]
        return refusal(arguments.parse_args, arguments.Arguments)
    return judge


def nxdt(folder):
    known = nxdt_rules.known_keys(folder)
    return lambda file, _: nxdt_rules.refusal(known, file)


JUDGES = {"nxdt": nxdt, "neox": neox, "megatron": megatron, "xorl": xorl}
