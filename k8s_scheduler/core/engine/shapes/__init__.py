"""Shapes of pods and what is known about them: evaluations that are kept and caught up.

How what decides for a pod is found, caught up and used (`ShapeCache.find`, then `best`):

    pod ─► spec ─► answers ─► evaluation = rows + groups ─► best row
            │     (of its      │
            │      labels)     ├ rows: changed ones are judged again   (row_columns, row_scores)
            │                  └ groups: one row of each kind is asked (group_columns, groups)
            │
            └ first of its spec: partial shape = rows ─► partial evaluation ─► best row
              (what differs in size or wanted nodes is asked anew)

Evaluations and partial shapes are kept alike, by spec and answers (`variant_cache`), and share rows
(`row_column_pool`). Why a pod was not decided on from here is counted in `tally`, by reason.
"""
