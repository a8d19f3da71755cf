"""The models of all tools."""

from tests.tool_models import model_of

__all__ = ["model_of"]
