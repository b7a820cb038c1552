"""How fast a trained model answers: prefill by compute, decode by memory bandwidth, batches by memory left for keys."""
