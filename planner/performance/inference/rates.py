"""Prefill, decode and steady rate of one replica; every argument is an array of one row per case.

Formulas (N, A total and active parameters, w bytes per weight, I and O prompt and answer tokens, B sequences at once):
prefill of a request 2 A I + 2 L h I^2 FLOPs at the compute rate; a decode step reads the weights that B sequences touch
and their keys and values (Pope et al. 2022, arXiv 2211.05102); experts touched E (1 - (1 - k / E)^B); a pipeline of p
stages reads its weights once per micro-batch, so that p speeds up keys, values and arithmetic alone. Tensor parallelism
t adds up each layer's outputs twice: 4 (t - 1) / t activations of a token cross the link of every accelerator (ring).
Engines with chunked prefill (Agrawal et al. 2023, arXiv 2308.16369) read prompts in the steps that write answers: such
a step reads the weights once, and is bound by memory or by the arithmetic of all its tokens (`Steps`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

# Share of memory that an engine gives to weights, keys and values (vLLM's gpu_memory_utilization).
MEMORY_SHARE = 0.9
# Keys and values are read with less than the full rate: pages, and heads that share them.
KEY_VALUE_READS = 1.3
# Layers of the models by which the fixed time of a step is stated (7B and 8B).
USUAL_LAYERS = 32.0
_ACTIVATION_BYTES = 2.0


@record(frozen=True)
class Cases:
    """What is asked of a replica; shape `(n,)` each.

    Attributes:
        params, active: parameters in all, and per token; `routed`: those in routed experts.
        layers, hidden: sizes; `experts`, `per_token`: routed experts of a layer and those of a token (0 for dense).
        key_value_bytes: bytes of keys and values per token; `attends`: score work of a prompt over that of heads as
            wide as the layer that attend to all tokens before (windows, hybrids, wider heads).
        windowed: share of the layers that keep the last `window` tokens alone.
        weight_bytes: per parameter, but for those in routed experts, of `expert_bytes`, and in tables (`table_bytes`).
        tables: parameters of the input's table and of the output layer of the vocabulary.
        prompt, answer: tokens of a request; answer 0: prefill alone.
        running: requests at once, inf: as many as fit.
        tp, pp: accelerators that split each layer, and stages.
        peak: FLOP/s of an accelerator at the precision of arithmetic; `memory_rate` bytes/s; `memory`: bytes;
            `link_rate` bytes/s to the others of its group, one direction.
    """

    params: Floats
    active: Floats
    routed: Floats
    layers: Floats
    hidden: Floats
    experts: Floats
    per_token: Floats
    key_value_bytes: Floats
    attends: Floats
    window: Floats
    windowed: Floats
    weight_bytes: Floats
    expert_bytes: Floats
    tables: Floats
    table_bytes: Floats
    prompt: Floats
    answer: Floats
    running: Floats
    tp: Floats
    pp: Floats
    peak: Floats
    memory_rate: Floats
    memory: Floats
    link_rate: Floats

    def take(self, index: Any) -> Cases:
        """Return rows `index`."""
        return Cases(**{field.name: getattr(self, field.name)[index] for field in fields(self)})


@record(frozen=True)
class Efficiency:
    """What an engine reaches on a chip; shape `(n,)` or scalars.

    Attributes:
        compute, bandwidth: shares of peak and memory rate.
        step_s: fixed time of a decode step of 32 layers, which grows by the power `layers_power` of layers;
            `layer_s` more per layer and doubling of tensor parallelism; `expert_layer_s` more per layer with experts.
        tensor_loss: power of tensor parallelism that is lost.
        most_running: requests at once that the engine allows.
        layers_power: launches grow with layers, the work of the host does not: between 1 and 0.
        link: share of the link's rate that sums over tensor-parallel groups reach.
        sequence_s: time of the host for each sequence of a step (scheduling, sampling, text), where nothing hides it.
        launch_s: time in which the host launches the kernels of a layer one by one (eager mode); 0 where steps are
            replayed from CUDA graphs.
        step_tokens: most tokens of prompts in a step that also writes answers; 0 of engines whose steps do one or the
            other.
    """

    compute: Floats
    bandwidth: Floats
    step_s: Floats
    layer_s: float
    expert_layer_s: float
    tensor_loss: float
    most_running: Floats
    layers_power: float
    link: float
    sequence_s: Floats | float = 0.0
    launch_s: Floats | float = 0.0
    step_tokens: Floats | float = 0.0


def cached_bytes(case: Cases, tokens: Floats) -> Floats:
    """Keys and values of a sequence of so many tokens: layers with a window keep no more than its."""
    kept = case.windowed * np.minimum(tokens, case.window) + (1.0 - case.windowed) * tokens
    result: Floats = case.key_value_bytes * kept
    return result


def held_bytes(case: Cases) -> Floats:
    """Keys and values that a sequence takes in memory: those of its mean length and some more."""
    return cached_bytes(case, case.prompt + 0.6 * case.answer)


def room(case: Cases) -> Floats:
    """Sequences whose keys and values fit beside the weights."""
    free = MEMORY_SHARE * case.memory * case.tp * case.pp - all_bytes(case)
    each = np.maximum(held_bytes(case), 1.0)
    return np.maximum(free, 0.0) / each


def sequences(case: Cases, engine: Efficiency) -> Floats:
    """Sequences that run at once, at least one."""
    most = np.minimum(np.minimum(case.running, engine.most_running), np.floor(room(case)))
    result: Floats = np.maximum(most, 1.0)
    return result


def prefill_s(case: Cases, engine: Efficiency) -> Floats:
    """Time to read one prompt, s."""
    flops = case.prompt * _prompt_flops(case)
    split = case.tp ** (1.0 - engine.tensor_loss) * np.where(case.running > 1, case.pp, 1.0)
    # a prompt shorter than the chip's ridge is bound by the weights, as a step of decoding is
    reads = read_bytes(case, np.ones(1)) / (case.tp * case.memory_rate * engine.bandwidth)
    alone = np.where(case.running > 1, 0.0, reads)
    work = np.hypot(flops / (split * case.peak * engine.compute), alone)
    result: Floats = work + case.prompt * sums_s(case, engine)
    return result


def _prompt_flops(case: Cases) -> Floats:
    """FLOPs of a token of a prompt: weights, and its scores."""
    result: Floats = 2.0 * case.active + 2.0 * case.layers * case.hidden * case.prompt * case.attends
    return result


def sums_s(case: Cases, engine: Efficiency) -> Floats:
    """Time that the activations of one token take over the links of a tensor-parallel group, s."""
    moved = 4.0 * (1.0 - 1.0 / case.tp) * case.layers * case.hidden * _ACTIVATION_BYTES
    result: Floats = moved / (case.link_rate * engine.link)
    return result


def fixed_s(case: Cases, engine: Efficiency) -> Floats:
    """Fixed time of a step of decoding: launches, scheduling and sampling, s."""
    result: Floats = engine.step_s * (case.layers / USUAL_LAYERS) ** engine.layers_power
    return result


def all_bytes(case: Cases) -> Floats:
    """Bytes of all weights."""
    others = case.params - case.routed - case.tables
    return others * case.weight_bytes + case.routed * case.expert_bytes + case.tables * case.table_bytes


def read_bytes(case: Cases, number: Floats) -> Floats:
    """Bytes of the weights that `number` sequences touch in one step."""
    experts = np.maximum(case.experts, 1.0)
    share = 1.0 - (1.0 - np.minimum(case.per_token / experts, 1.0)) ** number
    idle = case.routed * np.where(case.experts > 0, 1.0 - share, 0.0)
    result: Floats = all_bytes(case) - idle * case.expert_bytes
    return result


def step_s(
    case: Cases, engine: Efficiency, number: Floats, context: Floats, read: Floats | float = 0.0
) -> Floats:
    """Time of a step that adds one token to each of `number` sequences of `context` tokens, s.

    `read` tokens of prompts go through the same weights.
    """
    split = case.tp ** (1.0 - engine.tensor_loss)
    rate = case.memory_rate * engine.bandwidth
    weights = read_bytes(case, number + read) / (split * rate)
    keys = KEY_VALUE_READS * number * cached_bytes(case, context) / (split * case.pp * rate)
    flops = 2.0 * case.active * number + read * _prompt_flops(case)
    work = flops / (split * case.pp * case.peak * engine.compute)
    fixed = fixed_s(case, engine) + engine.layer_s * case.layers * np.log2(np.maximum(case.tp, 1.0))
    fixed = fixed + np.where(case.experts > 0, engine.expert_layer_s * case.layers, 0.0)
    device = np.hypot(weights + keys, work) + fixed + (number + read) * sums_s(case, engine)
    # the host queues kernels while the device works: the longer of both, smoothly where they are alike
    launched = case.layers * engine.launch_s
    device = np.where(launched > 0.0, (device**4 + launched**4) ** 0.25, device)
    result: Floats = device + number * engine.sequence_s
    return result


def round_s(case: Cases, engine: Efficiency, number: Floats, prompts: Floats | float = 1.0) -> Floats:
    """Time in which `number` requests that run at once are all answered, others taking their places, s.

    Engines of steps that do one or the other read the prompts and then write the answers: both times add up.
    Elsewhere the steps are shared (`Steps`).

    Args:
        case: what is asked; every request is answered.
        engine: what it reaches.
        number: requests at once, at least 1.
        prompts: prompts that are read for an answer: 1, or fewer where answers share them.
    """
    context = case.prompt + 0.5 * case.answer
    apart = number * prompts * prefill_s(case, engine) + case.answer * step_s(case, engine, number, context)
    if not np.any(engine.step_tokens):
        return apart
    steps = mixed_steps(case, engine, number, prompts)
    with_prompts = step_s(case, engine, steps.live, context, steps.read)
    without = step_s(case, engine, steps.live, context)
    mixed = steps.number * (steps.share * with_prompts + (1.0 - steps.share) * without)
    result: Floats = np.where(np.asarray(engine.step_tokens) > 0.0, mixed, apart)
    return result


@record(frozen=True)
class Steps:
    """The steps in which an engine that mixes prompts and answers answers all requests that run at once.

    Each request takes part in the step that reads the end of its prompt, which also writes its first token, and in one
    for each further token. Prompts are read as early as they fit into steps, so that those of a round fill some steps
    and the others only write. Where all of them do not fit into the steps that the answers take, there are more steps,
    in which fewer requests write and the others wait.

    Attributes:
        number: of steps.
        live: requests that write a token in each of them.
        share: of the steps that also read prompts; `read`: tokens of prompts in such a step.
    """

    number: Floats
    live: Floats
    share: Floats
    read: Floats


def mixed_steps(case: Cases, engine: Efficiency, number: Floats, prompts: Floats | float = 1.0) -> Steps:
    """Steps of one round; arguments are those of `round_s`."""
    most = np.maximum(np.asarray(engine.step_tokens), 1.0)
    tokens = number * prompts * case.prompt
    parts = np.where(tokens > 0.0, np.maximum(case.prompt / most, 1.0), 1.0)
    steps = np.maximum(case.answer + parts - 1.0, tokens / most)
    read = np.clip(tokens, np.minimum(case.prompt, most), most)
    return Steps(steps, number * case.answer / steps, tokens / (steps * np.maximum(read, 1.0)), read)


def first_token_s(case: Cases, engine: Efficiency, number: Floats, prompts: Floats | float = 1.0) -> Floats:
    """Time to the first token of a request beside `number` others, s; arguments are those of `round_s`."""
    context = case.prompt + 0.5 * case.answer
    apart = step_s(case, engine, number, context) + np.where(
        np.asarray(prompts) > 0.0, prefill_s(case, engine), 0.0
    )
    if not np.any(engine.step_tokens):
        return apart
    steps = mixed_steps(case, engine, number, prompts)
    reads = np.where(steps.share > 0.0, steps.read, 0.0)
    mixed = (steps.number - case.answer + 1.0) * step_s(case, engine, steps.live, context, reads)
    result: Floats = np.where(np.asarray(engine.step_tokens) > 0.0, mixed, apart)
    return result


def output_rate(case: Cases, engine: Efficiency) -> Floats:
    """Tokens per second of a replica in steady state: answers, or prompts where nothing is answered."""
    number = sequences(case, engine)
    alone = number * prefill_s(case, engine) + fixed_s(case, engine)
    answered = case.answer > 0
    tokens = np.where(answered, case.answer, case.prompt)
    result: Floats = number * tokens / np.where(answered, round_s(case, engine, number), alone)
    return result
