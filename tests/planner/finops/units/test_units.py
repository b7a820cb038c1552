"""Unit costs from the bill itself: tokens, requests, images, virtual currencies, GPU-hours by accelerator."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.finops.review.model import Review
from planner.finops.units.names import accelerator, count_unit, direction, model_name
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, review_of, rows_of, section, write_bill

DAY = date(2026, 10, 1)


@pytest.mark.parametrize(
    ("unit", "kind", "size"),
    [
        ("Tokens", "tokens", 1),
        ("1K tokens", "tokens", 1e3),
        ("1,000 Tokens", "tokens", 1e3),
        ("1M input tokens", "tokens", 1e6),
        ("Million tokens", "tokens", 1e6),
        ("K tokens", "tokens", 1e3),
        ("1000 Requests", "requests", 1e3),
        ("10K Calls", "requests", 1e4),
        ("images", "images", 1),
        ("1M Characters", "characters", 1e6),
        ("Queries", "requests", 1),
    ],
)
def test_units_of_work(unit: str, kind: str, size: float) -> None:
    found = count_unit(unit, is_ai=True)
    assert found is not None and (found.kind, found.size) == (kind, size)


@pytest.mark.parametrize(
    "unit", ["Hours", "GB", "token-hours", "messages", "", "1", "1M", "GB-Month", "image GB"]
)
def test_other_units_count_no_work(unit: str) -> None:
    assert count_unit(unit, is_ai=True) is None


def test_requests_of_other_services_are_no_ai_work() -> None:
    assert count_unit("Requests", is_ai=False) is None
    assert count_unit("Tokens", is_ai=False) is not None


@given(st.text(max_size=40))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    count_unit(text, is_ai=True)
    model_name(text)
    direction(text)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Claude 3.5 Sonnet input tokens", "claude-3.5-sonnet"),
        ("USE1-anthropic.claude-sonnet-4-5-input", "claude-sonnet-4-5"),
        ("gpt-4o-mini Outp glbl Tokens", "gpt-4o-mini"),
        ("gpt 4o 0806 Batch Inp", "gpt-4o-0806"),
        ("Gemini 2.5 Flash GA Text Input", "gemini-2.5-flash"),
        ("Gemini 2.5 Pro Text Output - Predictions", "gemini-2.5-pro"),
        ("amazon.titan-embed-text-v2 input tokens", "titan-embed-text-v2"),
        ("Llama3.1 70B Instruct", "llama3.1-70b-instruct"),
        ("text-embedding-3-large tokens", "text-embedding-3-large"),
        ("Amazon Nova Pro input", "nova-pro"),
        ("innovation support", ""),
        ("Standard storage", ""),
    ],
)
def test_model_names(words: str, name: str) -> None:
    assert model_name(words) == name


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("Claude input tokens", "input"),
        ("gpt-4o Outp Tokens", "output"),
        ("Cached input tokens", "cached input"),
        ("USE1-claude-cache-write-input-token-count", "cache write"),
        ("cache_creation_input_tokens", "cache write"),
        ("cached_input_tokens", "cached input"),
        ("InputTokenCount", "input"),
        ("input and output", ""),
    ],
)
def test_directions(words: str, way: str) -> None:
    assert direction(words) == way


@pytest.mark.parametrize(
    ("asked", "chip"),
    [
        (("AWS", "p5.48xlarge"), "h100-80gb-sxm"),
        (("Amazon Web Services", "p4d.24xlarge"), "a100-40gb-sxm"),
        (("Google Cloud", "a3-highgpu-8g", "Nvidia H100 80GB GPU running in Iowa"), "h100-80gb-sxm"),
        (("CoreWeave", "", "NVIDIA L40S"), "l40s"),
        (("AWS", "ml.p4d.24xlarge"), "a100-40gb-sxm"),  # SageMaker
        (("AWS", "g6.12xlarge"), "l4-24gb-pcie"),  # no pattern names it, the catalog has the type
        (("AWS", "aws-gpu-8"), ""),
        (("Microsoft", "Standard_ND96isr_H100_v5"), "h100-80gb-sxm"),
        (("Vast", "", "2x RTX4090 or H100 per h"), "rtx4090"),  # of several the longest name
        (("Vast", "", "GPU machine, price per h"), ""),  # an hour, not the vendor's "H 96GB"
    ],
)
def test_accelerators(asked: tuple[str, ...], chip: str) -> None:
    assert accelerator(*asked) == chip


def ai(cost: float, unit: str, quantity: float, meter: str, **more: Any) -> dict[str, str]:
    return charge(
        DAY,
        cost,
        ServiceCategory="AI and Machine Learning",
        ServiceName="Bedrock",
        SkuMeter=meter,
        SkuId=meter,
        ConsumedUnit=unit,
        ConsumedQuantity=quantity,
        PricingUnit=unit,
        PricingQuantity=quantity,
        **more,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Review:
    rows = [
        ai(30, "1K tokens", 10_000, "claude-sonnet-4-5 input"),
        ai(60, "Tokens", 4e6, "claude-sonnet-4-5 output"),
        ai(8, "Images", 200, "Stable-Diffusion 3"),
        ai(5, "1000 Requests", 50, "guard"),
        ai(40, "Hours", 2, "Endpoint"),
        charge(
            DAY, 7, ServiceName="S3", ServiceCategory="Storage", ConsumedUnit="Requests", ConsumedQuantity=1e6
        ),
        charge(
            DAY,
            20,
            ProviderName="ACME",
            ServiceName="Notebook",
            PricingCurrency="DBU",
            PricingCurrencyEffectiveCost=40,
        ),
        charge(DAY, 960, PricingQuantity=24, SkuPriceDetails='{"GpuCount":8,"InstanceType":"p5.48xlarge"}'),
        charge(DAY, 48, PricingQuantity=24, SkuPriceDetails='{"GpuCount":1,"InstanceType":"box"}'),
    ]
    return review_of(write_bill(tmp_path_factory.mktemp("b") / "bill.csv", rows), only=("units",))


def test_work_is_counted_by_model(made: Review) -> None:
    rows = {
        (row["model"], row["direction"], row["kind"]): row for row in rows_of(made, "units", "units_models")
    }
    sonnet = rows["claude-sonnet-4-5", "input", "tokens"]
    assert (sonnet["quantity"], sonnet["price"], sonnet["per"]) == (1e7, pytest.approx(3), "per 1M tokens")
    assert rows["claude-sonnet-4-5", "output", "tokens"]["price"] == pytest.approx(15)
    assert rows["stable-diffusion-3", "", "images"]["price"] == pytest.approx(0.04)
    assert rows["(model not named)", "", "requests"]["price"] == pytest.approx(0.1)
    assert len(rows) == 4  # requests of a bucket are no work of a model
    found = figures(made)
    assert found["units_million_tokens_money"].value == pytest.approx(90 / 14)
    assert found["units_ai_money"].value == pytest.approx(143)
    assert "AI services for 40.00 USD are charged in units that count no work" in " ".join(
        section(made, "units").sentences
    )


def test_hours_by_accelerator(made: Review) -> None:
    rows = {row["accelerator"]: row for row in rows_of(made, "units", "units_gpus")}
    assert rows["h100-80gb-sxm"]["price"] == pytest.approx(5)
    assert rows["(not known)"]["price"] == pytest.approx(2)
    assert "The accelerator of 4.8 % of GPU cost is not named" in " ".join(section(made, "units").sentences)


def test_virtual_currencies(made: Review) -> None:
    (row,) = rows_of(made, "units", "units_credits")
    assert (row["provider"], row["currency"], row["used"], row["price"]) == (
        "ACME",
        "DBU",
        40,
        pytest.approx(0.5),
    )


def test_a_bill_without_ai_has_no_section(tmp_path: Path) -> None:
    made = review_of(write_bill(tmp_path / "b.csv", [charge(DAY, 5)]))
    assert "units" not in {one.key for one in made.sections}


def test_runs_of_the_planners_own_tag(tmp_path: Path) -> None:
    """Plans are exported with the tag planner_run_id: it names runs, else run_id does; one asked for is taken alone."""
    tags = ('{"team":"ml","planner_run_id":"run-7"}', '{"team":"ml","run_id":"run-8"}')
    rows = [charge(DAY, 50, Tags=tag, SkuPriceDetails='{"GpuCount":1}') for tag in tags]
    both, usual = write_bill(tmp_path / "b.csv", rows), write_bill(tmp_path / "c.csv", rows[1:])

    def runs(made: Review) -> list[str]:
        return [row["run_id"] for row in rows_of(made, "gpu", "gpu_runs")]

    made = review_of(both, only=("gpu",))
    assert (runs(made), runs(review_of(usual, only=("gpu",)))) == (["run-7"], ["run-8"])
    (table,) = (one for one in section(made, "gpu").tables if one.key == "gpu_runs")
    assert (
        table.note == "Runs are identified by the tag planner_run_id; --run-tag run_id shows those of run_id."
    )
    assert runs(review_of(both, only=("gpu",), run_tag="run_id")) == ["run-8"]
    assert runs(review_of(usual, only=("gpu",), run_tag="planner_run_id")) == []
