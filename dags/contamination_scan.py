"""### contamination_scan: do benchmark items stand in the training corpora?

Every hour `plan` looks for benchmarks that were not checked with a registered corpus under the configured rule: a new
benchmark, a new corpus, one whose files changed, another rule. Mostly there is none, and nothing runs. Else each
`scan_shard` pod looks through a part of a corpus for all benchmarks that are due, `close` records what was found, and
`join_contamination` gives the numbers of stored runs their companions. Start it by hand to check at once.

**When it fails.** `plan`: a corpus or benchmark of the form is not registered; the message says which there are.
`scan_shard`: the pod's log names the storage that failed; clear the task, and only shards without hits are scanned. A
damaged or missing file of a corpus fails nothing: it is counted in the check. `close`: shards are missing; clear them
first.

**Whom it hurts.** Numbers stay `never checked`, which they say; nothing waits for this.
"""

# An Airflow DAG.
from checkpoint_eval.scan_flow import contamination_dag

dag = contamination_dag(doc_md=__doc__)
