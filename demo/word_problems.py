"""The demo's small language: seeded word problems, and how each is written as a story, a question or a worked answer.

A seed goes in; problems and their texts come out. Knows no model, no tokenizer and no file. Which problems are held
out is decided by a digest of the problem's content, so that the training stream and the benchmarks cannot overlap,
whatever their seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from blake3 import blake3

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Karin", "Leo")
THINGS = ("apples", "books", "coins", "eggs", "flags", "keys", "marbles", "pens", "shells", "stamps")
SUBJECTS = ("add", "subtract", "multiply", "chain")
LARGEST = 9
HELD_OUT_SHARE = 10  # one problem in ten is never trained on


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One situation with one right answer. `wording` picks among two ways of saying the same."""

    subject: str
    giver: str
    owner: str
    thing: str
    a: int
    b: int
    c: int
    wording: int

    @property
    def held_out(self) -> bool:
        """True when the problem belongs to the benchmarks and never to the training stream; decided by its text."""
        return blake3(situation(self).encode()).digest()[0] % HELD_OUT_SHARE == 0

    @property
    def steps(self) -> tuple[str, ...]:
        """The equations that lead to the answer, in order."""
        if self.subject == "add":
            return (f"{self.a} + {self.b} = {self.a + self.b}",)
        if self.subject == "subtract":
            return (f"{self.a} - {self.b} = {self.a - self.b}",)
        if self.subject == "multiply":
            return (f"{self.a} * {self.b} = {self.a * self.b}",)
        return (
            f"{self.a} + {self.b} = {self.a + self.b}",
            f"{self.a + self.b} - {self.c} = {self.a + self.b - self.c}",
        )

    @property
    def answer(self) -> int:
        """The right number."""
        return int(self.steps[-1].rpartition(" ")[2])


def draw_problem(rng: random.Random, *, held_out: bool, subject: str | None = None) -> Problem:
    """A random problem from the held-out part of the language, or from the part that may be trained on."""
    while True:
        kind = subject or rng.choice(SUBJECTS)
        giver, owner = rng.sample(NAMES, 2)
        a, b = rng.randint(1, LARGEST), rng.randint(1, LARGEST)
        if kind == "multiply":
            a, b = rng.randint(2, 6), rng.randint(2, 9)
        if kind == "subtract":
            a, b = max(a, b) + 1, min(a, b)
        problem = Problem(
            subject=kind,
            giver=giver,
            owner=owner,
            thing=rng.choice(THINGS),
            a=a,
            b=b,
            c=rng.randint(1, min(LARGEST, a + b)) if kind == "chain" else 0,
            wording=rng.randint(0, 1),
        )
        if problem.held_out == held_out:
            return problem


def situation(problem: Problem) -> str:
    """What happened, without the answer."""
    p = problem
    gains = (f"{p.giver} gives {p.owner} {p.b} more.", f"{p.owner} gets {p.b} {p.thing} from {p.giver}.")[p.wording]
    if p.subject == "multiply":
        return (
            f"{p.owner} has {p.a} boxes with {p.b} {p.thing} in each box.",
            f"{p.giver} gives {p.owner} {p.a} boxes. Each box holds {p.b} {p.thing}.",
        )[p.wording]
    if p.subject == "subtract":
        loses = (f"{p.owner} gives {p.b} to {p.giver}.", f"{p.owner} loses {p.b} of them.")[p.wording]
        return f"{p.owner} has {p.a} {p.thing}. {loses}"
    if p.subject == "add":
        return f"{p.owner} has {p.a} {p.thing}. {gains}"
    return f"{p.owner} has {p.a} {p.thing}. {gains} Then {p.owner} loses {p.c}."


def story(problem: Problem) -> str:
    """The problem told as running text, the answer included."""
    return f"{situation(problem)} Now {problem.owner} has {problem.answer} {problem.thing}."


def question(problem: Problem) -> str:
    """The problem as a question."""
    return f"{situation(problem)} How many {problem.thing} does {problem.owner} have?"


def worked_answer(problem: Problem) -> str:
    """The solution in GSM8K's form: the steps, then ``#### n`` on a line of its own."""
    return f"{'. '.join(problem.steps)}.\n#### {problem.answer}"


def choices(problem: Problem, rng: random.Random) -> tuple[list[str], int]:
    """Four different numbers in random order, and the index of the right one. The wrong ones are near misses."""
    right = problem.answer
    near = {right + d for d in (-3, -2, -1, 1, 2, 3)} | {problem.a + problem.b, abs(problem.a - problem.b)}
    wrong = rng.sample(sorted(n for n in near if n >= 0 and n != right), 3)
    numbers = [right, *wrong]
    rng.shuffle(numbers)
    return [str(n) for n in numbers], numbers.index(right)


def as_short_question(problem: Problem) -> str:
    """Question and answer in one line each, as the multiple-choice benchmark writes them."""
    return f"Q: {question(problem)}\nA: {problem.answer}"


def as_worked_question(problem: Problem) -> str:
    """Question and worked answer, as the generation benchmark writes them."""
    return f"Question: {question(problem)}\nAnswer: {worked_answer(problem)}"


_FORMS: tuple[tuple[Callable[[Problem], str], str], ...] = (
    (story, " "),
    (as_short_question, "\n\n"),
    (as_worked_question, "\n\n"),
)


def training_document(rng: random.Random) -> str:
    """One document of the training stream: one to three problems in one of the three forms."""
    form, between = rng.choice(_FORMS)
    return between.join(form(draw_problem(rng, held_out=False)) for _ in range(rng.randint(1, 3)))
