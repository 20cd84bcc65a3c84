"""Everything of checkpoint-eval that knows Airflow or Kubernetes. DAG files import from here, never the other way."""
