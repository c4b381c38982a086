"""Operational laws: what holds between measured averages, whatever the distributions.

Denning and Buzen, The Operational Analysis of Queueing Network Models (1978). Times are in seconds,
rates per second, utilisations are fractions.

Bounds of a closed system need no solution of it: N customers think for Z seconds between
transactions and need D seconds of service in all, D_max of them at the bottleneck (D/c with c
servers there). The asymptotic bounds hold for any network whose stations do not get slower by being
crowded. The balanced bounds are closer, and hold in product form with one server at each station: a
system with the same D is slowest if every station that is used has D_max, and fastest if all have
the same D_mean (Zahorjan, Sevcik, Eager and Galler 1982; with think time Lazowska, Zahorjan, Graham
and Sevcik 1984, Quantitative System Performance, chapter 5). `interactive_response` of a bound of
the throughput is the opposite bound of the response time.
"""

from nummodel.arguments import continuous, ordered
from nummodel.formula import formula


def _demands(values):
    """The arguments, checked: no station has a larger demand than all stations together."""
    given = continuous(values)
    ordered(given, "D_max", "D")
    if "D_mean" in given:
        ordered(given, "D_mean", "D_max")
    return given


@formula("Q", continuous)
def little_population(X, R):
    """Mean number present, by Little's law, in any system that loses no work.

    >>> little_population(X=100.0, R=0.25)
    25.0
    """
    return X * R


@formula("rho", continuous)
def utilisation(X, D, c):
    """Utilisation of each of `c` servers when a transaction takes `D` seconds of one of them.

    >>> utilisation(X=50.0, D=0.04, c=4)
    0.5
    """
    return X * D / c


#: Service demand of one transaction: busy seconds of all servers over completions.
demand = utilisation.solved_for("D", "Service demand of one transaction: the utilisation law.")


@formula("X_full", continuous)
def full_throughput(X, rho):
    """Throughput at utilisation 1, if the demand per transaction stayed as it is: c/D.

    This is IBM's internal throughput rate (ITR), which is extrapolated from the measured
    throughput, not measured at full load.

    >>> full_throughput(X=50.0, rho=0.5)
    100.0
    """
    return X / rho


@formula("R", continuous)
def interactive_response(N, X, Z):
    """Response time of N customers who think for Z: a cycle, N/X, without the thinking."""
    return N / X - Z


@formula("N_sat", _demands)
def saturation(D, D_max, Z):
    """Population at which the upper bounds of the throughput, N/(D + Z) and 1/D_max, meet. With
    more customers than this, some customers must wait, in whatever order they are served.

    >>> saturation(D=17.2, D_max=9.2, Z=120.0)
    14.91304347826087
    """
    return (D + Z) / D_max


@formula("X_max", _demands)
def asymptotic_throughput_max(N, D, D_max, Z):
    """Throughput if no customer waits, up to that of a full bottleneck.

    >>> asymptotic_throughput_max(N=[1, 100], D=17.2, D_max=9.2, Z=120.0).round(6)
    array([0.007289, 0.108696])
    """
    return _least(N / (D + Z), 1 / D_max)


@formula("X_max", _demands)
def balanced_throughput_max(N, D, D_max, D_mean, Z):
    """Throughput if all stations had D_mean. Without think time: N/(D + (N - 1) D_mean).

    >>> balanced_throughput_max(N=[1, 20], D=0.37, D_max=0.1, D_mean=0.0925, Z=0.0).round(6)
    array([2.702703, 9.400705])
    """
    return _least(1 / D_max, N / (D + Z + (N - 1) * D_mean * D / (D + Z)))


@formula("X_min", _demands)
def balanced_throughput_min(N, D, D_max, Z):
    """Throughput if all stations in use had D_max. Without think time: N/(D + (N - 1) D_max).

    >>> balanced_throughput_min(N=[1, 20], D=0.37, D_max=0.1, Z=0.0).round(6)
    array([2.702703, 8.810573])
    """
    return N / (D + Z + (N - 1) * D_max * N * D / (N * D + Z))


def _least(*terms):
    import sympy as sp

    return sp.Min(*terms)
