"""The user's own measurements tighten the performance model's predictions; knows no prices and no providers."""
