"""What a benchmark says it ran on."""

import subprocess
from pathlib import Path

import k8s_scheduler
from testbed.bench.provenance import machine, versions
from testbed.binaries import Binary, Toolset


def find(components):
    return Toolset({name: Binary(Path("/x"), f"v-{name}", "PATH") for name in components})


def git(folder, *arguments):
    command = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_the_versions_are_those_of_the_programs_that_run(tmp_path):
    assert versions(find=find, project=tmp_path) == {
        "k8s-scheduler": k8s_scheduler.__version__,
        "commit": "unknown",
        "python": versions(find=find)["python"],
        "kube-scheduler": "v-kube-scheduler",
        "kube-apiserver": "v-kube-apiserver",
        "etcd": "v-etcd",
    }


def test_a_commit_that_is_not_all_of_the_tree_says_so(tmp_path):
    git(tmp_path, "init")
    file = tmp_path / "file"
    file.write_text("a")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "a")
    clean = versions(find=find, project=tmp_path)["commit"]
    assert len(clean) == 12
    file.write_text("b")
    assert versions(find=find, project=tmp_path)["commit"] == f"{clean} with changes"


def test_the_machine_has_cores_and_memory():
    found = machine()
    assert found["cores"] >= 1
    assert found["memory_gib"] > 0
