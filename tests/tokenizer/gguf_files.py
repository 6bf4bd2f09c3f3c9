"""Writes the tokenizer of a tokenizer.json into a GGUF file, as converters do it: tokens by id with their types, merges or scores."""

import re

import gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def looks_special(content):
    """Converters make these tokens special, whatever tokenizer.json says."""
    return content in ("<pad>", "<mask>", "<2mass>", "[@BOS@]") or re.fullmatch(r"<\|.*\|>|<｜.*｜>|<unused.*>", content, re.S) is not None


def write(writer, values):
    """`values` are kept under "tokenizer.ggml."; a value that is None is left out."""
    for key, value in values.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string, list: writer.add_array, type(None): lambda *_: None}[type(value)]
        add(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_metadata(file, values, architecture="llama"):
    write(gguf.GGUFWriter(file, architecture), values)


def add_metadata(model, file, values):
    """The model with other metadata of a tokenizer."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(file, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if not key.startswith(("GGUF.", "general.architecture", "tokenizer.ggml.")):
            types = [gguf.GGUFValueType(kind) for kind in field.types]
            writer.add_key_value(key, field.contents(), types[0], types[-1] if len(types) > 1 else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    write(writer, values)


def templates(source):
    """The templates of a post-processor, in order."""
    post = source.get("post_processor") or {}
    for one in post.get("processors", [post]):
        if one.get("type") == "TemplateProcessing":
            yield one


def borders(source):
    """Ids that the post-processor puts before and behind a text; None where it puts none."""
    begin = end = None
    for one in templates(source):
        parts = one["single"]
        place = next(i for i, part in enumerate(parts) if "Sequence" in part)
        ids = [one["special_tokens"][part["SpecialToken"]["id"]]["ids"][0] if "SpecialToken" in part else None for part in parts]
        begin = ids[0] if place == 1 else begin
        end = ids[-1] if place == len(parts) - 2 else end
    return begin, end


def metadata(source, kind, pre, rows=0):
    """What a converter writes of the tokenizer.json `source`; `rows`: of the embedding."""
    pieces = {id: piece for piece, id in source["model"]["vocab"].items()}
    added = {token["id"]: token for token in source["added_tokens"]}
    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in source["model"]["merges"]]
    ranks = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault("".join(pair), rank)
    tokens, types, scores = [], [], []
    for id in range(max(*pieces, *added, rows - 1) + 1):
        content = added[id]["content"] if id in added else pieces.get(id)
        score = -float(ranks.get(content, 0))
        if content is None:
            content, type_, score = f"[PAD{id}]", UNUSED, -10000.0
        elif id in added:
            special = added[id]["special"] or looks_special(content)
            type_ = CONTROL if special else USER_DEFINED
            content, score = content if special else content.replace("▁", " "), -1000.0
        elif content == source["model"].get("unk_token"):
            type_ = UNKNOWN
        else:
            type_ = BYTE if kind == "llama" and re.fullmatch("<0x[0-9A-F]{2}>", content) else NORMAL
        tokens.append(content)
        types.append(type_)
        scores.append(score)
    begin, end = borders(source)
    values = {"model": kind, "pre": pre, "tokens": tokens, "token_type": types, "bos_token_id": begin, "eos_token_id": end,
              "add_bos_token": begin is not None, "add_eos_token": end is not None}
    if kind == "gpt2":
        return values | {"merges": [" ".join(pair) for pair in merges]}
    unknown = source["model"]["vocab"].get(source["model"]["unk_token"])
    return values | {"scores": scores, "unknown_token_id": unknown, "add_space_prefix": "Prepend" in str(source["normalizer"])}
