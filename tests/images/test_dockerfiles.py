"""What a linter would hold against the Dockerfiles, what they copy, and that their packages are pinned."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
IMAGES = ("worker", "airflow")


@pytest.mark.parametrize("image", IMAGES)
def test_hadolint_has_nothing_to_say(image: str) -> None:
    cached = REPOSITORY / ".cache/linters/bin/hadolint"
    found = str(cached) if cached.exists() else shutil.which("hadolint")
    if not found:
        pytest.skip("no hadolint: run .ci/fetch-linters")
    done = subprocess.run(
        [found, str(REPOSITORY / "images" / image / "Dockerfile")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_wheel_that_is_installed_is_the_harness_of_these_sources(tmp_path: Path) -> None:
    """What HARNESS_VERSION is checked against: nothing that can move a row is left out of the wheel."""
    from eval_tasks.environment import harness_version

    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    shutil.copytree(REPOSITORY / "eval_tasks", source / "eval_tasks", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "inside")
    code = "from eval_tasks.environment import harness_version as v; print(v())"
    assert any(code in rest for rest in arguments("worker", "RUN"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path / "inside",
        env={"PYTHONPATH": str(tmp_path / "inside"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == harness_version(), done.stderr


@pytest.mark.parametrize("image", IMAGES)
def test_a_bill_of_materials_is_in_the_image_where_the_label_says(image: str) -> None:
    (labels,) = arguments(image, "LABEL")
    place = re.search(r'checkpoint-eval\.sbom="([^"]+)"', labels)
    assert place and any(
        rest.startswith("--from=materials") and rest.endswith(place[1]) for rest in arguments(image, "COPY")
    )
    assert any("cyclonedx-py environment --output-reproducible" in rest for rest in arguments(image, "RUN"))


def instructions(image: str) -> list[tuple[str, str]]:
    """(INSTRUCTION, arguments) in order, continuation lines joined."""
    text = (REPOSITORY / "images" / image / "Dockerfile").read_text("utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    parts = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(name.upper(), rest) for name, rest in parts]


def arguments(image: str, instruction: str) -> list[str]:
    return [rest for name, rest in instructions(image) if name == instruction]


def pins(path: str) -> dict[str, str]:
    """Name -> version of a lock file."""
    lines = (line.partition("#")[0].strip() for line in (REPOSITORY / path).read_text("utf-8").splitlines())
    found = dict(line.split("==") for line in lines if line)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found.items()}


@pytest.mark.parametrize("image", IMAGES)
def test_every_stage_starts_from_the_argument_or_from_another_stage(image: str) -> None:
    stages: set[str] = set()
    for rest in arguments(image, "FROM"):
        source, *name = rest.split(" AS ")
        assert re.fullmatch(r"\$\{[A-Z_]+\}", source) or source in stages, rest
        stages.update(name)
    default = dict(rest.partition("=")[::2] for rest in arguments(image, "ARG"))
    base = next(value for name, value in default.items() if name.endswith("_IMAGE"))
    assert ":" in base
    assert not base.endswith(":latest")


@pytest.mark.parametrize("image", IMAGES)
def test_it_ends_as_a_numeric_user_that_is_not_root_and_builds_nothing_after(image: str) -> None:
    steps = instructions(image)
    last = max(n for n, (name, _) in enumerate(steps) if name == "USER")
    uid = steps[last][1].split(":")[0]
    assert uid.isdigit()
    assert int(uid) > 0
    assert not [name for name, _ in steps[last:] if name in ("RUN", "COPY", "FROM")]


def test_the_worker_is_the_user_and_has_the_command_and_scratch_of_the_pod() -> None:
    from checkpoint_eval.pods import NOBODY, SCRATCH, pod_template
    from eval_tasks.settings import EnvironmentSpec, Limits, Settings

    pod = pod_template(EnvironmentSpec(name="e"), Limits(), Settings())
    assert arguments("worker", "USER") == [f"{NOBODY}:{NOBODY}"]
    assert arguments("worker", "WORKDIR")[-1] == SCRATCH
    assert f"-o {NOBODY} -g {NOBODY} {SCRATCH}" in " ".join(arguments("worker", "RUN"))
    command = pod["spec"]["containers"][0]["command"]
    assert arguments("worker", "ENTRYPOINT") == ["[" + ", ".join(f'"{part}"' for part in command) + "]"]


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_added_from_a_url_and_no_host_is_named(image: str) -> None:
    text = (REPOSITORY / "images" / image / "Dockerfile").read_text("utf-8")
    assert not arguments(image, "ADD")
    assert "://" not in text
    assert "latest" not in text
    assert not re.search(r"--(extra-)?index-url|--trusted-host|apt-get|curl|wget", text)


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_copied_exists_and_is_sent_to_the_builder(image: str) -> None:
    for rest in arguments(image, "COPY"):
        if "--from=" in rest:
            continue
        *sources, _ = [part for part in rest.split() if not part.startswith("--")]
        for source in sources:
            assert (REPOSITORY / source).exists(), source
            assert not ignored(source), source


@pytest.mark.parametrize("name", [".git", ".venv", "tests", ".demo", ".cache", ".home", "demo", "dist"])
def test_what_no_image_needs_is_not_sent(name: str) -> None:
    assert ignored(name)


def ignored(path: str) -> bool:
    """By the root of a path: the last pattern of .dockerignore that matches it decides."""
    verdict = False
    for line in (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch(path.split("/")[0], pattern):
            verdict = not line.startswith("!")
    return verdict


@pytest.mark.parametrize("image", IMAGES)
def test_labels_say_the_version_of_the_project(image: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"VERSION={project['version']}" in arguments(image, "ARG")
    (labels,) = arguments(image, "LABEL")
    assert 'org.opencontainers.image.version="${VERSION}"' in labels
    assert f'org.opencontainers.image.licenses="{project["license"]}"' in labels


def test_the_worker_has_what_the_project_declares_at_the_versions_of_the_lock() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(text for name in ("contamination", "engine", "s3") for text in extras[name])]
    declared = {re.split(r"[<>=!~\[]", text)[0] for text in wanted}
    lines = (REPOSITORY / "images/worker/packages.txt").read_text("utf-8").splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert packages == sorted(declared)
    assert set(packages) <= pins("requirements.txt").keys()


@pytest.mark.parametrize("image", IMAGES)
def test_additions_are_pinned_and_are_not_in_the_lock(image: str) -> None:
    additions = pins(f"images/{image}/additions.txt")
    assert additions
    assert not additions.keys() & pins("requirements.txt").keys()


def test_both_images_have_one_postgresql_driver_in_one_version() -> None:
    worker, airflow = pins("images/worker/additions.txt"), pins("images/airflow/additions.txt")
    assert {name: airflow.get(name) for name in worker} == worker


def test_the_build_script_says_when_no_engine_is_there(tmp_path: Path) -> None:
    script = REPOSITORY / ".ci/build-worker-image"
    environment = os.environ | {"BUILDAH": str(tmp_path / "absent")}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("no image can be built here: ")
    assert "apt-get install buildah" in done.stderr
