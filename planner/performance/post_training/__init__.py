"""What fine-tuning, preference training and reinforcement learning add to a training step; knows no price."""
