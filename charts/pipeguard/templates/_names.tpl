{{/* Beginning of the names of all objects. */}}
{{- define "pipeguard.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains "pipeguard" .Release.Name -}}
{{ .Release.Name | trunc 45 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-pipeguard" .Release.Name | trunc 45 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Name of most objects: the webhook's. */}}
{{- define "pipeguard.webhook" -}}
{{ include "pipeguard.fullname" . }}-webhook
{{- end -}}

{{/* Name of the Secret with the certificate. */}}
{{- define "pipeguard.certSecret" -}}
{{ include "pipeguard.webhook" . }}-cert
{{- end -}}

{{/* Name of the webhook configuration for policy objects. */}}
{{- define "pipeguard.policyWebhook" -}}
{{ include "pipeguard.fullname" . }}-policies
{{- end -}}

{{/* Name of the objects of the floor; those about PersistentVolumes have "-volumes" behind it. */}}
{{- define "pipeguard.floor" -}}
{{ include "pipeguard.fullname" . }}-floor
{{- end -}}

{{/* Name of the ClusterRole that permits to write reports of the standard kind. One of another kind has another name, so that a change
of the kind removes the reports of the old one. */}}
{{- define "pipeguard.reportsRole" -}}
{{ include "pipeguard.webhook" . }}-reports-{{ lower .Values.reports.standard }}
{{- end -}}

{{/* What selects the pods. It must stay as it is from release to release: a Deployment's selector cannot change. */}}
{{- define "pipeguard.selector" -}}
app.kubernetes.io/name: pipeguard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: webhook
{{- end -}}

{{/* Labels of every object. Labels of the user come first: a key that is in the second part must not be replaced. */}}
{{- define "pipeguard.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" "pipeguard"
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/component" "webhook"
  "app.kubernetes.io/part-of" "pipeguard"
  "app.kubernetes.io/version" (.Chart.AppVersion | trimPrefix "v")
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) -}}
{{- toYaml (merge $own (.Values.commonLabels | default dict)) -}}
{{- end -}}

{{/* The image: by digest if there is one. */}}
{{- define "pipeguard.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default ($.Chart.AppVersion | trimPrefix "v") }}
{{- end -}}
{{- end -}}
{{- end -}}
