"""`make sbom`: what the image holds of Python packages, as a CycloneDX document.

It is made from requirements.lock, which the image is built from, so it lists what runs and the
hashes that were checked, and not what a machine happens to have installed. Licences come from the
metadata of the installed packages; one that says nothing of its licence is listed without. The
Debian packages of the base image are not in it: scanners of images know those.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).parent.parent
_REQUIREMENT = re.compile(r"(?P<name>[a-z0-9._-]+)==(?P<version>[^\s;]+)(?P<rest>[^\n]*)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VERSION = re.compile(r'__version__ = "(.+)"')


def components(lock: str, licences: dict[str, str]) -> Iterator[Component]:
    """Yield a component for each line of a lock file: a package may have one for each marker."""
    licence_of = LicenseFactory()
    for line in lock.replace("\\\n", " ").splitlines():
        found = _REQUIREMENT.match(line)
        if found is None:
            continue
        name, version = found["name"], found["version"]
        licence = licences.get(name)
        yield Component(
            type=ComponentType.LIBRARY,
            name=name,
            version=version,
            bom_ref=f"{name}@{version}",
            purl=PackageURL("pypi", name=name, version=version),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=h) for h in _HASH.findall(line)],
            licenses=[licence_of.make_from_string(licence)] if licence else [],
        )


def licence_of(package: Distribution) -> str:
    """Return what a package says of its licence in one line; empty if that is nothing."""
    metadata = package.metadata
    expression = metadata.get("License-Expression") or metadata.get("License") or ""
    if expression and "\n" not in expression:
        return expression
    named = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    return named[0].rpartition(" :: ")[2] if named else ""


def document(lock: str, licences: dict[str, str], version: str) -> str:
    """Return the whole document."""
    bom = Bom(components=components(lock, licences))
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION,
        name="k8s-scheduler",
        version=version,
        bom_ref="k8s-scheduler",
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    bom.register_dependency(bom.metadata.component, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def main(packages: Path, out: Path) -> None:
    """Write the document of the lock file, with the licences that a folder of packages names."""
    found = {
        re.sub(r"[-_.]+", "-", package.name).lower(): licence_of(package)
        for package in distributions(path=[str(packages)])
    }
    source = (ROOT / "k8s_scheduler" / "__init__.py").read_text(encoding="utf-8")
    version = _VERSION.search(source)
    if version is None:
        sys.exit("k8s_scheduler/__init__.py names no version")
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(document(lock, found, version[1]), encoding="utf-8")
    print(f"{out}: {len(list(components(lock, found)))} packages")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
