{{/* The name of everything in a release: its own, with the chart's added where it says nothing. */}}
{{- define "windlass.fullname" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- default $name .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "windlass.account" -}}
{{- $own := ternary (include "windlass.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $own .Values.serviceAccount.name -}}
{{- end -}}

{{/* A Deployment's selector cannot be changed later: only what never changes. */}}
{{- define "windlass.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "windlass.labels" -}}
{{ include "windlass.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "windlass.subjects" -}}
- kind: ServiceAccount
  name: {{ include "windlass.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
