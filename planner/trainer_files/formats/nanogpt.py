"""nanoGPT and its kin: a Python file of constants, with what its train.py takes where one is absent."""

from __future__ import annotations

from dataclasses import replace

from planner.inputs.model_config import model_of_config
from planner.trainer_files.formats.common import Reader
from planner.trainer_files.model import Document, Reading

_MARKS = ("max_iters", "n_layer", "eval_iters", "lr_decay_iters")
_SAMPLES = ("batch_size", "block_size")
# constants of its train.py that scripts with a training loop of their own do not have
_ITS_OWN = ("gradient_accumulation_steps", "init_from", "out_dir", "always_save_checkpoint")
# karpathy/nanoGPT train.py (read on 2026-11-30)
_DEFAULTS = {
    "batch_size": 12, "block_size": 1024, "gradient_accumulation_steps": 40, "max_iters": 600_000, "n_layer": 12,
    "n_head": 12, "n_embd": 768,
}  # fmt: skip
_SIZES = {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head"}
_VOCAB = 50_304


def recognises(document: Document) -> bool:
    """Whether its constants are those of nanoGPT."""
    values = document.data.get("values") if document.syntax == "python" else None
    if not isinstance(values, dict) or not any(name in values for name in _SAMPLES):
        return False
    return any(name in values for name in _MARKS) and any(name in values for name in _ITS_OWN)


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: a value cannot be; names file and key.
    """
    values = Document(document.path, "python", document.data["values"])
    reader = Reader(values, "nanoGPT")

    def whole(name: str) -> int:
        return reader.whole(name) or _DEFAULTS[name]

    def where(*names: str) -> str:
        return " x ".join(name if reader.has(name) else f"the default of {name}" for name in names)

    batch = ("batch_size", "gradient_accumulation_steps")
    length = whole("block_size")
    # its accumulation is that of all accelerators together
    known = all(reader.has(name) for name in batch)
    reader.add("training.global_batch", whole(batch[0]) * whole(batch[1]), where(*batch), assumed=not known)
    reader.add("training.sequence_length", length, where("block_size"), assumed=not reader.has("block_size"))
    reader.add("training.steps", whole("max_iters"), where("max_iters"), assumed=not reader.has("max_iters"))
    start = reader.text("init_from")
    if start.startswith("gpt2"):
        reader.hub_key, reader.hub_name = "init_from", start
    else:
        data = {
            "model_type": "gpt2", "n_layer": whole("n_layer"), "n_head": whole("n_head"), "n_embd": whole("n_embd"),
            "vocab_size": _VOCAB, "n_positions": length, "tie_word_embeddings": True,
        }  # fmt: skip
        model = model_of_config(data, str(document.path))
        sources = {size: where(name) for size, name in _SIZES.items()}
        reader.model = replace(model, model_type="own sizes", sources=sources)
    precision = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(reader.text("dtype"), "bf16")
    reader.add("training.precision", precision, where("dtype"), assumed=not reader.has("dtype"))
    compiled = reader.flag("compile") is not False
    reader.add(
        "training.stack",
        "compiled" if compiled else "eager",
        where("compile"),
        assumed=not reader.has("compile"),
    )
    reader.add("training.layout.zero_stage", 0, "DistributedDataParallel", assumed=True)
    reader.add("training.layout.recompute", "none", "nanoGPT recomputes nothing", assumed=True)
    return reader
