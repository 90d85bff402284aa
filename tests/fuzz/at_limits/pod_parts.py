"""What pods can have thousands of."""

from collections.abc import Iterator

from tests.fuzz.at_limits.api_rules import Raw, expression, resource_name
from tests.fuzz.at_limits.parts import METADATA, Part, Words

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
# Labels that pods of others have.
OTHERS_APPS = tuple(f"app-{i}" for i in range(8))


def _resources(pod: Raw, words: Words, count: int) -> None:
    amounts = {resource_name(words.name("r", i)): str(1 + i % 3) for i in range(count)}
    where = pod["spec"]["containers"][0]["resources"]
    where["requests"] = {**where.get("requests", {}), **amounts}
    where["limits"] = {**where.get("limits", {}), **amounts}


def _containers(pod: Raw, words: Words, count: int) -> None:
    pod["spec"]["containers"] += [_container(words, "c", i) for i in range(count)]


def _init_containers(pod: Raw, words: Words, count: int) -> None:
    inits = [_container(words, "i", i) for i in range(count)]
    for container in inits[::3]:
        container["restartPolicy"] = "Always"
    pod["spec"]["initContainers"] = inits


def _container(words: Words, text: str, number: int) -> Raw:
    image = f"registry.example.com/{words.name('image', number)}:v{number}"
    requests = {"cpu": "1m", "memory": f"{1 + number % 5}Ki"}
    return {"name": f"{text}{number}", "image": image, "resources": {"requests": requests}}


def _selectors(words: Words) -> Iterator[Raw]:
    """Yield selectors, all different: they pick all pods, those of others, or none."""
    kind = words.rng.choice(("absent key", "other value", "others' app", "nobody"))
    number = 0
    while True:
        key = words.key("k", number)
        if kind == "absent key":
            yield {"matchExpressions": [expression(key, "DoesNotExist")]}
        elif kind == "other value":
            yield {"matchExpressions": [expression("app", "NotIn", words.name("v", number))]}
        elif kind == "others' app":
            own = words.name("v", number)
            yield {"matchExpressions": [expression("app", "In", *OTHERS_APPS[:3], own)]}
        else:
            yield {"matchLabels": {key: "v"}}
        number += 1


def _terms(words: Words, count: int) -> list[Raw]:
    namespaces = words.rng.choice(({"namespaceSelector": {}}, {"namespaces": ["shop"]}, {}))
    keys = words.rng.choice(((HOST,), (ZONE,), (HOST, ZONE, RACK), ()))
    return [
        {
            "topologyKey": keys[i % len(keys)] if keys else words.key("t", i),
            "labelSelector": selector,
            **namespaces,
        }
        for i, selector in zip(range(count), _selectors(words), strict=False)
    ]


def _add_terms(pod: Raw, kind: str, when: str, terms: list[Raw]) -> None:
    affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
    if when == PREFERRED:
        terms = [{"weight": 1 + i % 100, "podAffinityTerm": term} for i, term in enumerate(terms)]
    affinity[when] = terms


def _hard_terms(pod: Raw, words: Words, count: int) -> None:
    kind = words.rng.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
    _add_terms(pod, kind, REQUIRED, _terms(words, count))


def _soft_terms(pod: Raw, words: Words, count: int) -> None:
    kind = words.rng.choice(("podAntiAffinity", "podAffinity"))
    _add_terms(pod, kind, PREFERRED, _terms(words, count))


def _term_of_expressions(pod: Raw, words: Words, count: int) -> None:
    term = {
        "topologyKey": words.rng.choice((HOST, ZONE)),
        "labelSelector": {
            "matchExpressions": [
                expression(words.key("k", i), "DoesNotExist") for i in range(count)
            ]
        },
        "namespaceSelector": {},
    }
    when = words.rng.choice((REQUIRED, PREFERRED))
    _add_terms(pod, "podAntiAffinity", when, [term])


def _term_of_values(pod: Raw, words: Words, count: int) -> None:
    values = [words.name("v", i) for i in range(count)]
    operator = words.rng.choice(("In", "NotIn"))
    term = {
        "topologyKey": words.rng.choice((HOST, ZONE)),
        "labelSelector": {"matchExpressions": [expression("app", operator, *values)]},
        "namespaceSelector": {},
    }
    when = words.rng.choice((REQUIRED, PREFERRED))
    _add_terms(pod, words.rng.choice(("podAntiAffinity", "podAffinity")), when, [term])


def _term_of_namespaces(pod: Raw, words: Words, count: int) -> None:
    term = {
        "topologyKey": HOST,
        "labelSelector": {},
        "namespaces": ["shop", *(words.name("n", i) for i in range(count - 1))],
    }
    _add_terms(pod, "podAntiAffinity", words.rng.choice((REQUIRED, PREFERRED)), [term])


def _spread(pod: Raw, words: Words, count: int) -> None:
    """No two have the same key and the same word."""
    word = words.rng.choice(("DoNotSchedule", "ScheduleAnyway"))
    with_keys_of_nodes = words.rng.random() < 0.5
    selectors = _selectors(words)
    found = []
    for i in range(count):
        known = with_keys_of_nodes and i < len(NODE_KEYS)
        constraint = {
            "maxSkew": 1 + i % 4,
            "topologyKey": NODE_KEYS[i] if known else words.key("t", i),
            "whenUnsatisfiable": word,
            "labelSelector": next(selectors),
        }
        if word == "DoNotSchedule" and i % 7 == 3:
            constraint["minDomains"] = 2
        if i % 5 == 2:
            constraint["nodeAffinityPolicy"] = "Ignore"
            constraint["nodeTaintsPolicy"] = "Honor"
        found.append(constraint)
    pod["spec"]["topologySpreadConstraints"] = found


# Labels that ordinary nodes have: see `neighbours`.
NODE_KEYS = (HOST, ZONE, RACK, *(f"node.example.com/feature-{i}" for i in range(12)))


def _node_terms(pod: Raw, words: Words, count: int) -> None:
    terms = [
        {"matchExpressions": [expression(words.key("k", i), "DoesNotExist")]}
        if i % 2
        else {"matchFields": [expression("metadata.name", "In", words.name("n", i))]}
        for i in range(count)
    ]
    _node_affinity(pod, words, terms)


def _node_affinity(pod: Raw, words: Words, terms: list[Raw]) -> None:
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if words.rng.random() < 0.6:
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}
    else:
        affinity[PREFERRED] = [
            {"weight": 1 + i % 100, "preference": term} for i, term in enumerate(terms)
        ]


def _node_expressions(pod: Raw, words: Words, count: int) -> None:
    operator = words.rng.choice(("DoesNotExist", "NotIn", "Exists", "Gt"))
    key_of_nodes = words.rng.random() < 0.4
    expressions = []
    for i in range(count):
        key = HOST if key_of_nodes and operator in {"NotIn", "Gt"} else words.key("k", i)
        values = {"NotIn": (words.name("v", i),), "Gt": (str(i),)}.get(operator, ())
        expressions.append(expression(key, operator, *values))
    _node_affinity(pod, words, [{"matchExpressions": expressions}])


def _node_values(pod: Raw, words: Words, count: int) -> None:
    values = [words.name("v", i) for i in range(count)]
    operator = words.rng.choice(("In", "NotIn"))
    _node_affinity(pod, words, [{"matchExpressions": [expression(HOST, operator, *values)]}])


def _node_selector(pod: Raw, words: Words, count: int) -> None:
    pod["spec"]["nodeSelector"] = {words.key("k", i): "v" for i in range(count)}


def _tolerations(pod: Raw, words: Words, count: int) -> None:
    found = pod["spec"].setdefault("tolerations", [])
    for i in range(count):
        toleration = {"key": words.key("k", i), "effect": "NoSchedule"}
        if i % 2:
            toleration["operator"] = "Exists"
        else:
            toleration |= {"operator": "Equal", "value": words.name("v", i)}
        found.append(toleration)


def _host_ports(pod: Raw, words: Words, count: int) -> None:
    first = words.rng.randrange(1000, 40_000)
    pod["spec"]["containers"][0]["ports"] = [
        {
            "containerPort": 1 + i % 60_000,
            "hostPort": 1 + (first + i) % 65_000,
            "protocol": ("TCP", "UDP", "SCTP")[i // 65_000 % 3],
            "hostIP": f"10.{words.rng.randrange(250)}.0.1",
        }
        for i in range(min(count, 65_000))
    ]


def _claims(pod: Raw, words: Words, count: int) -> None:
    def source(i: int) -> Raw:
        return {"persistentVolumeClaim": {"claimName": words.name("c", i)}}

    _volumes(pod, words, count, source)


def _ephemeral(pod: Raw, words: Words, count: int) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    source = {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    _volumes(pod, words, count, lambda _: source)


def _disks(pod: Raw, words: Words, count: int) -> None:
    kinds = (
        lambda i: {"gcePersistentDisk": {"pdName": words.name("d", i)}},
        lambda i: {"awsElasticBlockStore": {"volumeID": words.name("d", i)}},
        lambda i: {"rbd": {"monitors": [words.name("m", i)], "image": words.name("d", i)}},
        lambda i: {
            "iscsi": {
                "targetPortal": "10.0.0.1:3260",
                "iqn": f"iqn.2001-04.com.example:d{i}",
                "lun": 0,
            }
        },
    )
    _volumes(pod, words, count, words.rng.choice(kinds))


def _files(pod: Raw, words: Words, count: int) -> None:
    _volumes(pod, words, count, lambda i: {"configMap": {"name": words.name("f", i)}})


def _volumes(pod: Raw, words: Words, count: int, source) -> None:
    found = pod["spec"].setdefault("volumes", [])
    first = len(found)
    found += [{"name": f"v{first + i}", **source(i)} for i in range(count)]


def _gates(pod: Raw, words: Words, count: int) -> None:
    pod["spec"]["schedulingGates"] = [{"name": words.key("g", i)} for i in range(count)]


def _environment(pod: Raw, words: Words, count: int) -> None:
    """Much that scheduling does not read."""
    pod["spec"]["containers"][0]["env"] = [
        {"name": f"E{i}", "value": words.name("v", i)} for i in range(count)
    ]


def _resource_claims(pod: Raw, words: Words, count: int) -> None:
    pod["spec"]["resourceClaims"] = [
        {"name": f"r{i}", "resourceClaimName": words.name("c", i)} for i in range(count)
    ]


POD_PARTS = (
    *METADATA,
    Part("resources", _resources, limit="resources"),
    Part("containers", _containers, limit="containers"),
    Part("init containers", _init_containers, limit="containers"),
    Part("hard terms", _hard_terms, limit="affinity_terms"),
    Part("soft terms", _soft_terms, limit="affinity_terms"),
    Part("expressions of a term", _term_of_expressions, limit="selector_expressions"),
    Part("values of a term", _term_of_values, limit="selector_values"),
    Part("namespaces of a term", _term_of_namespaces, limit="selector_values"),
    Part("spread constraints", _spread, limit="topology_spread_constraints"),
    Part("node terms", _node_terms, limit="node_selector_terms"),
    Part("node expressions", _node_expressions, limit="node_selector_expressions"),
    Part("node values", _node_values, limit="node_selector_values"),
    Part("node selector", _node_selector, limit="node_selector_expressions"),
    Part("tolerations", _tolerations, limit="tolerations"),
    Part("host ports", _host_ports, most=65_000, limit="host_ports"),
    Part("claims", _claims, limit="claims"),
    Part("ephemeral volumes", _ephemeral, limit="claims"),
    Part("disks", _disks, limit="volumes"),
    Part("files", _files),
    Part("environment", _environment),
    Part("resource claims", _resource_claims, limit="claims"),
)
# A pod with these has no node.
GATES = Part("gates", _gates)
