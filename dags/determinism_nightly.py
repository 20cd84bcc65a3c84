"""### determinism_nightly: is the instrument still the one it was?

Every night, for each live environment, pods run the fixed suite on the fixed checkpoint twice, as ever and with a
perturbed batch plan, and try the engine's promises on about 200 sentinels of all shapes. `judge` compares bit for bit.
The same rows as the adopted baseline: a good night. Other rows on the same fingerprint, other rows under the perturbed
plan, or a broken promise: `judge` opens a block, one alert is sent, `verdict` fails, and `explain_block` asks a
person. A new fingerprint is adopted by itself when its scores move by no more than the declared bound, and is a
candidate otherwise. Runs in UTC; start it by hand at any time, and after every change of drivers or libraries. Without
a fixed suite in the configuration `configured` ends it at once. It passes no gate: what is blocked is looked at all
the more.

**When it fails.** `verdict` of an environment: read the block (`python -m eval_tasks blocks show`), find the cause,
explain it. `plan`, `judge` saying that it had no night: the fixed checkpoint's files changed, the suite is not
registered, or storage was away; the message says which. `judge` with rows missing: its pods failed, whose logs say
why; clear them and it. One environment's failure stops no other's night.

**Whom it hurts.** A block holds every evaluation in its environment; a night that could not run holds nothing, but the
next good night is the first that vouches for what ran since the last one.
"""

# An Airflow DAG.
from checkpoint_eval.nightly_flow import nightly_dag

dag = nightly_dag(doc_md=__doc__)
