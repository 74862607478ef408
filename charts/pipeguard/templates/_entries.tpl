{{/*
The entries of the webhook configurations, as lists in YAML. Three things are not in them, which an upgrade then leaves as they are:
  - the rules: the webhook fills them in once it serves, and an entry without rules asks about nothing. RulesOf of
    internal/entries/rules.go has them by the entry's name;
  - the caBundle: the webhook, or cert-manager, fills it in;
  - selectors: whoever may label an object or a namespace could exempt it.
*/}}

{{/* An entry without matchConditions: name, path, failurePolicy, timeoutSeconds and root. */}}
{{- define "pipeguard.entry" -}}
- name: {{ .name }}
  admissionReviewVersions: [v1]
  clientConfig:
    service:
      name: {{ include "pipeguard.webhook" .root }}
      namespace: {{ .root.Release.Namespace }}
      path: {{ .path }}
      port: 443
  failurePolicy: {{ .failurePolicy }}
  matchPolicy: Equivalent
  sideEffects: None
  timeoutSeconds: {{ .timeoutSeconds }}
{{- end -}}

{{- define "pipeguard.condition" -}}
- name: {{ index . 0 }}
  expression: |-
    {{- index . 1 | nindent 4 }}
{{- end -}}

{{/* The entries about objects, by the places in which objects keep a pod's specification. */}}
{{- define "pipeguard.objectEntries" -}}
{{- $root := . -}}
{{- $failurePolicy := (include "pipeguard.settings" . | fromYaml).webhook.failurePolicy -}}
{{- $pathPolicy := include "pipeguard.pathFailurePolicy" . -}}
{{- $processPolicy := include "pipeguard.processFailurePolicy" . -}}
{{- /* Which of the two takes what could do both. Unless only paths fail closed it is the one whose condition costs little. */ -}}
{{- $pathsFirst := and (eq $pathPolicy "Fail") (ne $processPolicy "Fail") -}}
{{- range $place := list
  (dict "name" "pods" "at" "object")
  (dict "name" "workloads" "at" "object.?spec.?template")
  (dict "name" "cronjobs" "at" "object.?spec.?jobTemplate.?spec.?template")
  (dict "name" "podtemplates" "at" "object.?template")
  (dict "name" "persistentvolumes") }}
{{- $part := $root }}
{{- $kind := "volume" }}
{{- $always := list }}
{{- $process := "" }}
{{- if $place.at }}
{{- $part = dict "root" $root "spec" (printf "%s.?spec.orValue({})" $place.at) "metadata" (printf "%s.?metadata" $place.at) }}
{{- $kind = "pod" }}
{{- $always = list (list "may-run-on-windows" (include "pipeguard.mayRunOnWindows" $part)) }}
{{- $process = include "pipeguard.podCouldBeAHostProcess" $part }}
{{- end }}
{{- $pipe := include (printf "pipeguard.%sCouldReachAPipe" $kind) $part }}
{{- $path := include (printf "pipeguard.%sCouldReachAHostPath" $kind) $part }}
{{- $noPipe := append $always (list "could-reach-no-pipe" (printf "!(%s)" $pipe)) }}
{{- $paths := append $noPipe (list "could-reach-a-host-path" $path) }}
{{- $processes := append $noPipe (list "could-be-a-host-process" $process) }}
{{- if $pathsFirst }}
{{- $processes = append $processes (list "could-reach-no-host-path" (printf "!(%s)" $path)) }}
{{- else if $process }}
{{- $paths = append $paths (list "could-be-no-host-process" (printf "!(%s)" $process)) }}
{{- end }}
{{- $entries := list
  (dict "prefix" "" "policy" $failurePolicy "conditions" (append $always (list "could-reach-a-pipe" $pipe)))
  (dict "prefix" "host-" "policy" $pathPolicy "conditions" $paths) }}
{{- if $process }}
{{- $entries = append $entries (dict "prefix" "hostprocess-" "policy" $processPolicy "conditions" $processes) }}
{{- end }}
{{- range $entries }}
{{ include "pipeguard.entry" (dict "root" $root "name" (printf "%s%s.pipeguard.dev" .prefix $place.name) "path" "/validate" "failurePolicy" .policy "timeoutSeconds" $root.Values.webhook.timeoutSeconds) }}
  matchConditions:
    {{- range .conditions }}
    {{- include "pipeguard.condition" . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "pipeguard.policyEntries" -}}
{{ include "pipeguard.entry" (dict "root" . "name" "policies.pipeguard.dev" "path" "/validate-policies" "failurePolicy" "Fail" "timeoutSeconds" 10) }}
{{- end -}}

{{/*
What the chart decides about entries, as a hash by which the webhook notices that another hand has changed them. Digest of
internal/entries/changes.go computes the same of what is stored.
*/}}
{{- define "pipeguard.entriesDigest" -}}
{{- $all := list -}}
{{- range fromYamlArray . -}}{{- $all = append $all (set (omit . "clientConfig") "path" .clientConfig.service.path) -}}{{- end -}}
{{- toJson $all | sha256sum -}}
{{- end -}}

{{/*
Metadata of a configuration but for its name: the root, and its entries. On Azure, the admissions enforcer adds a selector that leaves
out kube-system to each configuration without the label or the annotation.
*/}}
{{- define "pipeguard.entriesMetadata" -}}
labels:
  admissions.enforcer/disabled: "true"
  {{- include "pipeguard.labels" (index . 0) | nindent 2 }}
annotations:
  admissions.enforcer/disabled: "true"
  pipeguard.dev/entries: {{ include "pipeguard.entriesDigest" (index . 1) }}
  {{- with include "pipeguard.injectedAuthority" (index . 0) }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
