"""Takes and restores checkpoints: the whole state as data."""

import msgspec

from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod
from k8s_scheduler.core.messages.checkpoint import (
    ChangeEntry,
    Checkpoint,
    NodeEntry,
    NominationEntry,
    ObjectChangeEntry,
    ObjectEntry,
    PodEntry,
    QueueEntry,
)
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.news.changes import Change, Changes, ObjectChange
from k8s_scheduler.core.state.news.pod_news import PodNews
from k8s_scheduler.core.state.rows import NodeRow


def take_checkpoint(state: CoreState) -> Checkpoint:
    """Return everything a core of the same configuration needs to go on from here."""
    cache, queue = state.cache, state.queue
    table = cache.nodes
    noted = cache.changes.peek()
    return Checkpoint(
        row_count=table.row_count,
        nodes=tuple(NodeEntry(row, name, table.node_at(row)) for row, name in table.used_rows()),
        pods=tuple(PodEntry(row, pod, assumed) for row, pod, assumed in cache.placed_pods()),
        objects=tuple(ObjectEntry(*entry) for entry in cache.objects.entries()),
        nominations=tuple(NominationEntry(node, pod) for node, pod in cache.nominations.entries()),
        # Who entered first stands first: order among equals is part of the state.
        queue=tuple(_entry(queued, queue) for queued in sorted(queue, key=lambda q: q.sequence)),
        in_flight=state.in_flight.entries(),
        evictions=state.preemptions.entries(),
        suspensions=state.suspensions.entries(),
        changes=tuple(
            ChangeEntry(row, change.value, noted.row_numbers[row])
            for row, change in noted.rows.items()
        ),
        object_changes=tuple(
            ObjectChangeEntry(kind, change.value, noted.object_numbers[kind])
            for kind, change in noted.objects.items()
        ),
        next_sequence=queue.places.next_sequence,
        last_backoff_flush=queue.last_backoff_flush,
        last_parked_flush=queue.last_parked_flush,
        next_sampling_start=state.sampling.next_start,
        last_request=state.out.last_request,
        change_count=cache.changes.count,
        granted=tuple(state.preemptions.granted),
        generation=state.profiles.generation,
        earlier=state.profiles.entries(),
        unconfirmed=state.unconfirmed.entries(),
        held_back=queue.held_back,
        over_limit=state.limiting.entries(),
        quarantine=queue.quarantine.entries(),
        victim_limit=state.victim_limit.entry(),
        renewals=state.renewals.entry(),
    )


def _entry(queued: QueuedPod, queue: SchedulingQueue) -> QueueEntry:
    """Return a pending pod as data; a parked one with all that is known to reject its group."""
    entry = queued.entry()
    if queued.uid not in queue.parked or not queued.rejectors:
        return entry
    rejectors = tuple(sorted(queue.parked.group_of(queued).rejectors))
    return msgspec.structs.replace(entry, rejectors=rejectors)


def restore(checkpoint: Checkpoint, state: CoreState) -> None:
    cache, queue = state.cache, state.queue
    if cache.nodes.row_count or len(queue):
        raise ValueError("only an empty core can be restored")
    _fill(cache, checkpoint)
    for promise in checkpoint.nominations:
        cache.nominations.put(promise.pod, promise.node)
    queue.hold_back(checkpoint.held_back)
    queue.quarantine.restore(checkpoint.quarantine)
    for entry in checkpoint.queue:
        queue.restore(QueuedPod.from_entry(entry))
    queue.quarantine.restore_due(checkpoint.quarantine)
    for flight in checkpoint.in_flight:
        state.in_flight.start(InFlightPod.from_entry(flight))
    state.preemptions.restore(checkpoint.evictions, checkpoint.granted)
    for suspension in checkpoint.suspensions:
        state.suspensions.restore(suspension)
    for waiting in checkpoint.unconfirmed:
        state.unconfirmed.restore(waiting)
    state.limiting.restore(checkpoint.over_limit, queue)
    state.victim_limit.restore(checkpoint.victim_limit)
    # What filling the tables noted is not news; what the checkpoint had noted is.
    cache.changes.drain()
    cache.changes.take_back(
        Changes(
            {NodeRow(c.row): Change(c.change) for c in checkpoint.changes},
            {c.kind: ObjectChange(c.change) for c in checkpoint.object_changes},
            {NodeRow(c.row): c.number for c in checkpoint.changes},
            {c.kind: c.number for c in checkpoint.object_changes},
            PodNews(is_any=True),
        )
    )
    queue.places.next_sequence = checkpoint.next_sequence
    queue.last_backoff_flush = checkpoint.last_backoff_flush
    queue.last_parked_flush = checkpoint.last_parked_flush
    state.sampling.next_start = checkpoint.next_sampling_start
    state.out.last_request = checkpoint.last_request
    cache.changes.count = checkpoint.change_count
    state.renewals.restore(checkpoint.renewals)


def _fill(cache: Cache, checkpoint: Checkpoint) -> None:
    cache.nodes.lay_out(
        rows=checkpoint.row_count,
        names={NodeRow(entry.row): entry.name for entry in checkpoint.nodes},
    )
    for node in checkpoint.nodes:
        if node.node is not None:
            cache.put_node(node.node)
    for pod in checkpoint.pods:
        if pod.assumed:
            cache.assume(pod.pod, NodeRow(pod.row))
        else:
            cache.put_bound(pod.pod)
    for found in checkpoint.objects:
        read = msgspec.convert(found.object, found.kind.type)
        cache.objects.put(found.kind, found.namespace, found.name, read)
        if found.assumed is not None:
            cache.objects.assume(found.kind, msgspec.convert(found.assumed, found.kind.type))
