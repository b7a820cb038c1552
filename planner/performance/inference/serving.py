"""Replicas that answer requests as they come: speed within a limit of latency, per machine and size class.

A replica answers B requests at once. In steady state each of their tokens takes its share of a round in which all B are
answered, token_s = round_s(B) / O, prompts of others included, and the replica answers B / (O token_s) requests per
second; both grow with B (`planner.performance.inference.rates` has the formulas), so that the most B within the limits
is best. The first token takes its prompt and a step, without waiting for one of the B places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Table
from planner.performance.constants import Constants, load_constants
from planner.performance.device import Devices, build_devices
from planner.performance.inference.cases import build_cases, efficiency, rate_spread
from planner.performance.inference.rates import first_token_s, room, round_s
from planner.performance.inference.shapes import LEAST_SEQUENCES
from planner.performance.post_training.spec import Engine, Requests, Tuning
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.records import record

DEGREES = (1, 2, 4, 8, 16)
# A load test is compared with paces up to this factor, halved so often on the scale of logs.
WIDEST, HALVINGS = 64.0, 24


@record(frozen=True)
class Class:
    """A size class of requests: mean tokens of prompt and answer, requests per second to be served."""

    prompt: float
    answer: float
    rate: float


@record(frozen=True)
class Target:
    """Most seconds to the first token and per token, infinity for no limit; `shared_prefix`: prompts are read once."""

    first_token_s: float = np.inf
    token_s: float = np.inf
    shared_prefix: bool = False


@record(frozen=True)
class Point:
    """A machine on one class: see `Service`."""

    rate: float
    running: int
    tp: int
    token_s: float
    first_token_s: float


@dataclass(frozen=True, eq=False)
class Service:
    """What a node does of each class alone; shape `(n_machines, n_classes)`.

    Attributes:
        rate: requests per second of the node, 0 where it cannot within the limits.
        running: requests at once on a replica.
        token_s, first_token_s: seconds per token of an answer, and to the first, without a queue.
        tp: accelerators of a replica, shape `(n_machines,)`.
    """

    rate: Floats
    running: Floats
    token_s: Floats
    first_token_s: Floats
    tp: Floats

    def at(self, machine: int, one: int) -> Point:
        """What a machine does of one class; all 0 where it cannot."""
        if not self.rate[machine, one] > 0:
            return Point(0.0, 0, 0, 0.0, 0.0)
        return Point(
            float(self.rate[machine, one]), int(self.running[machine, one]), int(self.tp[machine]),
            float(self.token_s[machine, one]), float(self.first_token_s[machine, one]),
        )  # fmt: skip


def serving_devices(hardware: Table, model: ModelSpec, engine: Engine) -> Devices:
    """Hardware rows as devices that answer with an engine."""
    training = TrainingSpec(1, 1, "bf16", tuning=Tuning(requests=Requests(None, None, engine)))
    return build_devices(hardware, training, model.family.value, load_constants())


def read_ratio(classes: Sequence[Class], target: Target) -> float:
    """Prompt tokens that are read for a token of an answer, of all classes together (`beyond.prompt_ratio`)."""
    read = sum(one.rate * one.prompt for one in classes)
    written = sum(one.rate * one.answer for one in classes)
    return read / written if written > 0.0 and not target.shared_prefix else 0.0


def spread_of(engine: Engine, devices: Devices, classes: Sequence[Class], target: Target) -> Floats:
    """Half width in log of the 80 % interval of the speed on each device row, by prompts and answers of all classes."""
    return rate_spread(engine, devices, load_constants(), ratio=read_ratio(classes, target))


def serve(
    model: ModelSpec,
    engine: Engine,
    devices: Devices,
    classes: Sequence[Class],
    target: Target,
    pace: Floats,
    pinned: Floats,
) -> Service:
    """Speed of every machine on every class, all of a machine's replicas alike.

    Of the tensor-parallel degrees that divide a node the one is taken that serves the most classes, and of these the
    one that needs the fewest nodes for all their requests.

    Args:
        model: sizes of a decoder.
        engine: what answers.
        devices: one row per machine.
        classes: size classes.
        target: limits of latency.
        pace: what each machine reaches of its expected speed, shape `(n_machines,)`.
        pinned: tensor-parallel degree of each machine, NaN leaves it open.
    """
    c, shape = load_constants(), (len(devices.count), len(classes))
    zeros = np.zeros(shape)
    best = Service(zeros, zeros, zeros, zeros, np.zeros(shape[0]))
    served, nodes = np.zeros(shape[0]), np.full(shape[0], np.inf)
    wanted = np.asarray([one.rate for one in classes])
    for degree in sorted({*DEGREES, *pinned[np.isfinite(pinned)].tolist()}):
        tp = np.full(shape[0], float(degree))
        allowed = np.where(np.isnan(pinned), np.isin(tp, DEGREES), pinned == degree)
        allowed = allowed & (devices.count % tp == 0)
        if not allowed.any():
            continue
        services = [_with_degree(model, engine, devices, one, target, pace, tp, c) for one in classes]
        new = _joined(services, allowed, tp)
        able = new.rate > 0
        need = np.where(able, wanted / np.where(able, new.rate, 1.0), 0.0).sum(axis=1)
        number = able.sum(axis=1)
        wins = (number > served) | ((number == served) & (number > 0) & (need < nodes * (1.0 - 1e-9)))
        best = _better(wins, new, best)
        served, nodes = np.where(wins, number, served), np.where(wins, need, nodes)
    return best


def _joined(parts: Sequence[tuple[Floats, ...]], allowed: Bools, tp: Floats) -> Service:
    rate, running, token, first = (np.stack(column, axis=1) for column in zip(*parts, strict=True))
    return Service(np.where(allowed[:, None], rate, 0.0), running, token, first, tp)


def _better(wins: Bools, new: Service, old: Service) -> Service:
    """The machines of `new` where it wins, else those of `old`."""
    row = wins[:, None]
    return Service(
        np.where(row, new.rate, old.rate), np.where(row, new.running, old.running),
        np.where(row, new.token_s, old.token_s), np.where(row, new.first_token_s, old.first_token_s),
        np.where(wins, new.tp, old.tp),
    )  # fmt: skip


def pace_of(
    model: ModelSpec, engine: Engine, devices: Devices, classes: Sequence[Class], target: Target,
    tp: Floats, measured: Floats,
) -> Floats:  # fmt: skip
    """How fast each machine is relative to its expected speed, by what a load test of it reached.

    The speed of a class grows with the pace, by more than in proportion where a limit of latency binds; several
    measured classes count by the geometric mean of their paces.

    Args:
        model: sizes of a decoder.
        engine: what answers.
        devices: one row per machine.
        classes: size classes.
        target: limits of latency.
        tp: tensor-parallel degree of each machine.
        measured: requests per second of a node on each class, NaN where it was not measured,
            shape `(n_machines, n_classes)`.

    Returns:
        Paces, shape `(n_machines,)`; NaN where nothing was measured, or nothing that the model thinks possible.
    """
    low, high = np.full(measured.shape, 1.0 / WIDEST), np.full(measured.shape, WIDEST)
    reached = np.zeros(measured.shape, dtype=np.bool_)
    rate = np.full(measured.shape, np.nan)
    tested: list[int] = np.flatnonzero(np.isfinite(measured).any(axis=0)).tolist()
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        for k in tested:
            rate[:, k] = serve(model, engine, devices, [classes[k]], target, middle[:, k], tp).rate[:, 0]
        enough = rate >= measured
        reached |= enough
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    logs = np.where(reached, np.log(high), np.nan)
    count = reached.sum(axis=1)
    total = np.where(reached, logs, 0.0).sum(axis=1)
    return np.where(count > 0, np.exp(total / np.maximum(count, 1)), np.nan)


def _with_degree(
    model: ModelSpec, engine: Engine, devices: Devices, one: Class, target: Target, pace: Floats, tp: Floats,
    c: Constants,
) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
    """Rate of a node, requests at once, seconds per token and to the first, of one class at one degree."""
    case = build_cases(
        model, engine, devices, prompt=one.prompt, answer=one.answer, running=np.full(tp.shape, np.inf), tp=tp, c=c
    )  # fmt: skip
    able = efficiency(engine, devices, c)
    held = np.nan_to_num(room(case))
    most = np.floor(np.minimum(able.most_running, held))
    prompts = 0.0 if target.shared_prefix else 1.0

    def waits(running: Floats) -> tuple[Floats, Floats]:
        token = round_s(case, able, running, prompts) / case.answer
        return token / pace, first_token_s(case, able, running, prompts) / pace

    def within(running: Floats) -> Bools:
        token, first = waits(running)
        return (token <= target.token_s) & (first <= target.first_token_s)

    low, high = np.ones(tp.shape), np.maximum(most, 1.0)
    fits = (held >= LEAST_SEQUENCES) & within(low)
    while (high > low).any():  # whole numbers: the most that keep the limits
        middle = np.ceil((low + high) / 2.0)
        good = within(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1.0)
    token, first = waits(low)
    rate = np.where(fits, devices.count / tp * low / (case.answer * token), 0.0)
    return np.nan_to_num(rate), low, token, first
