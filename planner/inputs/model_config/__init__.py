"""What a model's own configuration file (`config.json`) says of its sizes: nothing is executed or downloaded."""

from planner.inputs.model_config.model import ConfigModel
from planner.inputs.model_config.read import is_model_config, model_of_config, parse_json
from planner.inputs.model_config.stored import stored_precision

__all__ = ["ConfigModel", "is_model_config", "model_of_config", "parse_json", "stored_precision"]
