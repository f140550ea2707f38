# SPDX-License-Identifier: Apache-2.0
"""The judge of NxDT: a list of rules of this bench, since NxDT judges a configuration only as it trains on its devices.
Known are the keys of the real files, each with the types that it has there."""
import glob
import os

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

STRATEGY = "distributed_strategy."
WORDS = {
    "model_source": {"hf", "megatron"},
    "precision.type": {"bf16SR", "mixed_precision", "mixed_precision_SR", "fp32", "autocast", "manual"},
    "data.dataloader_type": {"single", "cyclic"},
    "model.activations_checkpoint_granularity": {"full", "selective", None},
}
COUNTS = ["trainer.devices", "trainer.num_nodes", STRATEGY + "tensor_model_parallel_size",
          STRATEGY + "pipeline_model_parallel_size", STRATEGY + "context_parallel_size", "data.micro_batch_size",
          "data.global_batch_size", "model.num_layers", "model.hidden_size", "model.num_attention_heads",
          "model.encoder_seq_length", "model.ffn_hidden_size", "model.max_position_embeddings"]
REQUIRED = ["name", "model_source", "trainer.devices", "trainer.num_nodes", "trainer.max_steps",
            STRATEGY + "tensor_model_parallel_size", STRATEGY + "pipeline_model_parallel_size", "data.micro_batch_size",
            "data.global_batch_size", "precision.type", "model.optim.name", "exp_manager.resume_from_checkpoint",
            "compiler_flags", "compiler_cache_url", "bucket_size_collectives", "neuron_rt_exec_timeout",
            "aync_exec_max_inflight_requests", "neuron_experimental_compress_rg"]
SHARES = ["model.optim.weight_decay", "model.hidden_dropout", "model.attention_dropout"]


def load(file):
    OmegaConf.register_new_resolver("multiply", lambda left, right: left * right, replace=True)
    return OmegaConf.to_container(OmegaConf.load(file), resolve=True)


def flat(section, above=""):
    for key, value in section.items():
        path = f"{above}{key}"
        yield path, value
        if isinstance(value, dict):
            yield from flat(value, path + ".")


def known_keys(folder):
    known = {}
    for file in glob.glob(os.path.join(folder, "**", "*.yaml"), recursive=True):
        for path, value in flat(load(file)):
            known.setdefault(path, set()).add(type(value))
    return known


def wrong_key(known, path, value):
    if path not in known:
        return f"unknown {path}"
    types = known[path] - {type(None)}
    if value is None:
        needed = path in COUNTS or path in REQUIRED
        return f"null {path}" if needed and type(None) not in known[path] else None
    fits = not types or type(value) in types or (type(value) is int and float in types)
    return None if fits else f"{path} is a {type(value).__name__}"


def wrong_value(values):
    for path in REQUIRED:
        if path not in values:
            return f"{path} is missing"
    for path, words in WORDS.items():
        if path in values and values[path] not in words:
            return f"{path} is {values[path]}"
    for path in COUNTS:
        if path in values and not (isinstance(values[path], int) and values[path] > 0):
            return f"{path} is no count"
    for path in SHARES:
        if isinstance(values.get(path), (int, float)) and not 0 <= values[path] < 1:
            return f"{path} is no share"
    rate = values.get("model.optim.lr")
    return None if rate is None or (isinstance(rate, (int, float)) and rate > 0) else "model.optim.lr is no rate"


def wrong_layout(get):
    world = get("trainer.devices") * get("trainer.num_nodes")
    tensor, pipeline = get(STRATEGY + "tensor_model_parallel_size"), get(STRATEGY + "pipeline_model_parallel_size")
    chunks = get(STRATEGY + "virtual_pipeline_model_parallel_size") or 1
    ranks = tensor * pipeline * (get(STRATEGY + "context_parallel_size") or 1)
    if world % ranks:
        return "the ranks do not divide"
    data = world // ranks
    heads, kv_heads = get("model.num_attention_heads"), get("model.num_query_groups") or get("model.num_kv_heads")
    hidden = get("model.hidden_size")
    layers = get("model.num_layers")
    multiples = [
        ("the batch", get("data.global_batch_size"), get("data.micro_batch_size") * data),
        ("the experts' ranks", data, get(STRATEGY + "expert_model_parallel_size") or 1),
        ("heads", hidden, heads),
        ("heads of a rank", heads, tensor),
        ("hidden size of a rank", hidden, tensor),
        ("key-value heads", kv_heads and kv_heads * (get(STRATEGY + "kv_replicator") or 1), tensor),
        ("feed-forward size", get("model.ffn_hidden_size"), tensor),
    ]
    for name, whole, part in multiples:
        if whole and part and whole % part:
            return f"{name}: {whole} is no multiple of {part}"
    if layers and layers < pipeline * chunks:
        return "stages without layers"
    return "chunks without stages" if pipeline == 1 and chunks > 1 else None


def wrong_together(get):
    moe = get("model.moe") or {}
    if moe and not moe.get("dropless", False) and not (moe.get("capacity_factor") or 0) > 0:
        return "experts without capacity"
    if moe.get("dropless") and moe.get("glu_mlp", True) is False:
        return "dropless experts without gates"
    if get("model_source") == "megatron" and not get(STRATEGY + "zero1"):
        return "megatron without zero1"
    both = get("model.fusions.ring_attention") and get("model.fusions.flash_attention")
    return "ring and flash attention" if both else None


def refusal(known, file):
    try:
        settings = load(file)
    except (OmegaConfBaseException, YAMLError, OSError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    if not isinstance(settings, dict):
        return "no map"
    values = dict(flat(settings))
    keys = (wrong_key(known, path, value) for path, value in values.items())
    wrong = next((one for one in keys if one), None) or wrong_value(values)
    return wrong or wrong_layout(values.get) or wrong_together(values.get)
