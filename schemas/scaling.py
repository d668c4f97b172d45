"""Where the shards of a build are worked on, and what they ask of a machine. Nothing here changes a row."""

from typing import Literal

from pydantic import Field, field_validator

from schemas.sections import Section

Runner = Literal["threads", "processes", "ray"]
StageName = Literal["screen", "generate", "verify", "rank", "caption", "review", "instruct"]


class Needs(Section):
    """What a stage asks of the node that works on one of its shards. null leaves it to what its adapters say."""

    cpus: float | None = Field(default=None, gt=0, description="Cores. null: 1 (ours).")
    gpus: float | None = Field(
        default=None, ge=0, description="GPUs, or a share of one. null: 1 if an adapter computes on a GPU, else 0."
    )
    memory_gb: float | None = Field(
        default=None, gt=0, description="Gigabytes of memory. null: 1, or 8 beside a GPU (ours)."
    )


class RaySettings(Section):
    """How `runner: ray` finds its cluster, and what it asks of it."""

    address: str | None = Field(
        default=None, description="HOST:PORT of a cluster's head; null: RAY_ADDRESS, else a Ray of our own, here."
    )
    needs: dict[StageName, Needs] = Field(default={}, description="What single stages ask for.")
    tries: int = Field(
        default=3, ge=0, le=100, description="How often a shard begins anew after its worker died. Ours."
    )
    wait_for_nodes: bool = Field(
        default=False, description="Wait for nodes that could meet a request and are not there (an autoscaler's)."
    )

    @field_validator("address")
    @classmethod
    def _no_client(cls, value: str | None) -> str | None:
        """Ray's client protocol keeps the coordinator off the cluster, where the workspace would have to be too."""
        if value and value.startswith("ray://"):
            raise ValueError("ray:// is Ray's client; run the build on a node of the cluster, and give HOST:PORT")
        return value
