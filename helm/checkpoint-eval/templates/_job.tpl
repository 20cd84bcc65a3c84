{{- /* A container of one of the chart's jobs: (dict "root" $ "name" "migrate" "arguments" (list ...) "mounts" (list ...) "storage" true) */}}
{{- define "checkpoint-eval.job-container" -}}
name: {{ .name }}
image: {{ include "checkpoint-eval.image" .root }}
imagePullPolicy: {{ .root.Values.worker.image.pullPolicy }}
command: {{ toJson (concat (list "python" "-m" "eval_tasks") .arguments) }}
env:
  - name: CHECKPOINT_EVAL_HOME
    value: /scratch/home
  # Required here: without it the job would make a catalog in its own scratch directory, and succeed.
  - name: CHECKPOINT_EVAL_CATALOG_URL
    valueFrom:
      secretKeyRef: {name: checkpoint-eval-worker, key: CHECKPOINT_EVAL_CATALOG_URL}
envFrom:
  - configMapRef: {name: checkpoint-eval-worker}
  {{- if .storage }}
  # The credentials of object storage.
  - secretRef: {name: checkpoint-eval-worker}
  {{- end }}
resources:
  requests: {cpu: 100m, memory: 256Mi}
  limits: {memory: 512Mi}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: scratch, mountPath: /scratch}
  {{- range .mounts }}
  - {name: {{ . }}, mountPath: /{{ . }}, readOnly: true}
  {{- end }}
{{- end }}

{{- define "checkpoint-eval.job-pod" -}}
restartPolicy: Never
serviceAccountName: {{ .Values.worker.serviceAccount.name }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}
