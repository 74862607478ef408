{{/* Namespace of the ConfigMaps with bundles. Pods mount those of their own namespace only. */}}
{{- define "pipeguard.bundleNamespace" -}}
{{- if .Values.bundles.namespace -}}
{{ .Values.bundles.namespace }}
{{- else if .Values.node.enabled -}}
{{ include "pipeguard.nodeNamespace" . }}
{{- else -}}
{{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{/* Names of the ConfigMaps with bundles, as a list. */}}
{{- define "pipeguard.bundleNames" -}}
{{- $names := list -}}
{{- range .Values.bundles.pools -}}
{{- $names = append $names (printf "pipeguard-bundle-%s" .) -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}
