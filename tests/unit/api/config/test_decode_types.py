"""Fields that do not exist, and values of the wrong type."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

# Python reads and writes no decimal number of more than 4,300 digits, and no float holds either.
ENDLESS = "1" + "0" * 400
ENDLESS_HEX = "0x" + "f" * 5000

CASES = {
    "unknown field at the top": (
        "profile: []\n",
        ['config.yaml:3: profile: unknown field "profile"; did you mean "profiles"?'],
    ),
    "unknown field far from any name": (
        "xyzzy: 1\n",
        ['config.yaml:3: xyzzy: unknown field "xyzzy"'],
    ),
    "unknown field in another case": (
        "leaderelection: {}\n",
        [
            (
                'config.yaml:3: leaderelection: unknown field "leaderelection"; did you mean '
                '"leaderElection"?'
            )
        ],
    ),
    "unknown field deep inside": (
        """\
profiles:
- plugins:
    filters: {}
""",
        [
            (
                'config.yaml:5: profiles[0].plugins.filters: unknown field "filters"; did you '
                'mean "filter"?'
            )
        ],
    ),
    "unknown field in a list": (
        """\
profiles:
- plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        wieght: 2
""",
        [
            (
                "config.yaml:8: profiles[0].plugins.score.enabled[0].wieght: unknown field "
                '"wieght"; did you mean "weight"?'
            )
        ],
    ),
    "the same field twice": (
        """\
parallelism: 4
parallelism: 5
""",
        ['config.yaml:4: parallelism: duplicate field "parallelism", first given on line 3'],
    ),
    "the same field twice deep inside": (
        """\
leaderElection:
  leaderElect: true
  leaderElect: false
""",
        [
            (
                'config.yaml:5: leaderElection.leaderElect: duplicate field "leaderElect", first '
                "given on line 4"
            )
        ],
    ),
    "string for an integer": (
        'podMaxBackoffSeconds: "10"\n',
        ['config.yaml:3: podMaxBackoffSeconds: must be an integer, not the string "10"'],
    ),
    "fraction for an integer": (
        "podMaxBackoffSeconds: 1.5\n",
        ["config.yaml:3: podMaxBackoffSeconds: must be an integer, not the number 1.5"],
    ),
    "integer out of range": (
        "parallelism: 4294967296\n",
        [
            (
                "config.yaml:3: parallelism: must be an integer from -2147483648 to 2147483647, "
                "not the number 4294967296"
            )
        ],
    ),
    "boolean for an integer": (
        "podMaxBackoffSeconds: true\n",
        ["config.yaml:3: podMaxBackoffSeconds: must be an integer, not true"],
    ),
    "string for a boolean": (
        'leaderElection: {leaderElect: "true"}\n',
        [
            (
                "config.yaml:3: leaderElection.leaderElect: must be true or false, not the "
                'string "true"'
            )
        ],
    ),
    "number for a string": (
        """\
profiles:
- schedulerName: 7
""",
        ["config.yaml:4: profiles[0].schedulerName: must be a string, not the number 7"],
    ),
    "list for a mapping": (
        "leaderElection: []\n",
        ["config.yaml:3: leaderElection: must be a mapping, not a list"],
    ),
    "mapping for a list": (
        "profiles: {}\n",
        ["config.yaml:3: profiles: must be a list, not a mapping"],
    ),
    "string for a list": (
        "profiles: a\n",
        ['config.yaml:3: profiles: must be a list, not the string "a"'],
    ),
    "string for an element": (
        """\
profiles:
- fast
- schedulerName: b
""",
        ['config.yaml:4: profiles[0]: must be a mapping, not the string "fast"'],
    ),
    "string for a number": (
        "clientConnection: {qps: fast}\n",
        ['config.yaml:3: clientConnection.qps: must be a finite number, not the string "fast"'],
    ),
    "infinite number": (
        "clientConnection: {qps: .inf}\n",
        ["config.yaml:3: clientConnection.qps: must be a finite number, not the number inf"],
    ),
    "number for a duration": (
        "leaderElection: {leaseDuration: 15}\n",
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: must be a duration like "15s", not '
                "the number 15"
            )
        ],
    ),
    "duration without unit": (
        'leaderElection: {leaseDuration: "15"}\n',
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: "15" is not a duration; write it '
                'like "15s", "5m0s" or "1h"'
            )
        ],
    ),
    "duration in days": (
        "leaderElection: {leaseDuration: 1d}\n",
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: "1d" is not a duration; write it '
                'like "15s", "5m0s" or "1h"'
            )
        ],
    ),
    "a number without end": (
        f"clientConnection: {{qps: {ENDLESS}}}\nparallelism: {ENDLESS_HEX}\n",
        [
            (
                "config.yaml:3: clientConnection.qps: must be a finite number, not the string "
                f'"{ENDLESS}"'
            ),
            f'config.yaml:4: parallelism: must be an integer, not the string "{ENDLESS_HEX}"',
        ],
    ),
    "a number that only a real one holds": (
        "parallelism: 1" + "0" * 300 + "\n",
        [
            (
                "config.yaml:3: parallelism: must be an integer from -2147483648 to 2147483647, "
                "not the number 1e+300"
            )
        ],
    ),
    "line breaks in names and values": (
        '"a\\nb\\u2028c\\e[0m": 1\nleaderElection: {leaseDuration: "x\\r\\ny"}\n',
        [
            ('config.yaml:3: ["a\\nb\\u2028c\\u001b[0m"]: unknown field "a\\nb\\u2028c\\x1b[0m"'),
            (
                'config.yaml:4: leaderElection.leaseDuration: "x\\r\\ny" is not a duration; write '
                'it like "15s", "5m0s" or "1h"'
            ),
        ],
    ),
    "half of a character": (
        'profiles: [{schedulerName: "\\ud800"}]\n',
        [
            (
                "config.yaml:3: profiles[0].schedulerName: holds half of a character: an escape "
                "from \\ud800 to \\udfff stands alone"
            )
        ],
    ),
    "args that are a list": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: [1]
""",
        ["config.yaml:6: profiles[0].pluginConfig[0].args: must be a mapping, not a list"],
    ),
    "key that is not base64": (
        """\
extenders:
- urlPrefix: http://127.0.0.1:1
  ignorable: true
  tlsConfig: {certData: '*'}
""",
        ["config.yaml:6: extenders[0].tlsConfig.certData: must be text in base64"],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
