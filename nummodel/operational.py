"""Operational laws: what holds between measured averages, whatever the distributions.

Denning and Buzen, The Operational Analysis of Queueing Network Models (1978). Times in seconds,
rates per second, utilisation as a fraction.
"""

from nummodel.formula import formula


@formula("Q")
def little_population(X, R):
    """Mean number present, by Little's law, in any system that loses no work.

    >>> little_population(X=100.0, R=0.25)
    25.0
    """
    return X * R


@formula("rho")
def utilisation(X, D, c):
    """Utilisation of each of `c` servers when a transaction takes `D` seconds of one of them.

    >>> utilisation(X=50.0, D=0.04, c=4)
    0.5
    """
    return X * D / c


#: Service demand of one transaction: busy seconds of all servers over completions.
demand = utilisation.solved_for("D", "Service demand of one transaction: the utilisation law.")


@formula("X_max")
def full_throughput(X, rho):
    """Throughput at utilisation 1, if the demand per transaction stayed as it is: c/D.

    IBM's internal throughput rate (ITR) is this figure: extrapolated from the measured throughput,
    not measured at full load.

    >>> full_throughput(X=50.0, rho=0.5)
    100.0
    """
    return X / rho
