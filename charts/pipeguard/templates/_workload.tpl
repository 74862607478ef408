{{/* The annotation by which cert-manager fills in the caBundle. */}}
{{- define "pipeguard.injectedAuthority" -}}
{{- if .Values.certificates.certManager.enabled -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "pipeguard.webhook" . }}
{{- end -}}
{{- end -}}

{{/*
Nine tenths of the memory limit in bytes, for GOMEMLIMIT: the rest is for what Go's runtime does not count. Empty without
a limit.
*/}}
{{- define "pipeguard.memoryLimit" -}}
{{- with .Values.resources -}}
{{- with .limits -}}
{{- with .memory -}}
{{- $units := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 -}}
{{- $quantity := toString . -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?([kMG]|[KMG]i)?$" $quantity) -}}
{{- fail (printf "resources.limits.memory: %s is not a number with one of the units k, M, G, Ki, Mi, Gi" $quantity) -}}
{{- end -}}
{{- $unit := regexFind "[A-Za-z]*$" $quantity -}}
{{- mulf (float64 (trimSuffix $unit $quantity)) (get $units $unit) 0.9 | floor | int64 -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the pods of the webhook and of its test have in common: they satisfy the restricted pod security standard. */}}
{{- define "pipeguard.podBasics" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
