"""Operational laws: what holds between measured averages, whatever the distributions.

Denning and Buzen, The Operational Analysis of Queueing Network Models (1978). Times in seconds,
rates per second, utilisation as a fraction.

Bounds of a closed system, before anything is solved: N customers think for Z seconds and need D
seconds of service in all, D_max of them at the bottleneck (with c servers there: D/c). The
asymptotic ones hold for any network whose stations never get slower by being crowded. The balanced
ones hold in product form with one server a station, and are closer: a system with the same D is
slowest when every station that is used has D_max, and fastest when all have the same D_mean
(Zahorjan, Sevcik, Eager and Galler 1982; with think time Lazowska, Zahorjan, Graham and Sevcik
1984, Quantitative System Performance, chapter 5).
"""

from nummodel.arguments import continuous
from nummodel.formula import formula


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
#: Throughput at which c servers are busy to rho: what they can do at most, for rho = 1.
throughput_at = utilisation.solved_for("X", "Throughput at a utilisation: the utilisation law.")


@formula("X_full", continuous)
def full_throughput(X, rho):
    """Throughput at utilisation 1, if the demand per transaction stayed as it is: c/D.

    IBM's internal throughput rate (ITR) is this figure: extrapolated from the measured throughput,
    not measured at full load.

    >>> full_throughput(X=50.0, rho=0.5)
    100.0
    """
    return X / rho


@formula("R", continuous)
def interactive_response(N, X, Z):
    """Response time of N customers who think for Z: what is left of a cycle, N/X - Z.

    >>> interactive_response(N=20, X=2.0, Z=4.0)
    6.0
    """
    return N / X - Z


@formula("N_sat", continuous)
def saturation(D, D_max, Z):
    """Population at which the two asymptotes meet: beyond it someone must wait, whatever the order.

    >>> saturation(D=17.2, D_max=9.2, Z=120.0)
    14.91304347826087
    """
    return (D + Z) / D_max


@formula("X_max", continuous)
def asymptotic_throughput_max(N, D, D_max, Z):
    """Nobody waits, until the bottleneck is full.

    >>> asymptotic_throughput_max(N=[1, 100], D=17.2, D_max=9.2, Z=120.0).round(6)
    array([0.007289, 0.108696])
    """
    return _least(N / (D + Z), 1 / D_max)


@formula("X_min", continuous)
def asymptotic_throughput_min(N, D, Z):
    """Everyone waits for everyone else at every station.

    >>> round(asymptotic_throughput_min(N=20, D=17.2, Z=120.0), 6)
    0.043103
    """
    return N / (N * D + Z)


@formula("R_min", continuous)
def asymptotic_response_min(N, D, D_max, Z):
    """The response time of `asymptotic_throughput_max`.

    >>> asymptotic_response_min(N=[1, 20], D=17.2, D_max=9.2, Z=120.0)
    array([17.2, 64. ])
    """
    return _most(D, N * D_max - Z)


@formula("R_max", continuous)
def asymptotic_response_max(N, D):
    """The response time of `asymptotic_throughput_min`.

    >>> asymptotic_response_max(N=20, D=17.2)
    344.0
    """
    return N * D


@formula("X_max", continuous)
def balanced_throughput_max(N, D, D_max, D_mean, Z):
    """All stations alike. Without think time: N/(D + (N - 1) D_mean).

    >>> balanced_throughput_max(N=[1, 20], D=0.37, D_max=0.1, D_mean=0.0925, Z=0.0).round(6)
    array([2.702703, 9.400705])
    """
    return _least(1 / D_max, N / (D + Z + (N - 1) * D_mean * D / (D + Z)))


@formula("X_min", continuous)
def balanced_throughput_min(N, D, D_max, Z):
    """All demand at stations like the bottleneck. Without think time: N/(D + (N - 1) D_max).

    >>> balanced_throughput_min(N=[1, 20], D=0.37, D_max=0.1, Z=0.0).round(6)
    array([2.702703, 8.810573])
    """
    return N / (D + Z + (N - 1) * D_max * N * D / (N * D + Z))


@formula("R_min", continuous)
def balanced_response_min(N, D, D_max, D_mean, Z):
    """The response time of `balanced_throughput_max`."""
    return _most(N * D_max - Z, D + (N - 1) * D_mean * D / (D + Z))


@formula("R_max", continuous)
def balanced_response_max(N, D, D_max, Z):
    """The response time of `balanced_throughput_min`."""
    return D + (N - 1) * D_max * N * D / (N * D + Z)


def _least(*terms):
    import sympy as sp

    return sp.Min(*terms)


def _most(*terms):
    import sympy as sp

    return sp.Max(*terms)
