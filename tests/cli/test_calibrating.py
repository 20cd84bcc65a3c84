"""`irt` from the command line: weights, abilities by them, and the list of items to look at."""

from __future__ import annotations

import shutil

import pytest

from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.calibrate.conftest import MISLABELLED, Archive, answers
from tests.calibrate.conftest import archive_home as archive_home


@pytest.fixture
def home(home, archive_home):
    """The command line's home folder, with the archive and two further runs in it; gives the ids of these."""
    shutil.copytree(archive_home, home)
    with open_store(Settings()) as store:
        made = Archive(store=store, quiz=store.catalog.benchmark("quiz"), runs=[])
        return [made.evaluated(k, answers(k, theta)) for k, theta in ((201, 1.0), (202, -1.0))]


def test_weights_are_made_shown_and_used(home, run, run_json, tmp_path):
    able, weak = home
    said = run("irt", "calibrate", "quiz", "--exclude", able, "--exclude", weak)
    assert "quiz@1/1: two-parameter logistic model of acc" in said and "60 checkpoints of 60 training runs" in said
    made = run_json("irt", "show", "quiz", "--run", able, "--run", weak)
    assert made["reference"] == "quiz@1/1" and made["n_flagged"]["negative_discrimination"] == 4
    abilities = [m["ability"]["theta"] for m in made["abilities"]]
    assert abilities[0] > 0.4 and abilities[1] < -0.4
    shown = run("irt", "show", "quiz@1", "--calibration", "1", "--run", able)
    assert f"{abilities[0]:+.2f} ±" in shown and "calibration " + made["calibration_id"] in shown
    run("aggregate", able)
    page = tmp_path / "compared.html"
    compared = run("compare", able, weak, "--out", page)
    assert "ability" in compared and "no verdict, rule or selection uses them" in " ".join(compared.split())
    html = page.read_text("utf-8")
    assert "Δ ability" in html and "by quiz@1/1" in html
    assert run_json("compare", able, weak)["abilities"][0]["delta"] == pytest.approx(abilities[0] - abilities[1])


def test_the_list_a_benchmarks_owner_works_through(home, run, run_json, tmp_path):
    run("irt", "calibrate", "quiz")
    found = run_json("irt", "items", "quiz", "--flag", "negative_discrimination")
    assert {item["item_id"] for item in found["items"]} == set(MISLABELLED)
    assert found["items"][0]["link_ci95"][1] < 0 and found["items"][0]["n_groups"] == 62
    page = tmp_path / "items.html"
    said = run("irt", "items", "quiz", "--limit", "3", "--out", page)
    assert "Items to look at: the first 3 of" in said and "i0000" in said
    html = page.read_text("utf-8")
    assert "<h2>Items to look at</h2>" in html and "likely mislabelled: abler runs get it wrong" in html
    assert "<dt>Gold</dt>" in html and "Calibration quiz@1/1" in html


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "quiz"], "quiz@1 has no calibration: python -m eval_tasks irt calibrate quiz"),
        (["items", "quizz"], "no benchmark 'quizz' in the catalog; close: 'quiz'"),
        (["calibrate", "quiz", "nothing"], "no run 'nothing'"),
        (["calibrate", "quiz", "--metric", "bleu"], "bleu"),
    ],
)
def test_a_question_without_an_answer_is_refused(home, run, arguments, said):
    assert said in run("irt", *arguments, code=2)


def test_a_version_that_is_not_there(home, run):
    run("irt", "calibrate", "quiz")
    assert "known: quiz@1/1" in run("irt", "show", "quiz", "--calibration", "9", code=2)
