"""What a run of `k8s-scheduler shadow` was asked to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_scheduler.api.config.profiles.node_ownership import without_own_nodes
from k8s_scheduler.api.config.types import ResolvedProfile, SchedulerConfiguration
from k8s_scheduler.app.options import RunOptions


class UnknownProfileError(Exception):
    """A scheduler is to be followed and it can't be said with which profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOptions:
    """Everything `shadow.run` needs to know.

    `run` holds what a daemon is told too: configuration, addresses, logging. `following` are the
    profiles, each under the name of the scheduler that it judges. None of the ends: until stopped.
    """

    run: RunOptions
    following: tuple[ResolvedProfile, ...]
    latency_seconds: float = 3.0
    # None: what the profile of each says.
    percentage_of_nodes_to_score: int | None = None
    sample: float = 1.0
    out: Path | None = None
    for_seconds: float | None = None
    pods: int | None = None
    report_seconds: float = 30.0

    def percentages_of_nodes_to_score(self) -> dict[str, int]:
        given = self.percentage_of_nodes_to_score
        return {
            profile.scheduler_name: profile.percentage_of_nodes_to_score if given is None else given
            for profile in self.following
        }


def following_profiles(
    configuration: SchedulerConfiguration, wanted: Sequence[str]
) -> tuple[ResolvedProfile, ...]:
    """Return the profiles under the names of the schedulers to follow.

    `wanted` holds NAME, or NAME=PROFILE where the profile that judges has another name. Without
    any, every profile follows the scheduler of its own name. `nodeOwnership` counts for schedulers
    whose name is a profile's own, and for no others.
    """
    profiles = {profile.scheduler_name: profile for profile in configuration.profiles}
    if not wanted:
        return tuple(profiles.values())
    found: dict[str, ResolvedProfile] = {}
    for text in wanted:
        name, profile = _chosen(text, profiles)
        if name in found:
            raise UnknownProfileError(f'"{name}" is to be followed twice')
        if name not in profiles:
            # Which nodes are ours alone says nothing about where another scheduler may place pods.
            profile = without_own_nodes(profile)
        found[name] = replace(profile, scheduler_name=name)
    return tuple(found.values())


def _chosen(text: str, profiles: Mapping[str, ResolvedProfile]) -> tuple[str, ResolvedProfile]:
    name, equals, chosen = text.partition("=")
    known = ", ".join(f'"{each}"' for each in profiles)
    if not name or (equals and not chosen):
        raise UnknownProfileError(f'"{text}" is neither NAME nor NAME=PROFILE')
    if equals:
        if chosen not in profiles:
            raise UnknownProfileError(f'no profile "{chosen}"; the configuration has {known}')
        return name, profiles[chosen]
    if name in profiles:
        return name, profiles[name]
    if len(profiles) == 1:
        return name, next(iter(profiles.values()))
    raise UnknownProfileError(
        f'no profile "{name}", and several to choose from: say --scheduler-name {name}=PROFILE, '
        f"with one of {known}"
    )
