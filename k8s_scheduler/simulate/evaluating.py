"""Evaluating a file from its first line to its last, with the answers as they come."""

from collections.abc import Callable, Iterator

from k8s_scheduler.simulate.answers import Answer, encode
from k8s_scheduler.simulate.evaluation import ScenarioEngine
from k8s_scheduler.simulate.files import display_name, read_scenarios, read_sequences


def evaluate_file(
    path: str,
    evaluation: ScenarioEngine,
    *,
    is_sequence: bool,
    write: Callable[[bytes], object],
    complain: Callable[[str], object],
) -> bool:
    """Write an answer for each pending pod; return whether every scenario could be judged.

    A scenario that could not is answered with its error and complained about by file and line;
    the others are judged all the same. Raises InputFileError where a line is no scenario at all.
    """
    well = True
    for number, answers in _answers(path, evaluation, is_sequence=is_sequence):
        reported: set[str] = set()
        for answer in answers:
            write(encode(answer))
            if answer["pod"]:
                continue
            well = False
            problem = answer["error"]
            if problem not in reported:
                # A mistake in a sequence concerns every step from there on; once is enough.
                reported.add(problem)
                complain(f"{display_name(path)}:{number}: {answer['id']}: {problem}")
    return well


def _answers(
    path: str, evaluation: ScenarioEngine, *, is_sequence: bool
) -> Iterator[tuple[int, Iterator[Answer]]]:
    """Yield (line number, answers) of each line of a file."""
    if is_sequence:
        for number, sequence in read_sequences(path):
            yield number, evaluation.sequence(sequence)
    else:
        for number, scenario in read_scenarios(path):
            yield number, evaluation.scenario(scenario)
