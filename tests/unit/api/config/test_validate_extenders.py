"""Extenders that are wrong, or that can't be honoured yet."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

CASES = {
    "an extender": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  filterVerb: filter
""",
        [
            (
                "config.yaml:4: extenders[0]: extenders are not supported yet, and pods would be "
                'placed without its say; remove it, or set "ignorable: true" to run as if it '
                "could not be reached"
            ),
        ],
    ),
    "an extender without an address": (
        """\
extenders:
- {filterVerb: filter, ignorable: true}
""",
        [
            (
                "config.yaml:4: extenders[0].urlPrefix: Required value: write it like "
                '"http://127.0.0.1:8888/scheduler"'
            ),
        ],
    ),
    "an extender at no address": (
        """\
extenders:
- {urlPrefix: 127.0.0.1:8888, ignorable: true}
- {urlPrefix: 'ftp://a', ignorable: true}
- {urlPrefix: 'http://a:port', ignorable: true}
""",
        [
            (
                'config.yaml:4: extenders[0].urlPrefix: Invalid value: "127.0.0.1:8888": must be '
                'a URL; write it like "http://127.0.0.1:8888/scheduler"'
            ),
            (
                'config.yaml:5: extenders[1].urlPrefix: Invalid value: "ftp://a": must be a URL; '
                'write it like "http://127.0.0.1:8888/scheduler"'
            ),
            (
                'config.yaml:6: extenders[2].urlPrefix: Invalid value: "http://a:port": must be '
                'a URL; write it like "http://127.0.0.1:8888/scheduler"'
            ),
        ],
    ),
    "a password in what is no address": (
        """\
extenders:
- {urlPrefix: 'https://user:hunter22@a:port', ignorable: true}
- {urlPrefix: 'https://user:hunter/22@a', ignorable: true}
- {urlPrefix: 'user:hunter22@a:8888', ignorable: true}
- https://user:hunter22@a
""",
        [
            (
                "config.yaml:4: extenders[0].urlPrefix: Invalid value: "
                '"https://<redacted>@a:port": must be a URL; write it like "http://127.0.0.1:8888/scheduler"'
            ),
            (
                'config.yaml:5: extenders[1].urlPrefix: Invalid value: "https://<redacted>@a": '
                'must be a URL; write it like "http://127.0.0.1:8888/scheduler"'
            ),
            (
                'config.yaml:6: extenders[2].urlPrefix: Invalid value: "<redacted>@a:8888": '
                'must be a URL; write it like "http://127.0.0.1:8888/scheduler"'
            ),
            (
                "config.yaml:7: extenders[3]: must be a mapping, not the string "
                '"https://<redacted>@a"'
            ),
        ],
    ),
    "an extender whose scores weigh nothing": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  prioritizeVerb: prioritize
""",
        [
            (
                "config.yaml:4: extenders[0].weight: Invalid value: 0: must have a positive "
                "weight applied to it"
            ),
        ],
    ),
    "an extender with a negative weight": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  prioritizeVerb: prioritize
  weight: -1
""",
        [
            (
                "config.yaml:7: extenders[0].weight: Invalid value: -1: must have a positive "
                "weight applied to it"
            ),
        ],
    ),
    "two extenders that bind": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  bindVerb: bind
- urlPrefix: http://127.0.0.1:2
  ignorable: true
  bindVerb: bind
""",
        [
            (
                'config.yaml:3: extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ),
        ],
    ),
    "an extender with a negative timeout": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  httpTimeout: -1s
""",
        [
            (
                'config.yaml:6: extenders[0].httpTimeout: Invalid value: "-1s": must be zero or '
                "positive"
            ),
        ],
    ),
    "an extender with a number for a timeout": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  httpTimeout: 30
""",
        [
            (
                'config.yaml:6: extenders[0].httpTimeout: must be a duration like "15s", not the '
                "number 30"
            ),
        ],
    ),
    "extenders for the same resource": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  managedResources: [{name: example.com/a}, {name: example.com/a}]
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  managedResources: [{name: example.com/a}]
""",
        [
            (
                "config.yaml:6: extenders[0].managedResources[1].name: Invalid value: "
                '"example.com/a": duplicate extender managed resource name'
            ),
            (
                "config.yaml:9: extenders[1].managedResources[0].name: Invalid value: "
                '"example.com/a": duplicate extender managed resource name'
            ),
        ],
    ),
    "an extender for resources it can't have": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  managedResources: [{name: cpu}, {name: a b}, {}]
""",
        [
            (
                'config.yaml:6: extenders[0].managedResources[0].name: Invalid value: "cpu": is '
                "an invalid extended resource name"
            ),
            (
                'config.yaml:6: extenders[0].managedResources[1].name: Invalid value: "a b": '
                'must be a qualified name: up to 63 letters, digits, "-", "_" or ".", with a '
                'letter or digit at both ends, after an optional DNS name and "/"'
            ),
            (
                'config.yaml:6: extenders[0].managedResources[2].name: Invalid value: "": must '
                'be a qualified name: up to 63 letters, digits, "-", "_" or ".", with a letter '
                'or digit at both ends, after an optional DNS name and "/"'
            ),
        ],
    ),
    "an extender with an unknown field": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  filterVerbs: filter
""",
        [
            (
                'config.yaml:6: extenders[0].filterVerbs: unknown field "filterVerbs"; did you '
                'mean "filterVerb"?'
            ),
        ],
    ),
    "an extender that trusts nobody and somebody": (
        """\
extenders:
- urlPrefix: https://127.0.0.1:1
  ignorable: true
  enableHTTPS: true
  tlsConfig: {insecure: true, caFile: /ca.crt}
""",
        [
            (
                "config.yaml:7: extenders[0].tlsConfig.insecure: Forbidden: specifying a root "
                "certificates file with the insecure flag is not allowed"
            ),
        ],
    ),
    "an extender with half a certificate": (
        """\
extenders:
- urlPrefix: https://127.0.0.1:1
  ignorable: true
  tlsConfig: {certFile: /a.crt}
- urlPrefix: https://127.0.0.1:2
  ignorable: true
  tlsConfig: {keyData: AAAA}
""",
        [
            (
                "config.yaml:6: extenders[0].tlsConfig.keyFile: Required value: the certificate "
                "needs its key"
            ),
            (
                "config.yaml:9: extenders[1].tlsConfig.certFile: Required value: the key needs "
                "its certificate"
            ),
        ],
    ),
    "extenders that are no list": (
        """\
extenders: {urlPrefix: http://127.0.0.1:1}
""",
        [
            "config.yaml:3: extenders: must be a list, not a mapping",
        ],
    ),
    "an extender that is text": (
        """\
extenders: [http://127.0.0.1:1]
""",
        [
            ('config.yaml:3: extenders[0]: must be a mapping, not the string "http://127.0.0.1:1"'),
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
