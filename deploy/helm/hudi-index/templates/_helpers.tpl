{{- define "hudi-index.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* At most 52 characters, so that suffixes fit. */ -}}
{{- define "hudi-index.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- /* The name of a shard's objects. Takes a list: the root, and the shard's number. */ -}}
{{- define "hudi-index.shard" -}}
{{- $root := index . 0 -}}
{{ include "hudi-index.fullname" $root }}{{ if gt (int $root.Values.shards) 1 }}-{{ index . 1 }}{{ end }}
{{- end }}

{{- define "hudi-index.selector" -}}
app.kubernetes.io/name: {{ include "hudi-index.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hudi-index.labels" -}}
{{ include "hudi-index.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "hudi-index.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "hudi-index.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* The service's settings: those of the values, and over them what the chart relies on. */ -}}
{{- define "hudi-index.settings" -}}
{{- $web := dict "port" 7052 -}}
{{- if .Values.existingSecret -}}
{{- $_ := set $web "tokens" "/etc/hudi-index/secret/tokens" -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $web "tls_cert" "/etc/hudi-index/tls/tls.crt" -}}
{{- $_ := set $web "tls_key" "/etc/hudi-index/tls/tls.key" -}}
{{- end -}}
{{- $own := dict
  "web" $web
  "hook" (dict "parallelism" (int .Values.slots))
  "state_folder" "/var/lib/hudi-index/state"
  "cache_folder" "/var/cache/hudi-index/cache"
  "cache_max_mb" (int .Values.cache.maxMiB)
-}}
{{ mergeOverwrite (deepCopy .Values.settings) $own | toYaml }}
{{- end }}

{{- define "hudi-index.memoryMiB" -}}
{{- with .Values -}}
{{ add .memory.supervisor .memory.queries (mul .slots .memory.child) }}
{{- end -}}
{{- end }}

{{- define "hudi-index.cacheMiB" -}}
{{ div (mul .Values.cache.maxMiB 11) 10 }}
{{- end }}

{{- define "hudi-index.scheme" -}}
{{ ternary "HTTPS" "HTTP" (not (empty .Values.tls.existingSecret)) }}
{{- end }}

{{- /* Takes a list: the root, and the path. */ -}}
{{- define "hudi-index.probe" -}}
path: {{ index . 1 }}
port: http
scheme: {{ include "hudi-index.scheme" (index . 0) }}
{{- end }}
