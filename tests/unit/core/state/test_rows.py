"""Numbers of rows never come again, also where rows are cut off and others come."""

from k8s_scheduler.core.state.rows import RowVersions


def test_a_change_makes_another_number():
    versions = RowVersions()
    before = versions.at(3)
    versions.changed(3)
    assert versions.at(3) > before
    assert versions.at(2) == before


def test_a_row_in_the_place_of_one_that_was_cut_off_has_numbers_of_its_own():
    versions = RowVersions()
    seen = [versions.at(3)]
    for _ in range(4):
        versions.changed(3)
        seen.append(versions.at(3))
    versions.changed(0)
    kept = versions.at(0)
    versions.cut(2)
    assert versions.at(0) == kept
    versions.changed(3)
    assert versions.at(3) not in seen
