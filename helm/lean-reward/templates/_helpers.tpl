{{- define "lean-reward.name" -}}
{{- $release := trunc 30 .Release.Name | trimSuffix "-" -}}
{{- if contains .Chart.Name $release -}}{{ $release }}{{- else -}}{{ printf "%s-%s" $release .Chart.Name }}{{- end -}}
{{- end -}}

{{/* Call with (dict "root" $ "part" "gateway"). */}}
{{- define "lean-reward.selector" -}}
app.kubernetes.io/name: lean-reward
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- if .pool }}
lean-reward/pool: {{ .pool }}
{{- end }}
{{- end -}}

{{- define "lean-reward.labels" -}}
{{ include "lean-reward.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "lean-reward.image" -}}
{{ printf "%s/%s:%s" .root.Values.image.registry .image (.tag | default .root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end -}}

{{- define "lean-reward.redisSecret" -}}
{{ .Values.redis.existingSecret | default (printf "%s-redis" (include "lean-reward.name" .)) }}
{{- end -}}

{{/* Environment entries of a map of settings: LEAN_REWARD_ is put before each name. */}}
{{- define "lean-reward.settings" -}}
{{- range $name, $value := . }}
- name: LEAN_REWARD_{{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "lean-reward.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  {{- toYaml (.seccompProfile | default (dict "type" "RuntimeDefault")) | nindent 2 }}
{{- end -}}

{{- define "lean-reward.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What every pod of ours has: no token of the API server, pull secrets, where to run. */}}
{{- define "lean-reward.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "lean-reward.selector" . | nindent 8 }}
{{- end -}}

{{/* Egress rules of network policies. */}}
{{- define "lean-reward.toDns" }}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end }}
{{- define "lean-reward.toRedis" }}
{{- if .Values.redis.existingSecret }}
- {{ with .Values.redis.peers }}to:
    {{- toYaml . | nindent 4 }}
  {{ end }}ports:
    - {protocol: TCP, port: {{ .Values.redis.port }}}
{{- else }}
- to:
    - podSelector:
        matchLabels:
          {{- include "lean-reward.selector" (dict "root" . "part" "redis") | nindent 10 }}
  ports:
    - {protocol: TCP, port: 6379}
{{- end }}
{{- end -}}
