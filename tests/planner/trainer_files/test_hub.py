"""Names of models in public collections, told as presets by name alone."""

from __future__ import annotations

import pytest

from planner.trainer_files.hub import bits_of_hub_name, preset_of_hub_name


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"), ("nvidia/Qwen3-30B-A3B-NVFP4", "qwen3-30b-a3b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b"), ("./models/Qwen3-8B/", "qwen3-8b"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b"), ("Skywork/Skywork-Reward-V2-Qwen3-8B", "qwen3-8b"),
        ("someone/llava-Qwen3-8B", None), ("someone/EAGLE-Llama-3.1-8B", None), ("someone/8x-Llama-3.1-8B", None),
        ("allenai/Llama-3.1-Tulu-3-8B-SFT", "llama-3.1-8b"), ("nvidia/Llama-3.1-Nemotron-51B-Instruct", None),
        ("Qwen/Qwen2.5-Omni-7B", None), ("Qwen/Qwen3-TTS-1.7B", None), ("someone/Llama-Guard-8B", None),
        ("tiiuae/Falcon3-Mamba-7B-Instruct", None), ("tiiuae/Falcon3-7B-Instruct", "falcon-3-7b"),
        ("canopylabs/orpheus-3b-0.1-ft", "orpheus-3b"), ("minitron-4b-width-base", None),
        ("facebook/detr-resnet-50", None), ("amazon/chronos-t5-small", None), ("facebook/sam-vit-base", None),
        ("someone/sam-Qwen3-8B", "qwen3-8b"), ("someone/define-Llama-3.1-8B", "llama-3.1-8b"),
        ("someone/Bark-Llama-3.1-8B", "llama-3.1-8b"), ("someone/Canary-Llama-3.1-8B", "llama-3.1-8b"),
        ("allenai/Olmo-3-32B-Think", "olmo-3-32b"), ("nvidia/Cosmos-Reason2-2B", "qwen3-vl-2b"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "llama-3.2-vision-11b"), ("KAKA22/CodeRM-8B", "llama-3.1-8b"),
        ("nvidia/Minitron-4B-Base", "minitron-4b"), ("Qwen/Qwen1.5-MoE-A2.7B-Chat", "qwen1.5-moe-a2.7b"),
        ("facebook/dinov3-vitl16-pretrain-lvd1689m", "dinov3-vitl16"), ("LiquidAI/LFM2-8B-A1B", "lfm2-8b-a1b"),
        ("Open-Orca/Mistral-7B-OpenOrca", "mistral-7b"), ("tiiuae/Falcon-H1-1.5B-Base", None),
        ("OpenGVLab/InternVL3_5-8B-HF", "internvl3.5-8b"), ("google/gemma-3n-E4B-it", "gemma-3n-e4b"),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "multilingual-minilm-l12"),
        ("someone/tuned-multilingual-MiniLM-L6", None),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", "gte-multilingual-base"),  # built on it, not on BERT as before
        ("openai/clip-vit-large-patch14-336", None), ("facebook/convnext-base-384", None),  # larger images
        ("princeton-nlp/Llama-3-Instruct-8B-SimPO", "llama-3-8b"), ("someone/Qwen3_8B_openED", "qwen3-8b"),
        ("bartowski/Llama-3.2-3B-Instruct-Q4_K_M", "llama-3.2-3b"), ("AITeamVN/GRPO-VI-Qwen2-7B-RAG", "qwen2.5-7b"),
        # cut, tiny or another network, whatever it is called after
        ("someone/Llama-3.1-8B-pruned-5B", None), ("someone/Qwen3-32B-toy-256D-3L-8H", None),
        ("someone/Llama-3.1-8B-Instruct-Medusa", None), ("someone/Mixtral-8x7B-v0.1-REAP", None),
        ("google/gemma-4-31B-it-assistant", None), ("z-lab/Qwen3-8B-DFlash-b16", None),  # guess the next words of it
        ("ibm-granite/granite-3.1-8b-instruct-accelerator", None), ("vicgalle/Mistral-7B-OpenAssistant", "mistral-7b"),
        ("IQuestLab/IQuest-Coder-V1-40B-Loop-Instruct", None), ("BAAI/Bunny-v1_1-Llama-3-8B-V", None),
        ("Efficient-Large-Model/Llama-3-VILA1.5-8B", None), ("Wan-AI/Wan2.1-VACE-1.3B", None),
        ("Salesforce/instructblip-vicuna-7b", None),
        ("nvidia/Mistral-NeMo-custom-9B", None), ("someone/Llama-3.1-8B-and-Qwen3-4B-merge", None),
        ("", None), ("-", None),
    ],
)  # fmt: skip
def test_preset_of_a_name(name: str, preset: str | None) -> None:
    found = preset_of_hub_name(name)
    assert (found.name if found is not None else None) == preset


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("Qwen3-8B-AWQ", 4), ("Qwen3-8B-GPTQ-Int8", 8), ("Qwen3-8B-GPTQ-Int4", 4), ("x-unsloth-bnb-4bit", 4),
        ("Qwen3-8B", None), ("Llama-3-8B-Instruct-AQLM-2Bit-1x16", 4), ("model-8bit", 8), ("AWQards-7B", None),
        ("nvidia/Qwen3-30B-A3B-NVFP4", 4), ("x-w8a8", 8),
    ],
)  # fmt: skip
def test_bits_that_a_name_tells(name: str, bits: int | None) -> None:
    assert bits_of_hub_name(name) == bits
