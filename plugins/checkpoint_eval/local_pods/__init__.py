"""The part of the Kubernetes pod API that the pod operator uses, on loopback, with pods as local processes.

It makes the production road (the real operator, the real pod spec, the real client) run on one machine with nothing
installed. It is not offered as a scheduler or as isolation. `python -m checkpoint_eval.local_pods --help` starts it.

What is as in Kubernetes: pod life cycle, phases, conditions, container statuses, exit codes and reasons, events,
watches with resource versions, logs, graceful deletion, deadlines, memory limits (by the resident size of the process
tree), CPU requests as admission, init containers in order, termination messages, bearer tokens, `v1.Status` errors.

What is not enforced, because there are no containers: images (labels only, nothing is pulled), security contexts,
read-only roots, network policy, node selectors, tolerations, probes and life-cycle hooks, CPU limits, ephemeral storage
limits, service accounts. An emptyDir is a directory under the pod's own; since nothing can be mounted, an environment
value that is its mount path, or a path below it, is given to the process as that directory. Secrets and config maps do
not exist: an optional reference is skipped, a required one leaves the pod waiting with `CreateContainerConfigError`.
Every namespace exists. Only `restartPolicy: Never` and one container (beside init containers) are accepted.
"""
