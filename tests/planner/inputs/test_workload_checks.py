"""Rules that join fields: each says where, what and how to mend it; near misses stay valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.inputs.load import parse_workload, validate

HEAD = "version: 1\nname: t\n"
LLAMA = "model: {preset: llama-3-8b}\n"
RESNET = "model: {preset: resnet-50}\n"
TOKENS = "training: {tokens: 1e9, global_batch: 64}\n"
PINNED = "training: {tokens: 1, global_batch: 1, layout: "
OWN = "family: transformer, layers: 2, hidden: 64, heads: 4, vocab: 100"


def outcome(text: str) -> str:
    try:
        parse_workload(HEAD + text, Path("w.yaml"))
    except InputError as error:
        return "\n".join(line for line in str(error).splitlines() if line.startswith("w.yaml"))
    return "valid"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'model' is missing: name a preset"),
        ("", "'training' is missing: say how long"),
        (LLAMA, "'training' is missing"),
        (TOKENS, "'model' is missing"),
        ("model: {}\n" + TOKENS, "model: needs 'preset', 'config', or 'family' with explicit sizes"),
        ("model: {preset: gpt3-174b}\n" + TOKENS, "did you mean 'gpt-3-175b'?"),
        ("model: {family: transformer, layers: 2}\n" + TOKENS, "needs 'hidden', 'heads', 'vocab'"),
        ("model: {family: cnn}\n" + TOKENS, "needs 'params', 'forward_flops_per_sample'"),
        (
            "model: {preset: DLRM-v2}\n",
            "cannot be modelled as a preset. DLRM: its time is embedding look-ups",
        ),
        (
            "model: {family: transformer, layers: 2, hidden: 64, heads: 5, vocab: 9}\n",
            "5 heads do not divide",
        ),
        (f"model: {{{OWN}, kv_heads: 3}}\n", "must divide the 4 heads"),
        (f"model: {{{OWN}, experts: 4}}\n", "needs 'experts_per_token'"),
        (f"model: {{{OWN}, experts: 4, experts_per_token: 5}}\n", "is more than the 4 experts"),
        (f"model: {{{OWN}, dense_layers: 3}}\n", "is more than the 2 layers"),
        (f"model: {{{OWN}, params: 100, active_params: 200}}\n", "is more than the 100 parameters"),
        (f"model: {{{OWN}}}\n" + TOKENS, "training: needs sequence_length"),
        (RESNET + TOKENS, "family 'cnn' has no tokens"),
        (RESNET + "training: {samples: 1, global_batch: 1, sequence_length: 5}\n", "has no sequences"),
        (
            "model: {preset: whisper-small}\ntraining: {samples: 1, global_batch: 1, sequence_length: 5}\n",
            "sequence_length: a sample of whisper-small is 30 s of sound and 448 tokens of text: remove it",
        ),
        ("model: {preset: whisper-small}\n" + TOKENS, "448 tokens of text: give samples, epochs or steps"),
        (
            RESNET + "training: {samples: 1, global_batch: 1, method: qlora}\n",
            "qlora is modelled for transformers",
        ),
        ("model: {preset: resnet-50, vocab: 5}\n", "family 'cnn' does not use it"),
        ("model: {preset: llama-3-8b, image_size: 5}\n", "family 'transformer' does not use it"),
        ("model: {preset: llama-3-8b, stepwise_gelu: true}\n", "a gated MLP does not use it"),
        (LLAMA + "training: {global_batch: 64}\n", "needs one of tokens, samples, epochs, steps"),
        (LLAMA + "training: {tokens: 1, steps: 1, global_batch: 64}\n", "only one of tokens"),
        (
            LLAMA + "training: {steps: 100}\n",
            "'global_batch' is missing: samples (sequences) per optimizer step",
        ),
        (LLAMA + "training: {tokens: 1, global_batch: 1, lora_rank: 8}\n", "has no effect with method full"),
        (
            LLAMA + "training: {tokens: 1, global_batch: 1, layout: {micro_batch: 2}}\n",
            "is more than the global batch",
        ),
        (
            LLAMA + "" + PINNED + "{tensor_parallel: 5}}\n",
            "does not divide the model's 32 heads",
        ),
        (
            LLAMA + "training: {tokens: 1, global_batch: 1, layout: {pipeline_parallel: 64}}\n",
            "model's 32 layers",
        ),
        (LLAMA + "training: {tokens: 1, global_batch: 1, layout: manual}\n", "training.layout: must be auto"),
        (LLAMA + "training: {epochs: 1, global_batch: 1}\n", "or data.tokens"),
        (RESNET + "training: {epochs: 1, global_batch: 1}\ndata: {tokens: 5}\n", "give data.samples"),
        (
            RESNET + "training: {epochs: 1, global_batch: 1}\ndata: {size: 1GB}\n",
            "data.size with data.sample_size",
        ),
        ("data: {size: 1MB, sample_size: 2MB}\n", "is more than the size of the whole set"),
        ("data: {location: us-east-1}\n", "must be provider/region like aws/us-east-1"),
        ("data: {location: a/b/c}\n", "must be provider/region"),
        (
            "data: {location: 's3://bucket/x'}\n",
            "an address goes under run.data, the region of its bucket here",
        ),
        ("task: {type: image_classification}\n", "task: needs data.size"),
        ("task: {type: image_classification}\ndata: {size: 1GB}\n" + LLAMA, "is chosen by 'task'"),
        ("task: {type: image_clasification}\n", "did you mean 'image_classification'?"),
        ("kind: fleet\n", "fleet needs a 'fleet' section"),
        ("fleet: {runs: 2}\n", "needs 'kind: fleet'"),
        ("kind: fleet\nfleet: {max_regions: 2, max_share_per_region: 0.4}\n", "covers only 80% of the work"),
        ("constraints: {min_throughput: {}}\n", "needs exactly one of"),
        ("constraints: {min_throughput: {tokens_per_s: 1, samples_per_s: 1}}\n", "needs exactly one of"),
        (RESNET + "constraints: {min_throughput: {tokens_per_s: 1}}\n", "write samples_per_s"),
        ("constraints: {regions: []}\n", "an empty list allows nothing"),
        ("constraints: {accelerators: {allow: []}}\n", "an empty list allows nothing"),
        (
            "constraints: {purchase_options: [spot], exclude_purchase_options: [spot]}\n",
            "excludes every option",
        ),
        ("start: 2026-12-05\nconstraints: {deadline: 2026-12-04}\n", "is not after start"),
        ("earliest_start: 2026-12-05\nconstraints: {deadline: 2026-12-04}\n", "is not after earliest_start"),
        ("start: 2026-12-05T12:00Z\nconstraints: {deadline: 2026-12-05T11:00Z}\n", "is not after start"),
        ("prices: {overlays: [{change: '-100%'}]}\n", "makes the price zero or less"),
        ("prices: {overlays: [{change: '0.00'}]}\n", "makes the price zero or less"),
        (
            "commitments: [{provider: a, region: r, instance_type: t, purchase_option: spot, nodes: 1}]\n",
            "not a commitment",
        ),
    ],
)
def test_fault(text: str, expected: str) -> None:
    assert expected in outcome(text)


@pytest.mark.parametrize(
    "text",
    [
        LLAMA + TOKENS,
        LLAMA + TOKENS + "start: 2026-12-05\nconstraints: {deadline: 2026-12-05}\n",
        LLAMA + TOKENS + "constraints:\ndata:\nfleet:\n",
        LLAMA + "training: {epochs: 2, global_batch: 1}\ndata: {tokens: 1e6}\n",
        LLAMA + "training: {epochs: 0.5, global_batch: 1}\ndata: {samples: 10}\n",
        RESNET + "training: {epochs: 2, global_batch: 1}\ndata: {size: 1GB, sample_size: 100KB}\n",
        LLAMA + "training: {tokens: 1e9, global_batch: 64, layout: {tensor_parallel: 8, zero_stage: 0}}\n",
        LLAMA + "training: {tokens: 1e9, global_batch: 64, layout: auto, method: lora, lora_rank: 8}\n",
        f"model: {{{OWN}}}\ntraining: {{steps: 10, global_batch: 4, sequence_length: 128}}\n",
        "model: {preset: flux.1-dev, forward_flops_per_sample: 1e12, activations_per_sample: 1e8}\n"
        "training: {samples: 1e6, global_batch: 64}\n",
        "task: {type: text_finetuning, effort: small}\ndata: {size: 3GB}\n",
        "kind: fleet\nfleet: {runs: 4, max_spot_share: 0}\n" + LLAMA + TOKENS,
        LLAMA
        + TOKENS
        + "constraints: {deadline: 72:00:00, budget_usd: '$1,000', regions: ['eu-*', 'gcp/*']}\n",
    ],
)
def test_valid(text: str) -> None:
    assert outcome(text) == "valid"


def test_rules_hold_for_plain_data_too() -> None:
    _, faults = validate(
        {"version": 1, "name": "t", "model": {"preset": "llama-3-8b"}, "training": {"global_batch": 1}}
    )
    assert "needs one of tokens, samples, epochs, steps" in faults[0].message


def test_a_workload_is_frozen() -> None:
    workload = parse_workload(HEAD + LLAMA + TOKENS, Path("w.yaml")).workload
    with pytest.raises(AttributeError, match="read-only"):
        workload.name = "other"  # type: ignore[misc]


def test_a_workload_dumps_to_json_and_reads_back() -> None:
    text = HEAD + LLAMA + TOKENS + "start: 2026-12-01\nconstraints: {deadline: 3d 4h, budget_usd: 0.1}\n"
    workload = parse_workload(text, Path("w.yaml")).workload
    plain = workload.model_dump(mode="json", exclude_unset=True)
    assert plain["constraints"] == {"deadline": "3d 4h", "budget_usd": "0.1"}
    assert validate(plain) == (workload, [])
