"""What the configuration file says of the nodes of an environment's pods and of the disks they get, validated.

Reads no variable and no file, and knows no pod: the plug-in makes affinities and volumes of it.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from eval_tasks.policies import Section

# As Kubernetes has them.
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$"
_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
_LABEL_VALUE = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"


class GpuNode(Section):
    """What the nodes' GPUs must be, by the labels that NVIDIA's GPU Feature Discovery puts on nodes.

    `product` as the label ``nvidia.com/gpu.product`` has it. `driver`: ``580``, any of that major version, or the whole
    version ``580.82.07``. `memory_mib`: at least so much on each GPU. `mig_strategy` ``none`` keeps off nodes whose
    GPUs are cut into slices.
    """

    product: str | None = Field(default=None, pattern=_LABEL_VALUE)
    driver: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+){0,2}$")
    memory_mib: int | None = Field(default=None, ge=1)
    mig_strategy: str | None = Field(default=None, pattern=r"^(none|single|mixed)$")

    @model_validator(mode="after")
    def _says_something(self) -> GpuNode:
        if not self.model_fields_set:
            raise ValueError("gpu_node says nothing; give product, driver, memory_mib or mig_strategy, or leave it out")
        if self.driver is not None and self.driver.count(".") == 1:
            raise ValueError(f"driver {self.driver} is neither a major version (580) nor a whole one (580.82.07)")
        return self


class CheckpointCache(Section):
    """Where pods keep copies of remote checkpoints, by digest, so that the next pod need not copy again.

    `host_path`: a folder of the node, which all its pods share. `storage_class` and `size`: a volume of its own for
    each pod, for a node's scratch disk that is too small; it goes with the pod.
    """

    host_path: str | None = Field(default=None, pattern=r"^/[^:]+$")
    storage_class: str | None = Field(default=None, pattern=_NAME)
    size: str | None = Field(default=None, pattern=QUANTITY)

    @model_validator(mode="after")
    def _one_kind(self) -> CheckpointCache:
        if (self.host_path is None) == (self.size is None):
            raise ValueError("give one of 'host_path' (a folder of the node) and 'size' (a volume for each pod)")
        if self.storage_class is not None and self.size is None:
            raise ValueError("storage_class is of a volume for each pod: give its 'size' too")
        if self.host_path is not None and ".." in self.host_path.split("/"):
            raise ValueError(f"host_path {self.host_path} climbs out of its folder; give it without '..'")
        return self
