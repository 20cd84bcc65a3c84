"""One shard of a plan -> response rows in the store. What a pod does."""

from eval_tasks.run.shard import InterruptedShardError, OtherEnvironmentError, Progress, ShardReport, run_shard

__all__ = ["InterruptedShardError", "OtherEnvironmentError", "Progress", "ShardReport", "run_shard"]
