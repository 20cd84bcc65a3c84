"""Write requirements.txt and requirements-dev.txt from the packages that are installed beside this interpreter.

requirements.txt is the closure of requirements.in; requirements-dev.txt is what requirements-dev.in adds to it. Local
version labels (a CPU build of torch) are left out, so that the lock installs everywhere.
"""

import re
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement

HEADER = "# The exact lock of {source}, made by `make lock`. Change {source}, not this file.\n"


def name_of(text: str) -> str:
    """The normal form of a package's name."""
    return re.sub(r"[-_.]+", "-", text).lower()


def closure(roots: list[Requirement]) -> set[str]:
    """Names of all installed packages that `roots` need, extras and markers considered."""
    seen: set[tuple[str, frozenset[str]]] = set()
    queue = [(name_of(r.name), frozenset(r.extras)) for r in roots]
    while queue:
        name, extras = queue.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            environments = [{**default_environment(), "extra": extra} for extra in ("", *extras)]
            if requirement.marker is None or any(requirement.marker.evaluate(e) for e in environments):
                queue.append((name_of(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


def roots_of(path: Path) -> list[Requirement]:
    """The requirements that a .in file names."""
    lines = (line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def write(path: Path, source: str, names: set[str], versions: dict[str, str]) -> None:
    """One exact pin a line, by name."""
    pins = "".join(f"{name}=={versions[name]}\n" for name in sorted(names))
    path.write_text(HEADER.format(source=source) + pins, "utf-8")


def main() -> None:
    """Write both locks."""
    versions = {name_of(d.metadata["Name"]): d.version.split("+")[0] for d in distributions()}
    needed = closure(roots_of(Path("requirements.in")))
    developing = closure(roots_of(Path("requirements-dev.in"))) - needed
    write(Path("requirements.txt"), "requirements.in", needed, versions)
    write(Path("requirements-dev.txt"), "requirements-dev.in", developing, versions)


if __name__ == "__main__":
    main()
