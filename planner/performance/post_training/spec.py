"""Post-training as the performance model sees it: plain values; `planner.performance.spec.TrainingSpec` holds one."""

from __future__ import annotations

from typing import Literal

from planner.records import record

BaseWeights = Literal["half", "int8", "nf4", "nf4_double"]


@record(frozen=True)
class Lengths:
    """Lengths of sequences in tokens: mean, the length 95 % do not exceed, and the longest."""

    mean: float
    p95: float
    longest: float


@record(frozen=True)
class Engine:
    """What generates answers.

    Attributes:
        name: engine, as data/engines.csv writes it; `year` of its release, None for the newest that was measured.
        precision: of weights; `kv_precision` of cached keys and values.
        tensor_parallel: accelerators of one replica, None leaves it to the search.
        most_running: most requests at once on one replica, None for the engine's own limit.
        graphs: steps are replayed from CUDA graphs; else the host launches each kernel (eager mode).
    """

    name: str = "vllm"
    year: int | None = None
    precision: str = "bf16"
    kv_precision: str = "bf16"
    tensor_parallel: int | None = None
    most_running: int | None = None
    graphs: bool = True


@record(frozen=True)
class Rollouts:
    """What one step of reinforcement learning generates and learns from.

    Attributes:
        prompts, answers: lengths.
        samples_per_prompt: answers to each prompt.
        update_batch: answers per optimizer update, None for one update per step.
        epochs: passes over the answers of a step.
        old_logprobs: whether the trainer computes the log-probabilities of the policy that generated.
        engine: what generates.
        colocated: generation takes turns with training on the same accelerators.
        generation_share: share of the accelerators that generate where it does not; None leaves it to the search.
        steps_off_policy: steps by which generation may run ahead.
        in_flight: engines that run ahead take new weights while they generate, so that no update waits for them.
        pool: what the machines do: both, or one of two pools, which `planner.job.pools` pairs.
        paced_s: of a pool: the least time of a step, which the other pool and the weights' way set, s.
    """

    prompts: Lengths
    answers: Lengths
    samples_per_prompt: int = 1
    update_batch: int | None = None
    epochs: int = 1
    old_logprobs: bool = True
    engine: Engine = Engine()
    colocated: bool = True
    generation_share: float | None = None
    steps_off_policy: int = 0
    in_flight: bool = True
    pool: Literal["both", "trainer", "rollouts"] = "both"
    paced_s: float = 0.0


@record(frozen=True)
class Contrastive:
    """A loss over all pairs of the global batch: the `width` of embeddings, and what each accelerator holds of it."""

    width: int
    logits: Literal["rows", "full", "chunks"] = "rows"


@record(frozen=True)
class Requests:
    """Batch inference: nothing is trained. `prompts` and `answers` are None for models that do not generate.

    An item of these takes `passes` forward passes (denoising), and runs at `rate_ratio` of their rate (transcripts).
    `count` requests are answered in all; None: without end.
    """

    prompts: Lengths | None
    answers: Lengths | None
    engine: Engine = Engine()
    shared_prefix: bool = False
    passes: float = 1.0
    rate_ratio: float = 1.0
    count: int | None = None


@record(frozen=True)
class Tuning:
    """Post-training of a job.

    Attributes:
        objective: name; `sequences` of them make a sample.
        adapter: kind of the adapters, None where all weights learn; `targets` the adapted matrices.
        base: how frozen weights are kept.
        lengths: lengths of sequences, None where all are as long as `TrainingSpec.sequence_length`; `packed`: several
            fill one of that length; `grouped`: those of like length share a batch.
        reference: none, resident, precomputed or adapters_off, or copied: resident, its passes counted elsewhere;
            `mismatched` answers to each prompt that learner and reference read beside a sample, not to learn;
            `critic`: a model of the same size learns values.
        teacher_params, teacher_active_params: of distillation.
        rollouts: of reinforcement learning; `requests`: of batch inference; `contrastive`: of pairs.
    """

    objective: str = "pretrain"
    sequences: int = 1
    adapter: str | None = None
    targets: tuple[str, ...] = ("attention",)
    base: BaseWeights = "half"
    lengths: Lengths | None = None
    packed: bool = True
    grouped: bool = False
    reference: Literal["none", "resident", "precomputed", "adapters_off", "copied"] = "none"
    mismatched: int = 0
    critic: bool = False
    teacher_params: float | None = None
    teacher_active_params: float | None = None
    rollouts: Rollouts | None = None
    requests: Requests | None = None
    contrastive: Contrastive | None = None

    @property
    def is_tuning(self) -> bool:
        """Whether it is post-training: contrastive towers are trained from scratch, as models are pre-trained.

        Adapters on a frozen model are, whatever is optimised: the same loops train them.
        """
        return self.adapter is not None or self.objective not in ("pretrain", "contrastive")

    @property
    def generates(self) -> Requests | Rollouts | None:
        """What an engine answers: requests, or the prompts of a step; None where nothing is generated."""
        return self.requests or self.rollouts

    @property
    def spread(self) -> Lengths | None:
        """Lengths, where sequences of a micro-batch are padded to the longest of them."""
        return None if self.packed else self.lengths
