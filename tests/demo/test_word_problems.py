import random

import pytest
import word_problems
from word_problems import SUBJECTS, Problem, draw_problem

CHAIN = Problem(subject="chain", giver="Ben", owner="Anna", thing="eggs", a=7, b=5, c=3, wording=0)


def test_one_problem_in_its_three_forms() -> None:
    asked = "Anna has 7 eggs. Ben gives Anna 5 more. Then Anna loses 3. How many eggs does Anna have?"
    assert word_problems.as_short_question(CHAIN) == f"Q: {asked}\nA: 9"
    assert word_problems.as_worked_question(CHAIN) == f"Question: {asked}\nAnswer: 7 + 5 = 12. 12 - 3 = 9.\n#### 9"
    assert word_problems.story(CHAIN) == (
        "Anna has 7 eggs. Ben gives Anna 5 more. Then Anna loses 3. Now Anna has 9 eggs."
    )


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_worked_answer_is_right(subject: str) -> None:
    rng = random.Random(4)
    for _ in range(300):
        problem = draw_problem(rng, held_out=False, subject=subject)
        for step in problem.steps:
            left, right = step.split(" = ")
            assert eval(left) == int(right)
        assert 0 <= problem.answer <= 99
        assert word_problems.worked_answer(problem).endswith(f"\n#### {problem.answer}")


def test_choices_are_four_different_numbers_with_the_right_one_anywhere() -> None:
    rng = random.Random(0)
    golds = []
    for _ in range(400):
        problem = draw_problem(rng, held_out=True)
        options, gold = word_problems.choices(problem, rng)
        assert len(set(options)) == 4
        assert options[gold] == str(problem.answer)
        golds.append(gold)
    assert min(golds.count(position) for position in range(4)) > 70


def test_a_problem_is_held_out_whatever_the_seed() -> None:
    drawn = [draw_problem(random.Random(seed), held_out=True) for seed in range(200)]
    trained = {draw_problem(random.Random(seed), held_out=False) for seed in range(2000)}
    assert all(problem.held_out for problem in drawn)
    assert not trained & set(drawn)


def test_about_one_problem_in_ten_is_held_out() -> None:
    rng = random.Random(1)
    problems = [
        Problem(subject="add", giver="Ben", owner="Anna", thing="eggs", a=rng.randint(1, 9), b=i, c=0, wording=0)
        for i in range(3000)
    ]
    assert 0.08 < sum(p.held_out for p in problems) / len(problems) < 0.12
