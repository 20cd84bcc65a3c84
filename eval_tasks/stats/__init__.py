"""Statistics on numpy arrays: intervals, paired tests, multiplicity, power, equivalence, companions.

Pure functions: arrays and counts in, numbers out. Knows no run, no store and no engine. Fractions, not points.
scipy does what it has; what it lacks (Newcombe's paired interval, clustered and composite errors, Connor's power) is
written here, each with its source. Distributions come from scipy.special, which loads
in a fraction of the time of scipy.stats. A quantity that the data cannot give is None, never 0 and never NaN.
"""
