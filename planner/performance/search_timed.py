"""Times of layouts on devices: training in chunks, then generation of those that may be the fastest of their cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import Grid
from planner.performance.post_training.reinforcement import Generations, with_rollouts
from planner.performance.search_job import Job, Layer, generations_on, training_step_of
from planner.performance.step import Step
from planner.records import record

_CHUNK = 8192
# Bounds are compared with this much to spare, for rounding only.
ROUNDING = 1.0 - 1e-9


@record(frozen=True, eq=False)
class Pairs:
    """Layouts that fit on devices: device row, row of the grid, recompute level; by device, then by row."""

    device: Ints
    row: Ints
    level: Ints

    def take(self, index: Ints | Bools) -> Pairs:
        """Return pairs `index`."""
        return Pairs(self.device[index], self.row[index], self.level[index])

    def layout(self, grid: Grid) -> Layouts:
        """The layouts of the pairs."""
        return replace(
            grid.layout.take(self.row), hardware=self.device, recompute=self.level.astype(np.float64)
        )


@record(frozen=True, eq=False)
class Probes:
    """Layers of the whole model, timed for the bounds; layouts of a kind and recompute level on a device share one.

    Attributes:
        layer: of each probe; None for mixtures of experts, whose traffic also depends on the replicas.
        at: the probe of each device row and 3 x kind + recompute level; number: of all.
        generations: what the clusters generate, None where nothing is.
    """

    layer: Layer | None
    at: Ints
    number: int
    generations: Generations | None = None

    def of(self, grid: Grid, pairs: Pairs) -> Layer | None:
        """The layers of pairs."""
        if self.layer is None:
            return None
        return self.layer.take(self.at[pairs.device, 3 * grid.kind[pairs.row] + pairs.level])


def train(job: Job, grid: Grid, pairs: Pairs, probes: Probes | None) -> list[Step]:
    """Steps of training, in chunks so that memory stays small."""
    parts = [pairs.take(part) for part in chunks(len(pairs.row))]
    return [
        training_step_of(job, part.layout(grid), None if probes is None else probes.of(grid, part))
        for part in parts
    ]


def most_s(
    job: Job,
    grid: Grid,
    pairs: Pairs,
    steps: list[Step],
    generations: Generations | None,
    cell: Ints,
    *,
    complete: bool,
) -> Floats:
    """The longest that training may take for a layout to be the fastest of its cell, s, by number of the cell.

    Steps grow with the time of training: the pair that trains fastest bounds them.

    Args:
        job: the job.
        grid: the layouts.
        pairs: layouts on devices.
        steps: of training, of these.
        generations: what the clusters generate, None where nothing is.
        cell: of each pair; those of one cell stand together.
        complete: no other layout of the cell trains faster than the pairs.
    """
    trained, rollouts = totals(steps), job.training.tuning.rollouts
    fastest = first_least(trained, cell)
    most = trained[fastest]
    if rollouts is not None:
        layout = pairs.take(fastest).layout(grid)
        ends = with_rollouts(rollouts, generations, layout, steps_at(steps, fastest), job.constants).total
        if generations is None:
            most = ends / job.constants["rollouts.training_ratio"] / ROUNDING
        else:
            rows = generations.rows(layout.hardware, layout.nodes)
            most = generations.train_s(rows, ends, most if complete else None)
    of_cell = np.full(int(cell.max(initial=0)) + 1, np.inf)
    of_cell[cell[fastest]] = most
    return of_cell


def generate(
    job: Job, grid: Grid, pairs: Pairs, steps: list[Step], probes: Probes | None, shape: tuple[int, ...]
) -> tuple[Pairs, list[Step]]:
    """Steps with generation, of the pairs that may be the fastest of their cell; all pairs without probes."""
    rollouts = job.training.tuning.rollouts
    if rollouts is None or not steps:
        return pairs, steps
    kept = np.arange(len(pairs.row))
    if probes is not None and probes.generations is not None:
        cell = pairs.device * shape[1] + grid.at[pairs.row]
        hopeful = (
            totals(steps) <= most_s(job, grid, pairs, steps, probes.generations, cell, complete=True)[cell]
        )
        hopeful[changes(cell)] = True  # of steps that never end the first is taken
        kept = np.flatnonzero(hopeful)
    few = pairs.take(kept)
    generations = (
        generations_on(job, few.device, grid.layout.nodes[few.row]) if probes is None else probes.generations
    )
    done = [
        with_rollouts(
            rollouts, generations, few.take(part).layout(grid), steps_at(steps, kept[part]), job.constants
        )
        for part in chunks(len(kept))
    ]
    return few, done


def steps_at(steps: list[Step], at: Ints) -> Step:
    """The steps of some pairs, ascending."""
    edges = np.searchsorted(at, np.arange(1, len(steps)) * _CHUNK)
    parts = [
        step.take(some % _CHUNK) for step, some in zip(steps, np.split(at, edges), strict=True) if len(some)
    ]
    return Step.join(parts or [steps[0].take(at)])


def totals(steps: list[Step]) -> Floats:
    """Step times in s."""
    return np.concatenate([np.zeros(0), *(step.total for step in steps)])


def chunks(size: int) -> list[Ints]:
    """Positions of so many pairs, some at a time."""
    return [np.arange(start, min(start + _CHUNK, size)) for start in range(0, size, _CHUNK)]


def first_least(value: Floats, cell: Ints) -> Ints:
    """Per cell the position of the first least value; rows of one cell stand together."""
    return first_least_between(value, changes(cell))


def first_least_between(value: Floats, heads: Ints) -> Ints:
    """The position of the first least value from each head to the next; NaN is none."""
    if not len(heads):
        return heads
    sizes = np.diff(np.append(heads, len(value)))
    reached = np.flatnonzero(value == np.repeat(np.fmin.reduceat(value, heads), sizes))
    return reached[changes(np.searchsorted(heads, reached, side="right"))]


def changes(values: Ints) -> Ints:
    """Positions of values that differ from the one before, the first among them."""
    new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return np.flatnonzero(new)
