# SPDX-License-Identifier: Apache-2.0
"""Small tables as Hugging Face datasets and pyarrow write them, and indexed datasets as the builders of GPT-NeoX write
them, with what stands in them: documents.txt has a line for each file or folder and field, then a line of ids for each
document (of texts their bytes). tests/e2e/nxdata_inputs.sh reads them with nxdata.

usage: record_datasets.py FOLDER [indexed_dataset.py of GPT-NeoX]; needs datasets, pyarrow, numpy and torch
"""
import importlib.util
import json
import os
import shutil
import struct
import sys
import types

import datasets
import pyarrow as pa

folder = sys.argv[1]
said = []


def say(name, field, documents):
    said.append(f"{name} {field} {len(documents)}")
    for document in documents:
        said.append(" ".join(str(t) for t in (document.encode() if isinstance(document, str) else document)))


ids = [[1, 2, 3], [300], [7, 8, 65000, 9], [5, 5], [11, 12, 13, 14, 15]]
texts = ["one", "zwei Wörter", "三", "a\"b\\c\n", "🙂 end"]


def write(name, table, file_format=False, **options):
    options = pa.ipc.IpcWriteOptions(**options)
    new = pa.ipc.new_file if file_format else pa.ipc.new_stream
    with new(os.path.join(folder, name), table.schema, options=options) as out:
        out.write_table(table, max_chunksize=2)


def main():
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    datasets.disable_progress_bars()
    plain = datasets.Dataset.from_dict({"input_ids": ids, "text": texts, "n": list(range(5))})
    plain.save_to_disk(os.path.join(folder, "saved"), num_shards=2)
    say("saved", "input_ids", ids)
    say("saved", "text", texts)
    both = datasets.DatasetDict({"train": plain.select(range(3)).flatten_indices(),
                                 "test": plain.select([3, 4]).flatten_indices()})
    both.save_to_disk(os.path.join(folder, "splits"))
    say("splits", "input_ids", ids[:3])
    small = [[1, 2], [100], [3, 4, 5]]
    columns = {f"{kind}{bits}": pa.array(small, pa.list_(getattr(pa, f"{kind}{bits}")()))
               for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    columns["large"] = pa.array(small, pa.large_list(pa.int32()))
    columns["fixed"] = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.uint16(), 2))
    columns["large_text"] = pa.array(["ab", "c", "d"], pa.large_string())
    columns["bytes"] = pa.array([b"ab", b"c", b"d"], pa.binary())
    columns["deep"] = pa.array([{"n": 1, "in": {"ids": d}} for d in small])
    columns["other"] = pa.array([{"a": [None, True], "b": 1.5, "c": "x"}] * 3)
    table = pa.table(columns)
    write("types.arrow", table)
    for name in columns:
        if name.startswith(("int", "uint", "large")) and name != "large_text":
            say("types.arrow", name, small)
    say("types.arrow", "fixed", [[1, 2], [3, 4], [5, 6]])
    say("types.arrow", "large_text", ["ab", "c", "d"])
    say("types.arrow", "bytes", ["ab", "c", "d"])
    say("types.arrow", "deep.in.ids", small)
    write("file.arrow", table, file_format=True)
    say("file.arrow", "int64", small)
    say("file.arrow", "deep.in.ids", small)
    write("zstd.arrow", table.select(["int64", "large_text"]), compression="zstd")
    say("zstd.arrow", "int64", small)
    say("zstd.arrow", "large_text", ["ab", "c", "d"])
    write("old.arrow", table.select(["int32"]), use_legacy_format=True)
    say("old.arrow", "int32", small)
    write("lz4.arrow", table.select(["int64", "large_text", "deep"]), compression="lz4")
    say("lz4.arrow", "int64", small)
    say("lz4.arrow", "large_text", ["ab", "c", "d"])
    say("lz4.arrow", "deep.in.ids", small)
    long = "a text that is too long to stand in its view"
    write("views.arrow", pa.table({"text": pa.array(["ab", long, "d"], pa.string_view()),
                                   "bytes": pa.array([b"ab", long.encode(), b"d"], pa.binary_view()),
                                   "ids": pa.array(small, pa.list_view(pa.int32())),
                                   "large": pa.array(small, pa.large_list_view(pa.uint16()))}))
    for name in ("text", "bytes"): say("views.arrow", name, ["ab", long, "d"])
    for name in ("ids", "large"): say("views.arrow", name, small)
    # A dictionary in parts (of a stream: more and more of it), one that is replaced, and one of lists.
    parts = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int8()), pa.array(values)) for numbers, values in
                              (([0, 0], ["a", "b"]), ([2, 1], ["a", "b", "c"]))])
    lists = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 1], pa.uint16()), pa.array([[1, 2], [3]], pa.list_(pa.int32())))
    whole = pa.table({"text": parts, "ids": lists, "roles": pa.array([[x] for x in "uauu"]).cast(pa.list_(pa.dictionary(pa.int32(), pa.string())))})
    write("dictionary.arrow", whole, emit_dictionary_deltas=True)
    write("replaced.arrow", whole.select(["text"]))
    for name in ("dictionary.arrow", "replaced.arrow"): say(name, "text", ["a", "a", "c", "b"])
    say("dictionary.arrow", "ids", [[3], [1, 2], [3], [3]])
    write("within.arrow", pa.table({"ids": pa.array([[1, None]]), "whole": pa.array([[1, 2]]), "messages": pa.array(
        [[{"role": "user", "content": "a"}, None, {"role": "assistant", "content": "b"}]])}))
    write("null.arrow", pa.table({"input_ids": pa.array([[1], None, [2]]), "text": pa.array(["a", None, "b"])}))
    dialogues = [[{"role": "user", "content": "the"}, {"role": "assistant", "content": "of"}],
                 [{"role": "user", "content": ""}, {"role": "assistant", "content": "and"}]]
    write("messages.arrow", pa.table({"messages": dialogues}))
    roles = pa.array([message["role"] for messages in dialogues for message in messages]).dictionary_encode()
    contents = pa.array([message["content"] for messages in dialogues for message in messages], pa.large_string())
    write("roles.arrow", pa.table({"messages": pa.ListArray.from_arrays([0, 2, 4], pa.StructArray.from_arrays(
        [roles, contents], ["role", "content"]))}))
    # As datasets has what is no table: each message is a text, which is JSON.
    as_json = datasets.Features({"messages": datasets.List(datasets.Json()), "text": datasets.Json()})
    datasets.Dataset.from_dict({"messages": dialogues, "text": ["a", "b"]}, features=as_json).save_to_disk(
        os.path.join(folder, "json"))
    say("json", "text", ["a", "b"])
    with open(os.path.join(folder, "messages.jsonl"), "w") as out:
        out.writelines(json.dumps({"messages": messages}) + "\n" for messages in dialogues)
    indexed()
    with open(os.path.join(folder, "documents.txt"), "w") as out:
        out.write("\n".join(said) + "\n")


def indexed():
    if len(sys.argv) < 3:
        return
    import numpy as np
    sys.modules["megatron"] = types.SimpleNamespace(print_rank_0=print)
    spec = importlib.util.spec_from_file_location("indexed_dataset", sys.argv[2])
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    documents = [[[1, 2], [3]], [[100]], [[4, 5, 6]]]
    for name, dtype in {"uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
                        "uint16": np.uint16, "float32": np.float32, "float64": np.float64}.items():
        prefix = os.path.join(folder, "new-" + name)
        builder = real.MMapIndexedDatasetBuilder(prefix + ".bin", dtype=dtype)
        fill(builder, documents, dtype, prefix, mapped=True)
        say(f"new-{name}.idx", "text", [sum(d, []) for d in documents])
        if dtype in real.IndexedDatasetBuilder.element_sizes:
            prefix = os.path.join(folder, "old-" + name)
            fill(real.IndexedDatasetBuilder(prefix + ".bin", dtype=dtype), documents, dtype, prefix, mapped=False)
            say(f"old-{name}.idx", "text", [sum(d, []) for d in documents])


def fill(builder, documents, dtype, prefix, mapped):
    import numpy as np
    for document in documents:
        for sentence in document:
            item = np.array(sentence, dtype=dtype)
            if mapped:
                builder._data_file.write(item.tobytes(order="C"))
                builder._sizes.append(item.size)
            else:
                builder.add_item(item)
        builder.end_document()
    if not mapped:  # its offsets are kept as numbers with a point
        builder.data_offsets = [int(at) for at in builder.data_offsets]
    builder.finalize(prefix + ".idx")


main()
