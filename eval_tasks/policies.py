"""What the configuration file says of alerts, budgets and retention, validated. Reads no variable and no file."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class Section(BaseModel):
    """A mapping of the file: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AlertChannel(Section):
    """Where alerts go: an Apprise URL or, where that has a secret in it, the environment variable that holds it.

    `timeout_seconds`: a receiver that has not answered by then has failed, and is tried again later; shorter than the
    lease of a delivery (300 s), or another sender would send it meanwhile.
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")
    url: str | None = None
    url_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    timeout_seconds: float = Field(default=20.0, gt=0, le=240)

    @model_validator(mode="after")
    def _one_place(self) -> AlertChannel:
        if (self.url is None) == (self.url_variable is None):
            raise ValueError("give one of 'url' and 'url_variable' (the environment variable that holds the URL)")
        return self

    @field_validator("url")
    @classmethod
    def _looks_like_a_url(cls, url: str | None) -> str | None:
        if url is not None and not re.match(r"^[a-z][a-z0-9+.-]*://", url):
            raise ValueError(
                "not an Apprise URL; it should read json://host/path, slack://..., mailto://... or the like"
            )
        return url


class AlertPolicy(Section):
    """Alerts: to whom, and how long to wait after a failure (doubled each time, up to the limit).

    `base_url`: where Airflow's UI answers, for the link in each message.
    """

    channels: tuple[AlertChannel, ...] = ()
    base_url: str = ""
    poll_seconds: float = Field(default=15.0, gt=0)
    retry_seconds: float = Field(default=30.0, gt=0)
    retry_limit_seconds: float = Field(default=900.0, gt=0)

    @field_validator("channels")
    @classmethod
    def _each_name_once(cls, channels: tuple[AlertChannel, ...]) -> tuple[AlertChannel, ...]:
        names = [channel.name for channel in channels]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"a name stands once; twice here: {', '.join(twice)}")
        return channels


class MaintenancePolicy(Section):
    """What may go from the store. Everything is kept for ever unless `thin_health_after_days` says otherwise.

    `orphan_grace_days`: a file that nothing names goes once it has not been changed for so long.
    """

    orphan_grace_days: float = Field(default=7.0, ge=1)
    thin_health_after_days: int | None = Field(default=None, ge=1)


class Budget(Section):
    """What a tier may cost: of one training run, or of all together. A run that does not fit any more is not started.

    At least one of the limits. `days`: what was begun within so many days counts; without it, everything does.
    """

    tier: Literal["selection", "release"]
    training_run: str | None = None
    usd: float | None = Field(default=None, ge=0)
    device_hours: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    days: int | None = Field(default=None, ge=1)

    @field_validator("tier", mode="before")
    @classmethod
    def _health_goes_on(cls, tier: Any) -> Any:
        if tier == "health":
            raise ValueError("no budget stops the health tier; bound it by its suite, or by coalesce_beyond")
        return tier

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if not self.limits:
            raise ValueError("give at least one of 'usd', 'device_hours' and 'tokens'")
        return self

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by measure."""
        named = {"usd": self.usd, "device_hours": self.device_hours, "tokens": self.tokens}
        return {measure: float(limit) for measure, limit in named.items() if limit is not None}

    @property
    def title(self) -> str:
        """The budget in words."""
        whose = f"training run {self.training_run!r}" if self.training_run else "all training runs"
        return f"the {self.tier} tier for {whose}" + (f" within {self.days} days" if self.days else "")

    def covers(self, tier: str, training_run: str) -> bool:
        """Whether a run of that tier and training run counts towards it."""
        return tier == self.tier and self.training_run in (None, training_run)
