"""checkpoint-eval's library: checkpoints, benchmarks and result rows in, scores with error bars and verdicts out.

Knows no Airflow, no Kubernetes and no web server; it is what runs inside a pod and on a laptop.
"""

__version__ = "0.1.0"
