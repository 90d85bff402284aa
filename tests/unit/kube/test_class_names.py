"""A class of the Kubernetes layer is found by its name alone."""

import re
from collections import Counter
from pathlib import Path

from k8s_scheduler import kube

_PUBLIC_CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)


def test_no_public_class_name_is_used_twice():
    sources = Path(kube.__file__).parent.rglob("*.py")
    found = Counter(
        name for path in sources for name in _PUBLIC_CLASS.findall(path.read_text("utf-8"))
    )
    assert len(found) > 100
    assert [name for name, count in found.items() if count > 1] == []
