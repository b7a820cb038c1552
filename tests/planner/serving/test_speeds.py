"""Speeds of serving fleets that are predicted: laws, the one inference model, and rescaling by a load test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from planner.errors import InputError
from planner.inputs.serving_load import load_serving
from planner.performance.inference.serving import Class, Target, serve, serving_devices
from planner.performance.inference.shapes import estimate_requests
from planner.performance.post_training.spec import Engine, Lengths, Requests, Tuning
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
from planner.serving.answer import ServingAnswer, plan_serving
from planner.serving.speeds import Speed, predict_speeds, speed_doubts
from solvers.problem.options import SolveOptions
from tests.conftest import ROOT
from tests.planner.performance.test_performance import A100, machines

TEXT = """version: 1
kind: serving
name: chat
model: {preset: llama-3.1-8b}
inference: {engine: vllm, engine_year: 2024}
latency: {time_per_token_s: 0.08}
buckets:
  - {name: short, requests_per_s: 10, input_tokens: 100, output_tokens: 100}
  - {name: long, requests_per_s: 1, input_tokens: 2000, output_tokens: 300}
machines:
  - {name: l40s, provider: aws, instance_type: g6e.4xlarge}
  - {name: h100, provider: aws, instance_type: p5.4xlarge}
"""
Speeds = dict[tuple[str, str], Speed]
Ask = Callable[..., Speeds]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
def ask(tmp_path: Path, catalog: Catalog) -> Ask:
    def run(*changes: tuple[str, str]) -> Speeds:
        text = TEXT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "serving.yaml"
        path.write_text(text, encoding="utf-8")
        return {(one.machine, one.bucket): one for one in predict_speeds(load_serving(path), catalog)}

    return run


def test_a_model_may_have_a_name_of_its_own(ask: Ask) -> None:
    named = ask(("{preset: llama-3.1-8b}", "{preset: llama-3.1-8b, name: ours}"))
    assert {key: speed.requests_per_s for key, speed in named.items()} == {
        key: speed.requests_per_s for key, speed in ask().items()
    }


def test_without_limits_the_speed_is_that_of_batch_inference() -> None:
    model = ModelSpec(
        "m", ModelFamily.TRANSFORMER, 8e9, layers=32, hidden=4096, heads=32, kv_heads=8, vocab=128_256
    )
    engine, nodes = Engine("vllm", 2024, tensor_parallel=2), machines(A100)
    lengths = Lengths(900.0, 1800.0, 3600.0), Lengths(250.0, 500.0, 1000.0)
    training = TrainingSpec(1024, 1, "bf16", tuning=Tuning(requests=Requests(*lengths, engine)))
    batch = estimate_requests(model, training, nodes, (1,), None, None)
    devices = serving_devices(nodes, model, engine)
    pinned = np.full(nodes.n_rows, 2.0)
    alone = serve(model, engine, devices, [Class(900.0, 250.0, 1.0)], Target(), np.ones(nodes.n_rows), pinned)
    able = np.asarray(batch["fits"])
    assert able.any()
    assert alone.rate[able, 0] == pytest.approx(batch["samples_per_s"][able])


def test_a_tighter_limit_a_longer_answer_and_more_confidence_never_speed_a_machine_up(ask: Ask) -> None:
    base = ask()
    for change in (
        ("0.08", "0.04"), ("output_tokens: 100", "output_tokens: 140"), ("buckets:", "confidence: 0.97\nbuckets:"),
    ):  # fmt: skip
        slower = ask(change)
        assert all(slower[key].requests_per_s <= base[key].requests_per_s for key in base)
        assert any(slower[key].requests_per_s < base[key].requests_per_s for key in base)
    assert all(one.token_s <= 0.08 for one in base.values())
    assert all(one.low <= one.expected <= one.high for one in base.values())
    # the default confidence is the lower end of the 80 % interval
    assert base["h100", "long"].requests_per_s == pytest.approx(base["h100", "long"].low)


def test_one_measurement_rescales_its_own_machine(ask: Ask) -> None:
    base = ask()
    reached = 1.3 * base["h100", "long"].expected
    tested = ask(("p5.4xlarge}", f"p5.4xlarge, measured: {{long: {reached}}}}}"))
    long, short = tested["h100", "long"], tested["h100", "short"]
    assert (long.basis, long.requests_per_s, long.low) == ("measured", reached, reached)
    assert short.basis == "rescaled" and short.expected > base["h100", "short"].expected
    assert short.token_s <= 0.08
    assert tested["l40s", "short"] == base["l40s", "short"]
    # without a limit of latency a machine that is 1.3 times as fast on one bucket is so on all
    free = ("latency: {time_per_token_s: 0.08}", "latency: {}")
    plain = ask(free)
    reached = 1.3 * plain["h100", "long"].expected
    paced = ask(free, ("p5.4xlarge}", f"p5.4xlarge, measured: {{long: {reached}}}}}"))
    assert paced["h100", "short"].expected == pytest.approx(1.3 * plain["h100", "short"].expected, rel=1e-5)


def test_a_measurement_that_agrees_makes_no_other_bucket_less_sure(ask: Ask) -> None:
    base = ask()
    expected = base["h100", "long"].expected
    agreed = ask(("p5.4xlarge}", f"p5.4xlarge, measured: {{long: {expected}}}}}"))["h100", "short"]
    before = base["h100", "short"]
    assert agreed.basis == "rescaled" and agreed.expected == pytest.approx(before.expected, rel=1e-5)
    assert agreed.low >= before.low * (1 - 1e-5) and agreed.high <= before.high * (1 + 1e-5)
    assert agreed.requests_per_s >= before.requests_per_s * (1 - 1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((), ""),
        ((("input_tokens: 2000", "input_tokens: 90000"),), "70 prompt tokens per token of an answer, more than the 1"),
        ((("input_tokens: 2000", "input_tokens: 90000"), ("2024}", "2024, shared_prefix: true}")), ""),
        (  # load tests of both machines tell how fast they are
            (
                ("input_tokens: 2000", "input_tokens: 90000"),
                ("g6e.4xlarge}", "g6e.4xlarge, measured: {short: 2}}"),
                ("p5.4xlarge}", "p5.4xlarge, measured: {short: 9}}"),
            ),
            "",
        ),
    ],
)  # fmt: skip
def test_prompts_beyond_what_was_measured_are_said_of_predicted_speeds(
    tmp_path: Path, catalog: Catalog, changes: tuple[tuple[str, str], ...], said: str
) -> None:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "serving.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load_serving(path)
    doubts = speed_doubts(loaded.serving, predict_speeds(loaded, catalog))
    assert bool(doubts) == bool(said) and all(said in doubt for doubt in doubts)


def test_given_speeds_stay_as_they_are(ask: Ask) -> None:
    given = ask(("p5.4xlarge}", "p5.4xlarge, requests_per_s: {short: 24}}"))
    assert {machine for machine, _ in given} == {"l40s"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model: {preset: llama-3.1-8b}\n", "", "inference: is of predicted speeds: name the model"),
        ("llama-3.1-8b", "llama-3.1-9b", "did you mean 'llama-3.1-8b'"),
        ("{preset: llama-3.1-8b}", "{preset: bert-large}", "models that generate text"),
        ("engine: vllm", "engine: vlm", "did you mean 'vllm'"),
        (", output_tokens: 100", "", "needs output_tokens: the speed of 'l40s' is predicted"),
        ("instance_type: g6e.4xlarge", "usd_per_hour: 3", "needs provider and instance_type, whose accelerators"),
        ("instance_type: g6e.4xlarge", "instance_type: g6e.5xlarge", "no aws instance type g6e.5xlarge"),
        ("g6e.4xlarge}", "g6e.4xlarge, measured: {shor: 2}}", "no bucket 'shor'"),
        (
            "g6e.4xlarge}",
            "g6e.4xlarge, requests_per_s: {short: 2}, tensor_parallel: 2}",
            "give this machine no requests_per_s",
        ),
    ],
)  # fmt: skip
def test_faults_name_their_place(ask: Ask, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        ask((old, new))
    assert said in str(caught.value) and "serving.yaml:" in str(caught.value)


def test_the_example_is_sized_by_the_counted_speeds() -> None:
    loaded = load_serving(ROOT / "examples" / "serving-llama-8b.yaml")
    answer: ServingAnswer = plan_serving(loaded, SolveOptions(gap=1e-3), on=date(2026, 11, 20))
    speeds = {(one.machine, one.bucket): one.requests_per_s for one in answer.speeds}
    rates = {bucket.name: float(bucket.requests_per_s) for bucket in loaded.serving.buckets}
    for line in answer.lines:
        load = sum(share * rates[name] / speeds[line.name, name] for name, share in line.buckets.items())
        assert load <= 0.85 * line.count * (1 + 1e-6)
