"""What kube-scheduler v1.37.1 makes of configurations, recorded: it starts, or it does not.

Each line of the file holds a configuration and kube-scheduler's answer: the plugins at every
point, in their order and with their weights, or its error. The configurations are random mixes of
profiles, multiPoint, points and arguments.
"""

import json
from pathlib import Path

import pytest

from k8s_scheduler.api.config.profiles.points import WEIGHTED_POINTS
from k8s_scheduler.api.config.types import API_VERSION, KIND
from tests.unit.api.config.config_cases import load_text, messages_of

LINES = (Path(__file__).parent / "recorded_configurations.jsonl").read_text().splitlines()
RECORDED = list(map(json.loads, LINES))
ACCEPTED = [case for case in RECORDED if "points" in case]
REFUSED = [case for case in RECORDED if "error" in case]


def text_of(case):
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, **case["configuration"]})


def shown(point, use):
    return f"{use.name}*{use.weight}" if point in WEIGHTED_POINTS else use.name


def test_there_are_enough_of_both():
    assert (len(ACCEPTED), len(REFUSED)) == (60, 60)


@pytest.mark.parametrize("case", ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_it_takes_means_the_same_here(tmp_path, case):
    configuration = load_text(tmp_path, text_of(case))
    resolved = {
        profile.scheduler_name: {
            point: " ".join(shown(point, use) for use in uses)
            for point, uses in profile.points.items()
            if uses
        }
        for profile in configuration.profiles
    }
    assert resolved == case["points"]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_it_refuses_is_refused_here(tmp_path, case):
    assert messages_of(tmp_path, text_of(case))
