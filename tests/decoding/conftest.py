"""The models of all tools, and data to decode with them."""

from tests.tool_models import data, model_of

__all__ = ["data", "model_of"]
