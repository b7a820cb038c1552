"""Post-training rows predicted without their group: every constant is fitted on the other groups' rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.post_training import Prediction, predict
from benchmarks.post_training_fit import fit, kind_of, using
from benchmarks.post_training_rows import Row


def _model(row: Row) -> str:
    model = row.loaded.workload.model
    assert model is not None
    return str(model.preset)


def _publisher(row: Row) -> str:
    return row.source


def _machine(row: Row) -> str:
    return f"{row.source} on {row.device['accelerator']}"


def _model_on_machine(row: Row) -> str:
    return f"{_machine(row)}, {_model(row)}"


def _adapter(row: Row) -> str:
    return f"{_model_on_machine(row)}, {kind_of(row) or 'all weights'}"


# Which rows are left out together; later ones leave out less.
SPLITS: dict[str, Callable[[Row], str]] = {
    "publisher": _publisher,
    "publisher and accelerator": _machine,
    "publisher, accelerator and model": _model_on_machine,
    "publisher, accelerator, model and kind of adapter": _adapter,
}


def left_out(rows: Sequence[Row], group: Callable[[Row], str]) -> list[Prediction]:
    """Predict each row with constants fitted on the rows of other groups; reinforcement learning is fitted apart."""
    labels = [group(row) for row in rows]
    found: dict[int, Prediction] = {}
    for label in sorted(set(labels)):
        rest = [row for row, own in zip(rows, labels, strict=True) if own != label]
        with using(fit(rest)) as constants:
            for position, own in enumerate(labels):
                if own == label:
                    found[position] = predict(rows[position], constants)
    return [found[position] for position in range(len(rows))]
