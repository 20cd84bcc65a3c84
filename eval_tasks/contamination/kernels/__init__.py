"""The compiled part: bytes to word hashes, word hashes to spans shared with benchmark items.

Importing a module of this package loads numba and compiles on first use (some seconds; nothing is cached on disk, since
numba's cache is pickled code). Everything is integer arithmetic in one thread, so the same input gives the same output.
"""
