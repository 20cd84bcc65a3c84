"""The outbox on a real catalog: each alert once to each channel, through failures, deaths and two senders at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from eval_tasks.alerts import channels_of, deliver
from eval_tasks.alerts.channels import ChannelError
from eval_tasks.alerts.delivery import LEASE_SECONDS
from eval_tasks.policies import AlertChannel, AlertPolicy
from eval_tasks.records import Alert
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.alerts.receivers import Webhook

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
POLICY = AlertPolicy()


class Ear:
    """A channel that remembers; `away` makes it fail."""

    def __init__(self, name: str, *, away: bool = False) -> None:
        self.name = name
        self.away = away
        self.heard: list[str] = []
        self.tried: list[str] = []

    def send(self, title: str, body: str) -> None:
        self.tried.append(title)
        if self.away:
            raise ChannelError(f"channel {self.name!r}: away")
        self.heard.append(title)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def raised(store: Store, *names: str) -> None:
    for name in names:
        store.catalog.raise_alert(
            Alert(alert_id=name * 8, kind="excursion", title=name, body="five outputs", created_at=START.isoformat())
        )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def one_pass(store: Store, clock: Clock) -> Callable[..., int]:
    return lambda *channels: deliver(store, channels, POLICY, owner="me", clock=clock).sent


def test_each_alert_goes_once_to_each_channel_in_order(
    store: Store, clock: Clock, one_pass: Callable[..., int]
) -> None:
    a, b = Ear("a"), Ear("b")
    raised(store, "first", "second")
    raised(store, "first")  # a retry of the step that raised it
    assert one_pass(a, b) == 4
    raised(store, "third")
    assert [one_pass(a, b), one_pass(a, b)] == [2, 0]
    assert a.heard == b.heard == ["first", "second", "third"]


def test_a_channel_that_is_away_is_tried_with_backoff_and_holds_up_no_other(
    store: Store, clock: Clock, one_pass: Callable[..., int]
) -> None:
    away, here = Ear("away", away=True), Ear("here")
    raised(store, "first", "second")
    assert one_pass(away, here) == 2
    assert (away.tried, here.heard) == (["first"], ["first", "second"])
    (waiting, _) = store.catalog.deliveries(state="pending")
    assert (waiting.channel, waiting.attempts, waiting.error) == ("away", 1, "channel 'away': away")
    one_pass(away, here)
    one_pass(away, here)
    assert away.tried == ["first", "second"], "neither is due yet"
    for _ in range(4 * 24):  # a day
        clock.later(900)
        one_pass(away, here)
    assert len(away.tried) < 250
    away.away = False
    clock.later(900)
    assert one_pass(away, here) == 2
    assert sorted(away.heard) == ["first", "second"]
    assert here.heard == ["first", "second"]
    assert store.catalog.deliveries(state="pending") == []


def test_a_message_that_is_always_refused_holds_up_no_other(
    store: Store, clock: Clock, one_pass: Callable[..., int]
) -> None:
    class Picky(Ear):
        def send(self, title: str, body: str) -> None:
            self.away = title == "poison"
            super().send(title, body)

    ear = Picky("picky")
    raised(store, "poison", "sound")
    one_pass(ear)
    one_pass(ear)
    assert ear.heard == ["sound"]


def test_a_sender_that_died_leaves_its_delivery_for_the_next(
    store: Store, clock: Clock, one_pass: Callable[..., int]
) -> None:
    ear = Ear("a")
    raised(store, "first")
    store.catalog.fan_out(["a"], START)
    dead = store.catalog.claim_delivery("a", "dead", LEASE_SECONDS, START)
    assert dead is not None
    assert one_pass(ear) == 0
    clock.later(LEASE_SECONDS)
    assert one_pass(ear) == 1
    assert not store.catalog.delivered(dead, "dead", clock.now), "it is no more the dead one's to record"
    assert not store.catalog.undelivered(dead, "dead", "late", 0)
    assert [d.state for d in store.catalog.deliveries()] == ["sent"]


def test_two_senders_at_a_time_send_nothing_twice(settings: Settings) -> None:
    class Slow(Ear):
        def send(self, title: str, body: str) -> None:
            barrier.wait(5) if not self.tried else None
            super().send(title, body)

    barrier = threading.Barrier(2)
    ears = [Slow("a"), Slow("a")]
    with open_store(settings) as store:
        raised(store, *(f"alert-{n}" for n in range(20)))

    def send(n: int) -> None:
        with open_store(settings) as own:
            deliver(own, [ears[n]], POLICY, owner=f"sender-{n}")

    threads = [threading.Thread(target=send, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heard = ears[0].heard + ears[1].heard
    assert sorted(heard) == sorted(f"alert-{n}" for n in range(20))
    assert ears[0].heard and ears[1].heard


def test_a_new_channel_gets_what_is_raised_from_then_on(store: Store, one_pass: Callable[..., int]) -> None:
    log, slack = Ear("log"), Ear("slack")
    raised(store, "old")
    one_pass(log)
    raised(store, "new")
    one_pass(slack)
    assert (log.heard, slack.heard) == (["old"], ["new"])


def test_a_webhook_that_is_down_and_comes_back_gets_each_alert_once(store: Store, clock: Clock) -> None:
    with Webhook() as webhook:
        policy = AlertPolicy(channels=(AlertChannel(name="on-call", url=webhook.url, timeout_seconds=2),))
        channels = channels_of(policy)
        webhook.status = 500
        raised(store, "first", "second")
        report = deliver(store, channels, policy, owner="me", clock=clock)
        assert report.sent == 0 and report.failed[0][0] == "on-call"
        webhook.status = 200
        clock.later(30)
        assert deliver(store, channels, policy, owner="me", clock=clock).sent == 2
        assert sorted(webhook.titles) == ["first", "second"]
        assert "acknowledge: python -m eval_tasks alerts acknowledge " in webhook.received[0]["message"]


def test_a_call_that_comes_too_late_does_not_end_the_claim_of_another_in_its_process(store: Store) -> None:
    raised(store, "one")
    clock = Clock()

    class Slow(Ear):
        """Answers when its lease is over and another call of the same owner has claimed the delivery anew."""

        def send(self, title: str, body: str) -> None:
            super().send(title, body)
            clock.later(LEASE_SECONDS + 1)
            assert store.catalog.claim_delivery(self.name, "me", LEASE_SECONDS, clock()) is not None

    deliver(store, [Slow("a")], POLICY, owner="me", clock=clock)
    (delivery,) = store.catalog.deliveries()
    assert delivery.state == "sending"
