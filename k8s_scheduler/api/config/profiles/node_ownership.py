"""Which nodes a scheduler takes for its own: a node selector for all of its profiles.

It becomes a filter of each profile, before all others, and nothing at all where it is not set. It
belongs to the scheduler and not to a profile, so no profile can leave it out.
"""

from dataclasses import replace
from typing import Final

from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.extras import NodeOwnershipSettings
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, required, unsupported
from k8s_scheduler.api.config.node_selector import selector_errors
from k8s_scheduler.api.config.types import PluginUse, ResolvedProfile
from k8s_scheduler.api.selectors.nodes import NAME_FIELD

NODE_OWNERSHIP: Final = "NodeOwnership"
_POINTS: Final = ("preFilter", "filter")


def ownership_errors(ownership: NodeOwnershipSettings, path: FieldPath) -> list[FieldError]:
    selector = ownership.node_selector
    if selector is None:
        return []
    at = (*path, "nodeSelector", "nodeSelectorTerms")
    empty = [
        required((*at, i), "a term without matchExpressions and matchFields picks no node")
        for i, term in enumerate(selector.node_selector_terms)
        if not term.match_expressions and not term.match_fields
    ]
    # Nodes have no other field: `NotIn` would make every node ours, and `In` none.
    fields = [
        unsupported((*at, i, "matchFields", j, "key"), field.key, [NAME_FIELD])
        for i, term in enumerate(selector.node_selector_terms)
        for j, field in enumerate(term.match_fields)
        if field.key != NAME_FIELD
    ]
    return selector_errors(selector, at) + empty + fields


def within_own_nodes(profile: ResolvedProfile, ownership: NodeOwnershipSettings) -> ResolvedProfile:
    """Return the profile with its nodes limited to those that are owned."""
    if ownership.node_selector is None:
        return profile
    first = {
        point: (PluginUse(NODE_OWNERSHIP), *profile.points.get(point, ())) for point in _POINTS
    }
    return replace(
        profile,
        points={**profile.points, **first},
        plugin_args={**profile.plugin_args, NODE_OWNERSHIP: encode(ownership)},
    )


def without_own_nodes(profile: ResolvedProfile) -> ResolvedProfile:
    """Return the profile with all nodes as candidates again, to judge another scheduler."""
    others = {
        point: tuple(use for use in uses if use.name != NODE_OWNERSHIP)
        for point, uses in profile.points.items()
    }
    args = {name: args for name, args in profile.plugin_args.items() if name != NODE_OWNERSHIP}
    return replace(profile, points=others, plugin_args=args)
