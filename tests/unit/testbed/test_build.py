import io

import pytest

from testbed.build import (
    CONTROL_PLANE,
    CONTROL_PLANE_LINKS,
    KWOK,
    STAGES,
    build_dir,
    ensure_built,
    link_flags,
)
from testbed.errors import BuildError
from testbed.versions import read_versions

ALL = {CONTROL_PLANE, KWOK, STAGES}


@pytest.fixture
def build(fake_go, module_dir, tmp_path):
    """Build with the fake Go; everything it prints goes to `screen`."""

    def run(products=ALL, screen=None):
        return ensure_built(
            products,
            cache=tmp_path / "cache",
            module_dir=module_dir,
            screen=screen or io.StringIO(),
        )

    return run


def test_server_is_stamped_with_the_pinned_version(module_dir):
    flags = link_flags(read_versions(module_dir))
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.1" in flags
    assert "version.gitMajor=1 " in flags
    assert "version.gitMinor=37 " in flags


def test_every_name_of_the_control_plane_leads_to_the_one_binary(build):
    built = build()
    for link in CONTROL_PLANE_LINKS:
        assert (built.bin / link).readlink().name == CONTROL_PLANE
        assert (built.bin / link).resolve() == (built.bin / CONTROL_PLANE).resolve()
    assert (built.bin / KWOK).is_file()


def test_stages_of_kwok_are_kept_beside_the_binaries(build):
    text = build().product(STAGES).read_text()
    assert text.count("kind: Stage") == 5
    assert text.count("---") == 4


def test_second_run_needs_no_go(build, fake_go):
    build()
    calls = len(fake_go.calls)
    build()
    assert len(fake_go.calls) == calls


def test_only_what_is_missing_is_compiled(build, fake_go):
    build({CONTROL_PLANE})
    build()
    compiled = [call for call in fake_go.calls if call.startswith("build -v")]
    assert [call.split()[-1] for call in compiled] == [".", "sigs.k8s.io/kwok/cmd/kwok"]


def test_first_build_says_what_it_builds_and_how_long_it_takes(build):
    screen = io.StringIO()
    build(screen=screen)
    first, *_, last = screen.getvalue().splitlines()
    assert "etcd v3.7.0 and Kubernetes v1.37.1 and kwok v0.8.0" in first
    assert "8 to 10 minutes" in first
    assert last.startswith("testbed: built controlplane, kwok, stages.yaml in ")


class TestFailure:
    """What does not succeed leaves nothing that could be taken for a build."""

    def leftovers(self, module_dir, tmp_path):
        folder = build_dir(cache=tmp_path / "cache", module_dir=module_dir).path
        return sorted(path.name for path in folder.rglob("*") if path.name != "bin")

    def test_compiler_error_is_shown_without_the_noise_of_package_names(
        self, build, fake_go, module_dir, tmp_path
    ):
        fake_go.break_compiler()
        with pytest.raises(BuildError) as caught:
            build()
        lines = str(caught.value).splitlines()
        assert lines[1:] == ["# two", "main.go:3: undefined: nothing"]
        assert self.leftovers(module_dir, tmp_path) == []

    def test_interruption_leaves_nothing_half(self, build, module_dir, tmp_path, monkeypatch):
        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr("testbed.build.compile_packages", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build()
        assert self.leftovers(module_dir, tmp_path) == []

    def test_leavings_of_a_killed_build_are_removed_by_the_next(self, build, module_dir, tmp_path):
        folder = build_dir(cache=tmp_path / "cache", module_dir=module_dir).path
        (folder / "scratch-dead").mkdir(parents=True)
        build()
        assert not (folder / "scratch-dead").exists()

    def test_build_works_after_a_failed_one(self, build, fake_go):
        fake_go.break_compiler()
        with pytest.raises(BuildError):
            build()
        fake_go.repair_compiler()
        assert build().missing(ALL) == []
