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

{{/* What the pods of the webhook and of its test have in common: by default, they satisfy the restricted pod security standard. */}}
{{- define "pipeguard.podBasics" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Refuses ports that the pods cannot open, or that are taken: by another of theirs, or by what nodes have on their network.
*/}}
{{- define "pipeguard.checkPorts" -}}
{{- $of := dict -}}
{{- range $name := list "port" "metricsPort" "healthPort" -}}
{{- $port := get $.Values.webhook $name | toString -}}
{{- if hasKey $of $port -}}
{{- fail (printf "webhook.%s and webhook.%s are both %s" (get $of $port) $name $port) -}}
{{- else if and $.Values.hostNetwork (has $port (list "10248" "10249" "10250" "10255" "10256")) -}}
{{- fail (printf "webhook.%s: %s is a port of the kubelet or kube-proxy, which hostNetwork shares with them: take another" $name $port) -}}
{{- end -}}
{{- $_ := set $of $port $name -}}
{{- end -}}
{{- end -}}

{{/*
The update strategy of the Deployment. A pod goes only after its successor is ready, which means: enforces. On the network of nodes that
may wait for ever, because the ports of a successor can be free on no node: there one pod may go first.
*/}}
{{- define "pipeguard.rollingUpdate" -}}
maxSurge: 1
maxUnavailable: {{ .Values.hostNetwork | ternary 1 0 }}
{{- end -}}
