"""What the configuration file says of alerts. Text from people is validated here; no environment variable is read."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class Section(BaseModel):
    """A mapping of the file: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AlertChannel(Section):
    """Where alerts go: an Apprise URL or, where that has a secret in it, the environment variable that holds it.

    `timeout_seconds`: a receiver that has not answered by then has failed, and is tried again later.
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")
    url: str | None = None
    url_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    timeout_seconds: float = Field(default=20.0, gt=0)

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
