{{/* Name of the witness's objects. */}}
{{- define "pipeguard.witness" -}}
{{ include "pipeguard.webhook" . }}-witness
{{- end -}}

{{/*
Refuses a witness that would know no log, and what is no verifier key of a log: type 01 in 33 bytes begins with A. Not by the schema,
whose errors show the value.
*/}}
{{- define "pipeguard.checkWitness" -}}
{{- with .Values.witness -}}
{{- if not (or .nodeKeys .trustFirstUse) -}}
{{- fail "witness.enabled without witness.nodeKeys and witness.trustFirstUse: it would know no log" -}}
{{- end -}}
{{- range $i, $key := .nodeKeys -}}
{{- if not (regexMatch "^[^\\s+]{1,512}[+][0-9a-f]{8}[+]A[A-Za-z0-9+/]{43}$" $key) -}}
{{- fail (printf "witness.nodeKeys[%d]: want the verifier key of a log, NAME+HASH+BASE64, type 01; a private key that was put here is no secret any more" $i) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Names of the ConfigMaps that all logs share, and of those of the logs with these keys, as the webhook makes them. */}}
{{- define "pipeguard.witnessNames" -}}
{{- $names := list -}}
{{- range until 8 -}}
{{- $names = append $names (printf "pipeguard-witness-logs-%d" .) -}}
{{- end -}}
{{- range .Values.witness.nodeKeys -}}
{{- $names = append $names (printf "pipeguard-witness-%s" (regexFind "^[^+]+" . | sha256sum | trunc 40)) -}}
{{- end -}}
{{- toYaml ($names | uniq) -}}
{{- end -}}
