"""From several files to one draft: which fact counts, what the model is, what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from planner.errors import InputError, shortened
from planner.inputs.model_config import ConfigModel
from planner.inputs.presets import find_preset, load_presets, why_not_modelled
from planner.records import record
from planner.trainer_files.batch import global_batch, leave_out_what_divides_nothing, settle_generations
from planner.trainer_files.encoders import settle_encoder
from planner.trainer_files.files import beside, read_document
from planner.trainer_files.formats.torchtitan import document_of_name
from planner.trainer_files.hub import name_of_folder, preset_before, preset_of_hub_name
from planner.trainer_files.inherited import with_bases
from planner.trainer_files.methods import ask_for_rollouts, generates, settle_method, settle_packing
from planner.trainer_files.model import Blank, Document, Fact, Reading
from planner.trainer_files.registry import FORMATS, detect, read

_MOST_FILES = 20
_USUAL_LENGTH = 4096
_LENGTHS = ("tokens", "samples", "epochs", "steps")
# tools whose own files state the precision of the run: TRL's arguments, the launcher's
_STATE_PRECISION = ("trl", "accelerate")


@record(frozen=True)
class Wishes:
    """What the user states beside the files.

    Attributes:
        format: of every file; empty: by content.
        model_config: the model's `config.json`.
        model: a preset.
        accelerators: that the run uses.
        values: values of the workload by dotted key; they replace what the files say.
    """

    format: str = ""
    model_config: Path | None = None
    model: str = ""
    accelerators: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@record
class Draft:
    """A workload as far as the files state it; facts by dotted key in the order in which they are written.

    `encoder`: a network of images or sound in the parameters of the model's configuration.
    """

    name: str
    tools: list[str]
    files: list[str] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)
    blanks: list[Blank] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unknown: dict[str, list[str]] = field(default_factory=dict)
    encoder: Mapping[str, Any] | None = None


def gather(paths: Sequence[Path], wishes: Wishes) -> Draft:
    """Read files and settle what they say; without files, what is stated beside them.

    Raises:
        InputError: a file cannot be read, or the model is not known; says what to give.
    """
    readings, notes = _readings(paths, wishes)
    facts, warnings = _merged(readings)
    draft = Draft("", [reading.tool for reading in readings])
    draft.files = list(dict.fromkeys(reading.path.name for reading in readings))
    draft.notes = notes
    draft.warnings = [*(text for reading in readings for text in reading.warnings), *warnings]
    draft.unknown = {reading.path.name: reading.unknown for reading in readings if reading.unknown}
    if wishes.accelerators is not None:
        facts["batch.accelerators"] = Fact("batch.accelerators", wishes.accelerators, "--accelerators")
    _settle_model(draft, readings, wishes, paths)
    _settle_training(draft, facts, readings)
    base = next((reading.hub_name for reading in readings if reading.hub_name), "")
    settle_method(draft.facts, facts, base, draft.warnings, draft.blanks, per_sample=_per_sample(draft))
    if _per_sample(draft):
        _leave_out_adapted_layers(draft)
    leave_out_what_divides_nothing(draft.facts, draft.warnings)
    _settle_stated(draft, wishes.values)
    ask_for_rollouts(draft.facts, draft.blanks)
    if not _per_sample(draft):
        settle_packing(draft.facts, facts.get("training.packing"), draft.blanks)
    _settle_length(draft)
    _settle_constraints(draft)
    settle_encoder(draft.facts, facts, draft.encoder, draft.warnings)
    return draft


def _readings(paths: Sequence[Path], wishes: Wishes) -> tuple[list[Reading], list[str]]:
    """Each file, and those beside it that it names; trainers before launchers before engines.

    A file that another one builds on is part of that one, which a note says.
    """
    if len(paths) > _MOST_FILES:
        raise InputError(f"--from: {len(paths)} files are more than {_MOST_FILES}: name those of one run")
    ranked: list[tuple[int, Reading]] = []
    opened = [with_bases(_named_run(path) or read_document(path), paths) for path in paths]
    parts = {base.resolve() for _, bases in opened for base in bases}
    visited = set(parts)
    pending = [(document, wishes.format) for document, _ in opened]
    while pending:
        document, kind = pending.pop(0)
        path = document.path
        if path.resolve() in visited:
            continue
        visited.add(path.resolve())
        name = kind or detect(document)
        reading = read(document, name)
        if _local_model(reading) is None:
            reading.hub_name = name_of_folder(reading.hub_name)
        ranked.append((FORMATS[name].rank, reading))
        for tool, inner in reading.inside.items():
            ranked.append((FORMATS[tool].rank, read(Document(path, "json", inner), tool)))
        for tool, file_name in reading.files.items():
            named = beside(path, file_name)
            if named is not None:
                pending.append((read_document(named), tool))
            else:
                _guess_stage(reading, tool, file_name)
    notes = [
        f"{document.path.name}: builds on {', '.join(document.bases)}: what it does not state is from there"
        for document, bases in opened
        if bases and document.path.resolve() not in parts
    ]
    return [reading for _, reading in sorted(ranked, key=lambda item: item[0])], notes


def _named_run(path: Path) -> Document | None:
    """What a word that is not a file names: a configuration that torchtitan keeps in its code."""
    return None if path.exists() else document_of_name(Document(path, "name", {}))


def _guess_stage(reading: Reading, tool: str, named: str) -> None:
    """The ZeRO stage that the name of an absent file tells (`zero3_bf16.json`, `ds_z2_config.json`, `fsdp.yaml`)."""
    lowered = Path(named).name.lower()
    number = re.search(r"(?:zero|z|stage)_?([0-3])", lowered)
    told = int(number[1]) if number else 3 if "fsdp" in lowered and tool == "accelerate" else None
    if told is not None and tool != "trl":
        text = f"{tool} {named}: not beside it, the stage by its name"
        reading.add("training.layout.zero_stage", told, text, assumed=True)
        _guess_offload(reading, f"{tool} {named}", lowered, told)
    precision = reading.facts.get("training.precision")
    if tool in _STATE_PRECISION and precision is not None and precision.assumed and precision.value == "fp32":
        text = f"{named} may state it and is not beside it: the usual is taken"
        reading.add("training.precision", "bf16", text, assumed=True)
    reading.warn(f"{tool} {shortened(named)} is not next to it: add it to --from to read it")


def _guess_offload(reading: Reading, named: str, lowered: str, stage: int) -> None:
    """What the name of an absent file says of host memory (`zero3_bf16_cpuoffload_all.json`)."""
    if "offload" not in lowered or "partial" in lowered or re.search(r"no[_-]?(cpu[_-]?)?offload", lowered):
        return
    text = f"{named}: not beside it, by its name"
    if "param" not in lowered:
        reading.add("training.memory.offload_optimizer", True, text, assumed=True)
    if stage == 3:
        reading.add("training.memory.offload_weights", True, text, assumed=True)


def _merged(readings: Sequence[Reading]) -> tuple[dict[str, Fact], list[str]]:
    """The first stated value of each fact; an assumed one only where none is stated."""
    facts: dict[str, Fact] = {}
    warnings: list[str] = []
    for reading in readings:
        for key, fact in reading.facts.items():
            present = facts.get(key)
            if present is None or (present.assumed and not fact.assumed):
                facts[key] = fact
            elif not fact.assumed and fact.value != present.value:
                warnings.append(
                    f"{key}: {fact.where} says {fact.value}, {present.where} says {present.value}: the latter is taken"
                )
    return facts, warnings


def _settle_model(draft: Draft, readings: Sequence[Reading], wishes: Wishes, paths: Sequence[Path]) -> None:
    hub = next((reading for reading in readings if reading.hub_name and reading.model is None), None)
    draft.name = _name(_called_after(readings, hub, wishes), draft.tools[0] if draft.tools else "model")
    if wishes.model_config is not None:
        document = read_document(wishes.model_config)
        _use_config(draft, read(document, "huggingface"), hub)
        return
    if wishes.model:
        _use_preset(draft, wishes.model)
        return
    sized = next((reading for reading in readings if reading.model is not None), None)
    if sized is not None:
        _use_config(draft, sized, hub)
        return
    if hub is None:
        own = next(
            (reading.files["trl"] for reading in readings if "trl" in reading.files), "the trainer's own file"
        )
        raise InputError(
            f"{', '.join(str(path) for path in paths)}: states no model: add {own[:200]} to --from, or name "
            "the model with --model-config config.json or --model PRESET"
        )
    local = _local_model(hub)
    if local is not None:
        _use_config(draft, read(read_document(local), "huggingface"), hub)
        return
    preset = preset_of_hub_name(hub.hub_name)
    if preset is None:
        raise InputError(
            f"{hub.path}: {hub.hub_key[:200]} {hub.hub_name[:200]!r} is not a preset ('planner schema presets' lists "
            f"them): {_instead(hub.hub_name)}"
        )
    where = f"{hub.path.name}: {hub.hub_key} {hub.hub_name}, matched by name"
    draft.facts["model.preset"] = Fact("model.preset", preset.name, where)


def _instead(name: str) -> str:
    """What to give for a model that is not a preset."""
    base = preset_before(name)
    tuned = f"--model {base.name} if it is that model tuned further; else " if base is not None else ""
    return why_not_modelled(name) or (
        f"{tuned}download its config.json and add --model-config config.json; nothing is downloaded for you"
    )


def _called_after(readings: Sequence[Reading], named: Reading | None, wishes: Wishes) -> str:
    if named is not None:
        return named.hub_name
    if readings:
        return _stem(readings[0].path)
    return wishes.model or (_stem(wishes.model_config) if wishes.model_config is not None else "")


def _use_preset(draft: Draft, name: str) -> None:
    preset = preset_of_hub_name(name)
    if preset is None:
        near = get_close_matches(name, load_presets(), n=1)
        raise InputError(
            f"--model {name}: is not a preset{f' (did you mean {near[0]}?)' if near else ''}; 'planner schema presets' "
            "lists them; any other model by its sizes: --model-config config.json"
        )
    draft.facts["model.preset"] = Fact("model.preset", preset.name, "stated on the command line")


def _per_sample(draft: Draft) -> bool:
    """Whether the model is trained on samples (images, recordings) and not on sequences of tokens."""
    family, preset = draft.facts.get("model.family"), draft.facts.get("model.preset")
    model_preset = find_preset(preset.value) if preset is not None else None
    if family is None and model_preset is not None:
        return model_preset.values.get("family", "transformer") != "transformer"
    return family is not None and family.value != "transformer"


def _leave_out_adapted_layers(draft: Draft) -> None:
    """Take out which layers adapters sit on, where the model is known as a whole and not by its layers."""
    dropped = [draft.facts.pop(key) for key in list(draft.facts) if key.startswith("training.adapter.")]
    if dropped:
        draft.warnings.append(
            f"{dropped[0].where}: the model's layers are not known one by one: only the rank counts"
        )
    method = draft.facts.get("training.method")
    if method is not None and method.value == "qlora":
        draft.facts["training.method"] = replace(method, value="lora")
        draft.facts.pop("training.quantization", None)
        draft.warnings.append(
            f"{method.where}: weights in few bits are modelled for transformers: counted as LoRA"
        )


def _local_model(reading: Reading) -> Path | None:
    """`config.json` of a model that lies in a folder beside the file, or below."""
    folder = reading.path.parent.resolve()
    try:
        file = (folder / reading.hub_name / "config.json").resolve()
        return file if file.is_relative_to(folder) and file.parent != folder and file.is_file() else None
    except (OSError, ValueError):
        return None


def _use_config(draft: Draft, sized: Reading, named: Reading | None) -> None:
    model: ConfigModel | None = sized.model
    assert model is not None
    draft.encoder = model.encoder
    for key, value in model.values.items():
        source = model.sources.get(key)
        where = f"{sized.path.name}: {source}" if source else f"{sized.path.name}: {model.model_type}"
        if key in ("params", "active_params") and not source:
            where = "counted from the sizes; remove it when you change one"
        draft.facts[f"model.{key}"] = Fact(f"model.{key}", value, where)
    draft.warnings += [f"{sized.path.name}: {doubt}" for doubt in model.doubts]
    draft.notes += [f"{sized.path.name}: {note}" for note in model.notes]
    if model.context_length is not None:
        draft.facts["context"] = Fact("context", model.context_length, f"{sized.path.name}: longest sequence")
    if named is None and sized.hub_name:
        draft.name = _name(sized.hub_name, draft.tools[0])


def _settle_training(draft: Draft, facts: dict[str, Fact], readings: Sequence[Reading]) -> None:
    batch = global_batch(facts, draft.warnings)
    if generates(facts):
        batch = settle_generations(facts, batch)
    written = (*_LENGTHS, "precision", "optimizer", "stack", "attention")
    for key in (f"training.{name}" for name in written):
        if key in facts:
            draft.facts[key] = facts[key]
    draft.facts["training.global_batch"] = batch
    if not _per_sample(draft):
        _settle_sequence(draft, facts)
    if _per_sample(draft) and "model.image_size" in facts:
        draft.facts.setdefault("model.image_size", facts["model.image_size"])
    for key, fact in facts.items():
        if key.startswith(("training.layout.", "training.memory.", "data.")) and key not in draft.facts:
            draft.facts[key] = fact
    if readings and not any(reading.tool != "Hugging Face" for reading in readings):
        draft.notes.append("the files describe the model alone: training is assumed; check every line of it")


def _settle_sequence(draft: Draft, facts: dict[str, Fact]) -> None:
    key = "training.sequence_length"
    if key in facts:
        draft.facts[key] = facts[key]
        return
    context, name = draft.facts.get("context"), draft.facts.get("model.preset")
    preset = find_preset(name.value) if name is not None else None
    longest = context.value if context is not None else preset.sequence_length if preset is not None else None
    # without a vocabulary it denoises: its sequences are the patches of one image or clip
    if longest is not None and preset is not None and not preset.values.get("vocab"):
        draft.facts[key] = Fact(key, longest, "the preset's size of an image or clip", assumed=True)
        return
    where = (
        "the usual length" if longest is None or longest >= _USUAL_LENGTH else "the model's longest sequence"
    )
    draft.facts[key] = Fact(key, min(_USUAL_LENGTH, longest or _USUAL_LENGTH), where, assumed=True)


def _settle_stated(draft: Draft, values: Mapping[str, Any]) -> None:
    """Put in what the user states; a length of training replaces the files' own, and a blank that is given goes."""
    lengths = {f"training.{name}" for name in _LENGTHS}
    if lengths & values.keys():
        draft.facts = {key: fact for key, fact in draft.facts.items() if key not in lengths}
    for key, value in values.items():
        draft.facts[key] = Fact(key, value, "stated on the command line")
    stated = (*values, *(key.rpartition(".")[0] for key in values))
    draft.blanks = [blank for blank in draft.blanks if blank.key not in stated]


def _settle_length(draft: Draft) -> None:
    draft.facts.pop("context", None)
    lengths = [name for name in _LENGTHS if f"training.{name}" in draft.facts]
    if not lengths:
        if _per_sample(draft):
            draft.blanks.append(
                Blank("training.samples", "1e6", "how many samples are trained on, repeats counted")
            )
        else:
            draft.blanks.append(Blank("training.tokens", "1e9", "how many tokens are trained on"))
    elif lengths == ["epochs"] and not any(key.startswith("data.") for key in draft.facts):
        prompts = any(blank.key == "training.rollouts" for blank in draft.blanks)
        text = f"{'prompts' if prompts else 'samples'} in the training set, for the epochs"
        draft.blanks.append(Blank("data.samples", "50_000", text))


def _settle_constraints(draft: Draft) -> None:
    if "constraints.deadline" not in draft.facts:
        draft.blanks.append(
            Blank("constraints.deadline", "7d", "by when it must be done (none: cheapest at any time)")
        )


def _stem(path: Path) -> str:
    """What a file is called after: `config.json` after its folder."""
    stem = path.stem.removesuffix(".config")
    return stem if stem != "config" else path.resolve().parent.name


def _name(text: str, tool: str) -> str:
    word = text.rstrip("/").rsplit("/", 1)[-1].lower()
    cleaned = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in word).strip("-.")
    return (cleaned or tool.lower())[:80]
