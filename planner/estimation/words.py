"""Parts of a training step in words: what they are, and what would shorten them."""

# What the largest part of the step means and what would change it.
LIMITS = {
    "compute": "matrix products and attention: a faster chip or a lower precision would help",
    "memory_bound": "memory bandwidth and kernel launches: a leaner software stack or larger micro-batches would help",
    "tp_comm": "traffic inside layers (tensor, context, expert parallel): a faster link, or splitting less, would help",
    "pp_comm": "traffic between pipeline stages: a faster network, or fewer stages, would help",
    "bubble": "idle pipeline stages: more micro-batches, or fewer stages, would help",
    "dp_comm": "gradient traffic and stragglers: a faster network, a larger batch or fewer nodes would help",
    "optimizer": "the optimizer step: sharding it (ZeRO-1 and up), or a larger batch, would help",
    "data_loading": "data loading: faster storage, more CPU cores or pre-decoded data would help",
    "other_models": "reference, teacher, critic, frozen networks: what stays the same may be computed beforehand",
    "generation": "generating responses: memory bandwidth and the longest responses; a faster engine would help",
    "evaluation": "evaluation in the run: fewer samples, or seldom, would help",
    "refit": "new weights on their way to the engines: a faster link would help",
    "offload": "states in host memory: more accelerators, or fewer states (8 bit, adapters), would help",
    "fixed": "fixed time per step: a larger batch per accelerator would help",
}
PARTS = {
    "compute": "matrix products, attention",
    "memory_bound": "memory-bound, launches",
    "tp_comm": "tensor, context, expert parallel",
    "pp_comm": "pipeline transfers",
    "bubble": "pipeline bubble",
    "dp_comm": "gradients, stragglers",
    "optimizer": "optimizer",
    "data_loading": "waiting for data",
    "other_models": "other and frozen networks",
    "offload": "offload",
    "generation": "generation of responses",
    "refit": "weights to the engine",
    "evaluation": "evaluation",
    "fixed": "fixed",
}
