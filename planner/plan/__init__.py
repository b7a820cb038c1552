"""The answer: a plan and its parts, its file, its checks and certificates. Chosen candidates come in."""
