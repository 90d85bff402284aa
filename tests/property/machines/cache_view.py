"""Everything a cache holds, by the names of nodes and pods instead of by rows, positions and ids.

Two caches that know the same are equal here, whatever they have lived through.
"""

from collections import Counter
from typing import Any

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.nodes.labels import ABSENT, PREFIX
from k8s_scheduler.core.state.rows import NodeRow

# Columns of ids: what an id stands for is compared elsewhere.
IDS = ("taint_set", "feature_set")


def look_into(cache: Cache, label_keys: list[str]) -> dict[str, Any]:
    """Return what decisions can read, and what the indexes hold."""
    return {
        "nodes": _nodes(cache),
        "columns": _columns(cache),
        "interned": _interned(cache),
        "labels": {key: _label(cache, key) for key in label_keys},
        "pods": _pods(cache),
        "index": _index(cache),
        "ports": _ports(cache),
        "images": _images(cache),
        "volumes": _volumes(cache),
    }


def _nodes(cache: Cache) -> dict[str, Any]:
    table = cache.nodes
    used = {name: table.node_at(row) for row, name in table.used_rows()}
    present = sorted(table.name_of(row) for row in table.present_rows().tolist())
    assert len(table) == len(present)
    assert all(table.row_of(name) == row for row, name in table.used_rows())
    return {"used": used, "present": present}


def _columns(cache: Cache) -> dict[tuple[str, str], Any]:
    """Return what is not nothing: a column that nobody has used yet is as good as one of zeros."""
    table = cache.nodes
    names = [n for n in table._columns._columns if not n.startswith(PREFIX) and n not in IDS]
    return {
        (column, name): value
        for column in names
        for row, name in table.used_rows()
        if (value := table.column(column)[row].item())
    }


def _interned(cache: Cache) -> dict[str, Any]:
    """Return what nodes have in common, by node and with the number of its users."""
    table = cache.nodes
    found: dict[str, Any] = {}
    for column, interner in (("taint_set", table.taint_sets), ("feature_set", table.feature_sets)):
        ids = table.column(column)
        found[column] = {name: interner[int(ids[row])] for row, name in table.used_rows()}
        found[f"{column} users"] = {
            value: interner._uses[value_id] for value_id, value in interner.items() if value_id
        }
    return found


def _label(cache: Cache, key: str) -> dict[str, str | None]:
    labels = cache.nodes.labels
    column = labels.column(key)
    return {
        name: None if column[row] == ABSENT else labels.value(int(column[row]))
        for row, name in cache.nodes.used_rows()
    }


def _pods(cache: Cache) -> dict[str, Any]:
    names = dict(cache.nodes.used_rows())
    placed = [
        (pod.metadata.uid, names[row], pod, assumed) for row, pod, assumed in cache.placed_pods()
    ]
    return {
        "placed": placed,
        "assumed": [uid for uid, *_ in placed if cache.is_assumed(PodUid(uid))],
        "nodes": {uid: cache.node_of(PodUid(uid)) for uid, *_ in placed},
        "counts": (cache.pod_count, cache.assumed_count, len(cache.pods)),
        # Nobody is on two nodes, and who came first stands first.
        "by node": {name: cache.pods_on(row) for row, name in cache.nodes.used_rows()},
    }


def _index(cache: Cache) -> dict[str, Any]:
    index, names = cache.pods, dict(cache.nodes.used_rows())
    sets, terms = index.label_sets, index.held_terms
    columns = {
        name: index.column(name).tolist()
        for name in ("row", "label_set", "holder", "terminating", "priority")
    }
    assert [placed.position for placed in index._placed] == list(range(len(index)))
    return {
        "pods": {
            placed.pod.metadata.uid: (
                names[NodeRow(columns["row"][i])],
                sets._keys[columns["label_set"][i]],
                terms._holders[columns["holder"][i]],
                columns["terminating"][i],
                columns["priority"][i],
            )
            for i, placed in enumerate(index._placed)
        },
        "label sets": Counter({key: sets._uses[found] for key, found in sets._ids.items()}),
        "terms": {
            term: sum(n * terms._uses[holder] for holder, n in terms.holders_of(term).items())
            for term in terms._held
        },
    }


def _ports(cache: Cache) -> dict[Any, Any]:
    return {
        port: {cache.nodes.name_of(row): dict(users) for row, users in rows.items()}
        for port, rows in cache.nodes.ports._users.items()
    }


def _images(cache: Cache) -> dict[Any, Any]:
    return {
        image: {cache.nodes.name_of(row): size for row, size in rows.items()}
        for image, rows in cache.nodes.images._rows.items()
    }


def _volumes(cache: Cache) -> dict[str, Any]:
    nodes, volumes = cache.nodes, cache.volumes
    counts = volumes.counts(nodes.row_count)
    return {
        "users": {nodes.name_of(row): dict(users) for row, users in volumes._rows.items()},
        "claims": {
            claim: {nodes.name_of(row): times for row, times in rows.items()}
            for claim, rows in volumes._claims.items()
        },
        "counts": {name: counts[row].item() for row, name in nodes.used_rows()},
    }


def left_over(cache: Cache) -> dict[tuple[str, int], Any]:
    """Return what columns hold in rows that nobody uses: it should be nothing."""
    table = cache.nodes
    used = {row for row, _ in table.used_rows()}
    free = [row for row in range(table._columns.capacity) if row not in used]
    found = {
        (column, row): values[row].item()
        for column in table._columns._columns
        for values in (table._columns[column],)
        for row in free
        if values[row].item() != table._columns._fills[column]
    }
    volumes = cache.volumes.counts(table.row_count)
    found |= {
        ("volumes", row): volumes[row].item() for row in free if row < len(volumes) and volumes[row]
    }
    return found
