"""OpenCLIP, the scripts of timm and torchvision, Ultralytics YOLO: what is read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from planner.errors import InputError
from tests.planner.trainer_files.fixtures_of_trainers import OPENCLIP, TIMM, ULTRALYTICS
from tests.planner.trainer_files.test_tuners import draft, read


def test_openclip(tmp_path: Path) -> None:
    found = draft(tmp_path, OPENCLIP, "run.sh")
    assert found["model.preset"] == "clip-vit-b-16"
    assert found["training.global_batch"] == 512 * 2 * 4
    assert (found["training.epochs"], found["data.samples"]) == (30, 2905954)
    assert (found["training.objective"], found["training.contrastive.width"]) == ("contrastive", 512)
    assert found["training.contrastive.logits"] == "rows"
    assert (found["training.precision"], found["training.layout.recompute"]) == ("bf16", "full")


def test_openclip_without_its_local_loss_holds_the_whole_matrix(tmp_path: Path) -> None:
    found = read(tmp_path, OPENCLIP.replace("--local-loss ", ""), "run.sh").facts[
        "training.contrastive.logits"
    ]
    assert (found.value, found.assumed) == ("full", True)


def test_siglip_compares_a_block_at_a_time(tmp_path: Path) -> None:
    found = draft(tmp_path, OPENCLIP.replace("ViT-B-16", "ViT-B-16-SigLIP"), "run.sh")
    assert (found["model.preset"], found["training.contrastive.logits"]) == ("siglip-base", "chunks")
    assert found["training.contrastive.width"] == 768


def test_timm(tmp_path: Path) -> None:
    found = draft(tmp_path, TIMM, "run.sh")
    assert (found["model.preset"], found["model.image_size"]) == ("vit-small", 384)
    assert found["training.global_batch"] == 128 * 2 * 8
    assert (found["training.epochs"], found["training.precision"]) == (300, "bf16")
    assert found["training.optimizer"] == "adamw"


@pytest.mark.parametrize(
    ("model", "preset"),
    [
        ("resnet50", "resnet-50"), ("vit_b_16", "vit-base"), ("convnext_tiny", "convnext-tiny"),
        ("swin_t", "swin-tiny"),
        ("efficientnet_b0", "efficientnet-b0"), ("resnet50.a1_in1k", "resnet-50"),
    ],
)  # fmt: skip
def test_torchvision(model: str, preset: str, tmp_path: Path) -> None:
    text = f"torchrun --nproc_per_node=8 train.py --model {model} --batch-size 128 --lr-scheduler steplr --epochs 600"
    found = draft(tmp_path, text, "run.sh")
    assert (found["model.preset"], found["training.global_batch"]) == (preset, 1024)
    assert found["training.precision"] == "fp32"


def test_a_detector_says_what_to_give_instead(tmp_path: Path) -> None:
    text = (
        "torchrun --nproc_per_node=8 train.py --dataset coco --model fasterrcnn_resnet50_fpn --lr-steps 16 22"
    )
    with pytest.raises(InputError, match=r"detection: .*; instead: family cnn"):
        read(tmp_path, text, "run.sh")


SCRIPT = """
from ultralytics import YOLO
model = YOLO("yolo11m.pt")
model.train(data="coco.yaml", epochs=300, batch=64, imgsz=1280, device=[0, 1, 2, 3])
"""
COMMAND = "yolo detect train data=coco.yaml model=yolo11m.pt epochs=300 imgsz=1280 batch=64 device=0,1,2,3\n"


@pytest.mark.parametrize(
    ("text", "name"), [(ULTRALYTICS, "args.yaml"), (SCRIPT, "train.py"), (COMMAND, "run.sh")]
)
def test_a_run_of_yolo_in_its_three_forms(text: str, name: str, tmp_path: Path) -> None:
    found = draft(tmp_path, text, name)
    assert (found["model.params"], found["model.image_size"]) == (20_100_000, 1280)
    assert found["model.forward_flops_per_sample"] == pytest.approx(4 * 68.0e9)  # published at 640 pixels
    assert (found["training.global_batch"], found["training.epochs"]) == (64, 300)
    assert found["training.precision"] == "fp16"


def test_yolo_that_only_predicts_trains_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mode predict: it trains nothing"):
        read(tmp_path, COMMAND.replace("train", "predict"), "run.sh")


def test_a_detector_whose_sizes_are_not_published_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model 'yolo11m-seg' is not a preset.*detection"):
        read(tmp_path, ULTRALYTICS.replace("yolo11m", "yolo11m-seg"), "args.yaml")


@pytest.mark.parametrize(
    "text", ["yolo " * 200_000, "yolo train " * 90_000, "a=" * 500_000 + "yolo train model="]
)
def test_long_lines_are_read_in_time(text: str, tmp_path: Path) -> None:
    begin = time.process_time()
    with pytest.raises(InputError, match=r"run\.sh"):
        read(tmp_path, text, "run.sh")
    assert time.process_time() - begin < 5
