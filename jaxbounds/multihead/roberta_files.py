"""Reading and writing RoBERTa in a Hugging Face folder: `config.json`, `model.safetensors`."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import whole, write_text
from jaxbounds.ground.memory import LIMIT, refuse_over
from jaxbounds.multihead.roberta import RobertaShape, init_roberta

NEEDS_SAFETENSORS = "weights need safetensors: pip install 'jaxbounds[sst2]'"

SIZES = {
    "vocab_size": "vocabulary",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "inner",
    "max_position_embeddings": "positions",
    "type_vocab_size": "types",
    "pad_token_id": "pad",
    "layer_norm_eps": "eps",
}
"""A dictionary from each entry of `config.json` to the matching attribute of `RobertaShape`."""

SETTINGS: dict[str, tuple] = {
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
}
"""A dictionary from entries of `config.json` with fixed values to the values that the library
accepts. The value None means that the entry may be missing."""

_PLACES = {
    "embeddings.word_embeddings": "tokens",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "types",
    "embeddings.LayerNorm": "norm",
    "attention.self.query": "attention/query",
    "attention.self.key": "attention/key",
    "attention.self.value": "attention/value",
    "attention.output.dense": "attention/output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "norm",
    "classifier.dense": "classifier_dense",
    "classifier.out_proj": "classifier_out",
}
_NAMES = {place: name for name, place in _PLACES.items() if not name.startswith("embeddings.")}
_EMBEDDED = {place: name for name, place in _PLACES.items() if name.startswith("embeddings.")}
_UNUSED = re.compile(r"(lm_head|pooler)\.|embeddings\.position_ids$")
HEAD = "classifier"


def hugging_face_name(path: tuple[str, ...], /) -> str:
    """Return Hugging Face's name of a parameter leaf, such as ("tokens", "embedding")."""
    *where, kind = path
    suffix = {"embedding": "weight", "kernel": "weight", "scale": "weight", "bias": "bias"}[kind]
    if where[0].startswith("layer"):
        inner = _NAMES["/".join(where[1:])]
        return f"roberta.encoder.layer.{where[0].removeprefix('layer')}.{inner}.{suffix}"
    if where[0].startswith(HEAD):
        return f"{_NAMES[where[0]]}.{suffix}"
    return f"roberta.{_EMBEDDED[where[0]]}.{suffix}"


def read_shape(folder: str | Path, /) -> RobertaShape:
    """Return the shape that `config.json` describes, with two labels unless the file lists labels.

    Raises:
        Refused: if the file is missing or damaged, does not describe a RoBERTa, or lacks an
            entry.
    """
    path = Path(folder) / "config.json"
    try:
        stored = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as problem:
        raise Refused(
            f"cannot read path={path} ({type(problem).__name__}), expected a Hugging Face"
            " folder. Try a folder with config.json, model.safetensors and tokenizer.json"
        ) from problem
    family = stored.get("model_type") if isinstance(stored, dict) else None
    if family != "roberta":
        raise Refused(
            f"{path}: model_type={family!r}, expected 'roberta'. Try a folder of roberta-base"
        )
    missing = [name for name in SIZES if name not in stored]
    if missing:
        raise Refused(
            f"{path} lacks keys={', '.join(missing)}, expected a complete config.json. Try saving"
            " the folder again with save_pretrained"
        )
    for name, allowed in SETTINGS.items():
        if stored.get(name) not in allowed:
            raise Refused(
                f"{path}: {name}={stored.get(name)!r}, expected {allowed[0]}. Try a network with"
                " this setting"
            )
    sizes: dict[str, Any] = {ours: stored[name] for name, ours in SIZES.items()}
    if sizes["width"] % sizes["heads"]:
        raise Refused(
            f"{path}: heads={sizes['heads']} do not divide width={sizes['width']}. Try the"
            " config.json that belongs to the weights"
        )
    labels = stored.get("num_labels") or len(stored.get("id2label") or (0, 1))
    width = sizes["width"] // sizes["heads"]
    deviation = float(stored.get("initializer_range", 0.02))
    return RobertaShape(**sizes, head_width=width, labels=labels, deviation=deviation)


def _stored_names(file: Any, path: Path) -> dict[str, str]:
    """Return each parameter's name in the file; older files use another prefix and norm names."""
    names = {}
    for name in file.keys():  # noqa: SIM118 (not a mapping)
        full = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        full = full.replace("LayerNorm.beta", "LayerNorm.bias")
        if full.startswith(("embeddings.", "encoder.")):
            full = f"roberta.{full}"
        if not _UNUSED.match(full.removeprefix("roberta.")):
            names[full] = name
    if not any(name.startswith("roberta.") for name in names):
        first = ", ".join(sorted(file.keys())[:3])
        raise Refused(
            f"{path} holds no RoBERTa: the first tensors={first}, expected names like"
            " roberta.embeddings. Try model.safetensors of roberta-base"
        )
    return names


def load_roberta(
    folder: str | Path, key: Array, /, *, labels: int | None = None, memory_limit: float = LIMIT
) -> tuple[RobertaShape, dict]:
    """Load a pretrained network; draw the classifier if the file lacks it.

    Args:
        folder: a Hugging Face folder, which contains `config.json` and `model.safetensors`.
        key: the random key of the classifier's weights.
        labels: the number of logits; by default the number in `config.json`.
        memory_limit: the largest size of the parameters, in bytes, that the function accepts.

    Returns:
        The shape, and the parameters in the current default precision.

    Raises:
        Refused: if a file is missing or damaged, or a tensor is missing, unknown or of another
            shape than `config.json` implies. The message names the file or the tensor.
        ImportError: if safetensors is missing; the message tells how to install safetensors.
    """
    shape = read_shape(folder)
    shape = replace(shape, labels=labels or shape.labels)
    path = Path(folder) / "model.safetensors"
    try:
        import safetensors
    except ImportError as problem:
        raise ImportError(NEEDS_SAFETENSORS) from problem
    if not path.is_file():
        raise Refused(
            f"path={path} does not exist, expected one safetensors file (neither a pickle such"
            " as pytorch_model.bin nor shards). Try saving the network again with"
            " safe_serialization"
        )
    expected = flatten_dict(jax.eval_shape(lambda: init_roberta(shape, jax.random.key(0))))
    bytes_needed = sum(leaf.size * leaf.dtype.itemsize for leaf in expected.values())
    refuse_over(bytes_needed, memory_limit, f"the parameters of {folder} need")
    try:
        with safetensors.safe_open(path, framework="flax") as file:
            return shape, _assembled(file, path, shape, expected, key)
    except (safetensors.SafetensorError, OSError) as problem:
        raise Refused(
            f"path={path} is damaged ({problem}), expected a safetensors file. Try fetching it"
            " again"
        ) from problem


def _assembled(
    file: Any, path: Path, shape: RobertaShape, expected: Mapping, key: Array
) -> dict[str, Any]:
    names = _stored_names(file, path)
    wanted = {hugging_face_name(leaf): leaf for leaf in expected}
    head = {name for name in wanted if name.startswith(HEAD)}
    drawn = not head & set(names)
    absent = sorted(set(wanted) - set(names) - (head if drawn else set()))
    if absent:
        raise Refused(
            f"{path} lacks tensors={len(absent)}, the first is {absent[0]}. Try fetching the file"
            " again"
        )
    unknown = sorted(set(names) - set(wanted))
    if unknown:
        raise Refused(
            f"{path} has unknown tensors={len(unknown)}, the first is {unknown[0]};"
            " config.json may describe another network. Try the config.json of this network"
        )
    found: dict[tuple[str, ...], Array] = {}
    for name in sorted(set(wanted) & set(names)):
        leaf = wanted[name]
        like, turned = expected[leaf], leaf[-1] == "kernel"
        should = like.shape[::-1] if turned else like.shape
        is_shape = tuple(file.get_slice(names[name]).get_shape())
        if is_shape != should:
            raise Refused(
                f"{path}: tensor {name} has shape={is_shape}, expected {should}. Try the"
                " config.json that belongs to the weights"
            )
        value = jnp.asarray(file.get_tensor(names[name])).astype(like.dtype)
        found[leaf] = value.T if turned else value
    if drawn:
        fresh = jax.jit(lambda: draw_classifier(shape, key))()
        found |= flatten_dict(fresh)
    return unflatten_dict(found)


def draw_classifier(shape: RobertaShape, key: Array, /) -> dict:
    """Draw initial parameters of a classifier: `classifier_dense` and `classifier_out`."""
    params = init_roberta(shape, key)
    return {name: leaf for name, leaf in params.items() if name.startswith(HEAD)}


def save_roberta(folder: str | Path, shape: RobertaShape, params: Mapping, /) -> Path:
    """Write a Hugging Face folder that `load_roberta` and transformers can read.

    The shape must have heads * head_width = width and gain 1. The function creates `folder` if it
    is missing.

    Returns:
        The path of the folder.

    Raises:
        Refused: if heads * head_width differs from width or the gain is not 1, because no entry of
            `config.json` can describe this shape.
        ImportError: if safetensors is missing; the message tells how to install safetensors.
    """
    try:
        from safetensors.numpy import save
    except ImportError as problem:
        raise ImportError(NEEDS_SAFETENSORS) from problem
    if shape.heads * shape.head_width != shape.width or shape.gain != 1:
        raise Refused(
            f"heads={shape.heads} of head_width={shape.head_width} in width={shape.width} with "
            f"gain={shape.gain}: a Hugging Face folder holds only networks with heads * head_width "
            f"= width and gain = 1. Try the original network, with unchanged heads"
        )
    turned = {
        path: np.asarray(leaf).T if path[-1] == "kernel" else np.asarray(leaf)
        for path, leaf in flatten_dict(dict(params)).items()
    }
    arrays = {hugging_face_name(path): np.ascontiguousarray(a) for path, a in turned.items()}
    about: dict[str, Any] = {name: getattr(shape, ours) for name, ours in SIZES.items()}
    about |= {name: values[0] for name, values in SETTINGS.items()}
    about |= {
        "architectures": ["RobertaForSequenceClassification"],
        "model_type": "roberta",
        "initializer_range": shape.deviation,
        "id2label": {str(i): f"LABEL_{i}" for i in range(shape.labels)},
        "label2id": {f"LABEL_{i}": i for i in range(shape.labels)},
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    folder = Path(folder)
    with whole(folder / "model.safetensors") as file:
        file.write(save(arrays, metadata={"format": "pt"}))
    write_text(folder / "config.json", json.dumps(about, indent=2) + "\n")
    return folder
