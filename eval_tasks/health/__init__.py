"""A checkpoint's measurements beside those of earlier checkpoints of its training run -> is the run alive?

Four detections, each a test whose false alarms are held per training run: divergence, forgetting of a domain, accuracy
at chance, collapsed outputs. It reads scores and the catalog, keeps what it found, and raises one alert for what began.
"""

from eval_tasks.health.step import health

__all__ = ["health"]
