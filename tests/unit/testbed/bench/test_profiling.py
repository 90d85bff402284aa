"""What `make profile` says before it starts."""

from testbed.bench import profiling


def test_a_sampler_that_is_not_installed_is_said_before_anything_runs(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(profiling.sysconfig, "get_path", lambda _: str(tmp_path))
    assert profiling.main([]) == 1
    assert f"{tmp_path / 'py-spy'} is not there" in capsys.readouterr().err
