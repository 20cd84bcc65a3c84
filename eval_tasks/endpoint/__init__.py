"""Chat endpoints that speak OpenAI's protocol: asked from a pod without a GPU, and never taken for reproducible."""

from eval_tasks.endpoint.client import ChatEndpoint, RefusedError, Reply
from eval_tasks.endpoint.worker import EndpointWorker, endpoint_environment

__all__ = ["ChatEndpoint", "EndpointWorker", "RefusedError", "Reply", "endpoint_environment"]
