"""Columns of a table that contradict each other, or a given think time."""

import numpy as np
import pytest
from made import N, measured

from nummodel.answers.agreement import contradictions, other_think_time


@pytest.mark.parametrize("Z", [0.0, 1.0])
def test_a_closed_system_contradicts_nothing(Z):
    columns = measured(error=0.03, Z=Z)
    assert contradictions(**columns) == contradictions(**columns, Z=Z) == []


def test_more_requests_than_users_are_found():
    """As R in ms would be, or a queue in front of the users that are counted."""
    columns = measured()
    for R in (1000 * columns["R"], columns["R"] + 2.0):
        (sentence,) = contradictions(N, columns["X"], R)
        assert "requests are under way" in sentence


def test_a_load_that_was_not_kept_up_is_found():
    columns = measured()
    (sentence,) = contradictions(N, columns["X"] * np.where(N > 100, 0.5, 1.0), columns["R"])
    assert "at N = 300" in sentence or "at N = 160" in sentence
    assert "not for" in sentence


def test_another_think_time_than_the_given_one_is_found():
    (sentence,) = contradictions(**measured(), Z=3.0)
    assert "not for 3 s (as given)" in sentence


def test_percent_instead_of_shares_are_found():
    assert contradictions(N, N, U_cpu=N) == [
        "U_cpu is up to 300, expected a share of all servers, at most 1"
    ]


def test_a_utilisation_a_little_over_1_is_an_error_of_measurement():
    assert contradictions(N, N, U_cpu=np.array([0.5, 1.004])) == []


def test_a_think_time_that_is_a_little_off_is_found():
    columns = measured(error=0.01)
    assert other_think_time(**columns, Z=1.0) == other_think_time(**columns, Z=1.005) == ""
    for Z in (1.05, 0.95):
        assert other_think_time(**columns, Z=Z).endswith(f"and not for {Z:g} s (as given)")
