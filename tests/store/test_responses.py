"""Response files, and the manifest that makes them data."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store
from eval_tasks.store.parquet import RESPONSES, Form
from tests.store.samples import BENCHMARK_ID, response, sample


def _close(store: Store, *batches: tuple[str, ...]) -> dict[int, str]:
    results = {
        number: store.responses.write_batch("run", 0, number, [response(item_id) for item_id in item_ids])
        for number, item_ids in enumerate(batches)
    }
    store.responses.close("run", results)
    return results


def _files(settings: Settings) -> list[Path]:
    return sorted(path for path in (Path(settings.store_uri) / "responses").rglob("*") if path.is_file())


def test_every_bit_of_a_response_comes_back(store: Store) -> None:
    hard = (-0.0, 5e-324, -1.1754943508222875e-38, math.nextafter(-1.0, 0.0), -math.inf, 1e308)
    rows = [
        response("a", logprobs=hard, token_logprobs=(hard, (), (-0.1,))),
        response(
            "b",
            status="invalid",
            reason="non_finite",
            output="¶ 日本 \x00",
            output_ids=(1, 2, 3),
            finish_reason="length",
            logprobs=(),
            token_logprobs=(),
            n_output_tokens=3,
            prompt_truncated=True,
            output_truncated=True,
            latency_ms=12.5,
        ),
    ]
    result = store.responses.write_batch("run", 3, 0, rows)
    store.responses.close("run", {0: result})
    back = list(store.responses.rows("run", BENCHMARK_ID))
    assert back == rows
    assert math.copysign(1, back[0].logprobs[0]) == -1


def test_what_greedy_decoding_would_write_comes_back(store: Store) -> None:
    rows = [response("a", greedy=(True, False)), response("b")]
    store.responses.close("run", {0: store.responses.write_batch("run", 0, 0, rows)})
    assert list(store.responses.rows("run", BENCHMARK_ID)) == rows


def test_every_bit_of_a_sampled_row_comes_back_and_other_rows_have_no_samples(store: Store) -> None:
    drawn = (
        sample(output="\u00b6 <think>", token_logprobs=(-0.0, 5e-324, -math.inf)),
        sample(output_ids=(), output=""),
    )
    rows = [response("a", samples=drawn, logprobs=(), token_logprobs=()), response("b")]
    store.responses.close("run", {0: store.responses.write_batch("run", 0, 0, rows)})
    back = list(store.responses.rows("run", BENCHMARK_ID))
    assert back == rows
    assert math.copysign(1, back[0].samples[0].token_logprobs[0]) == -1
    assert [row is None for row in store.responses.read("run", BENCHMARK_ID, ["samples"])["samples"].to_pylist()] == [
        False,
        True,
    ]


def test_files_of_a_release_without_later_columns_are_read_and_compacted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in RESPONSES.schema.names if name not in ("samples", "greedy")]
    form = Form(schema=pa.schema([RESPONSES.schema.field(name) for name in names]), few_values=RESPONSES.few_values)
    with monkeypatch.context() as earlier:
        earlier.setattr("eval_tasks.store.responses.RESPONSES", form)
        earlier.setattr("eval_tasks.store.response_rows.RESPONSES", form)
        _close(store, ("x",))
        old = store.responses.write_batch("open", 0, 0, [response("a")])
    assert list(store.responses.rows("run", BENCHMARK_ID)) == [response("x")]
    assert list(store.responses.rows("run", BENCHMARK_ID, ["x"])) == [response("x")]
    read = store.responses.read("run", BENCHMARK_ID, ["samples", "item_id"])
    assert read.to_pylist() == [{"samples": None, "item_id": "x"}]
    assert store.responses.read("run", BENCHMARK_ID, ["samples"]).to_pylist() == [{"samples": None}]
    new = store.responses.write_batch("open", 0, 1, [response("b", samples=(sample(),))])
    store.responses.close("open", {0: old, 1: new})
    assert list(store.responses.rows("open", BENCHMARK_ID)) == [response("a"), response("b", samples=(sample(),))]


def test_what_is_not_a_number_is_null_in_the_file(store: Store) -> None:
    result = store.responses.write_batch("run", 0, 0, [response("a", logprobs=(math.nan, -1.0))])
    store.responses.close("run", {0: result})
    assert store.responses.read("run", BENCHMARK_ID, ["logprobs"])["logprobs"].to_pylist() == [[None, -1.0]]
    (row,) = store.responses.rows("run", BENCHMARK_ID)
    assert math.isnan(row.logprobs[0])


def test_half_a_surrogate_pair_is_replaced_and_the_item_kept(store: Store) -> None:
    result = store.responses.write_batch("run", 0, 0, [response("a", output="x\ud83dy \ud83d\ude00")])
    store.responses.close("run", {0: result})
    (row,) = store.responses.rows("run", BENCHMARK_ID)
    assert row.output == "x\ufffdy 😀"


def test_latency_is_no_part_of_a_result(store: Store, settings: Settings) -> None:
    first = store.responses.write_batch("run", 0, 0, [response("a", latency_ms=1.0)])
    before = [(path.name, path.read_bytes()) for path in _files(settings)]
    assert store.responses.write_batch("run", 0, 0, [response("a", latency_ms=2.0)]) == first
    assert [(path.name, path.read_bytes()) for path in _files(settings)] == before
    assert store.responses.write_batch(
        "run", 0, 0, [response("a", logprobs=(-1.25, 0.0))]
    ) != store.responses.write_batch("run", 0, 0, [response("a", logprobs=(-1.25, -0.0))])


def test_nothing_is_read_before_a_run_is_closed(store: Store) -> None:
    store.responses.write_batch("run", 0, 0, [response("a")])
    assert not store.responses.is_closed("run")
    with pytest.raises(UserError, match="'run' is not closed"):
        store.responses.read("run", BENCHMARK_ID)


def test_closing_compacts_in_item_order_and_again_changes_nothing(store: Store, settings: Settings) -> None:
    results = _close(store, ("c", "d"), ("a", "b"), ("e",))
    assert store.responses.is_closed("run")
    assert [row.item_id for row in store.responses.rows("run", BENCHMARK_ID)] == ["a", "b", "c", "d", "e"]
    before = [(path.name, path.stat().st_mtime_ns) for path in _files(settings)]
    assert len(before) == 2
    assert store.responses.close("run", results) == store.responses.close("run", dict(reversed(results.items())))
    assert [(path.name, path.stat().st_mtime_ns) for path in _files(settings)] == before


def test_closing_again_removes_what_a_dead_closer_or_a_late_pod_left(store: Store, settings: Settings) -> None:
    results = _close(store, ("a", "b"), ("c",))
    before = _files(settings)
    store.responses.write_batch("run", 0, 1, [response("c")])
    assert len(_files(settings)) == len(before) + 1
    store.responses.close("run", results)
    assert _files(settings) == before


def test_batches_that_mix_items_are_sorted_too(store: Store) -> None:
    _close(store, ("a", "d"), ("b", "c"))
    assert store.responses.read("run", BENCHMARK_ID, ["item_id"])["item_id"].to_pylist() == ["a", "b", "c", "d"]


def test_closing_with_other_results_is_refused(store: Store) -> None:
    _close(store, ("a",))
    with pytest.raises(DataError, match="closed with other results"):
        store.responses.close("run", {0: "f" * 64})


def test_an_item_in_two_batches_is_refused_and_leaves_the_run_open(store: Store) -> None:
    with pytest.raises(DataError, match="item 'b' is in batch 1"):
        _close(store, ("a", "b"), ("b", "c"))
    assert not store.responses.is_closed("run")


def test_a_lost_batch_file_is_named(store: Store, settings: Settings) -> None:
    result = store.responses.write_batch("run", 0, 4, [response("a")])
    for path in _files(settings):
        path.unlink()
    with pytest.raises(DataError, match=r"batch 4 of run 'run' is done, but .* is gone"):
        store.responses.close("run", {4: result})


def test_the_same_rows_in_other_batches_have_the_same_digest(store: Store) -> None:
    one = store.responses.write_batch("one", 0, 0, [response("a", latency_ms=3), response("b")])
    store.responses.close("one", {0: one})
    two = {n: store.responses.write_batch("two", n, n, [response(item_id)]) for n, item_id in enumerate("ba")}
    store.responses.close("two", two)
    three = store.responses.write_batch("three", 0, 0, [response("a"), response("b", output="!")])
    store.responses.close("three", {0: three})
    assert store.responses.run_rows_digest("one") == store.responses.run_rows_digest("two")
    assert store.responses.run_rows_digest("one") != store.responses.run_rows_digest("three")


def test_stray_files_are_never_data(store: Store, settings: Settings) -> None:
    result = store.responses.write_batch("run", 0, 0, [response("a")])
    folder = _files(settings)[0].parent
    (folder / f"0000001-{result}.parquet").write_bytes(b"")
    (folder / ".0000000.parquet.tmp").write_bytes(b"PAR1 torn")
    store.responses.close("run", {0: result})
    (folder.parent / "stray.parquet").write_bytes(b"")
    store.responses.write_batch("run", 0, 7, [response("late")])
    assert [row.item_id for row in store.responses.rows("run", BENCHMARK_ID)] == ["a"]


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "gone"])
def test_a_damaged_file_is_named(store: Store, settings: Settings, damage: str) -> None:
    _close(store, tuple(f"item-{n:04d}" for n in range(500)))
    (path,) = [path for path in _files(settings) if path.suffix == ".parquet"]
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[200] ^= 0xFF
    path.write_bytes({"cut": data[:-10], "empty": b"", "flipped": data, "gone": b""}[damage])
    if damage == "gone":
        path.unlink()
    with pytest.raises(DataError, match=path.name):
        store.responses.read("run", BENCHMARK_ID)


def test_a_damaged_batch_file_is_written_again(store: Store, settings: Settings) -> None:
    result = store.responses.write_batch("run", 0, 0, [response("a")])
    (path,) = _files(settings)
    path.write_bytes(b"")
    assert store.responses.write_batch("run", 0, 0, [response("a")]) == result
    assert store.responses.read_batch("run", 0, result) == [response("a")]


def test_rows_of_some_items_only(store: Store) -> None:
    _close(store, ("a", "b"), ("c",))
    assert [row.item_id for row in store.responses.rows("run", BENCHMARK_ID, ["c", "a"])] == ["a", "c"]
    with pytest.raises(UserError, match="no response for 'zz'"):
        store.responses.rows("run", BENCHMARK_ID, ["a", "zz"])


def test_unknown_names_are_answered_with_close_ones(store: Store) -> None:
    _close(store, ("a",))
    with pytest.raises(UserError, match="close: 'output'"):
        store.responses.read("run", BENCHMARK_ID, ["outputs"])
    with pytest.raises(UserError, match=f"close: '{BENCHMARK_ID}'"):
        store.responses.read("run", BENCHMARK_ID[:-1])


def test_bad_batches_are_refused(store: Store) -> None:
    with pytest.raises(DataError, match="no rows"):
        store.responses.write_batch("run", 0, 0, [])
    with pytest.raises(DataError, match="two rows for one item"):
        store.responses.write_batch("run", 0, 0, [response("a"), response("a")])
    with pytest.raises(DataError, match="more than one benchmark"):
        store.responses.write_batch("run", 0, 0, [response("a"), response("b", benchmark_id="other")])
