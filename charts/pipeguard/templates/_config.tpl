{{/*
The configuration of the webhook: what the values set, with the value config over it.
*/}}
{{- define "pipeguard.webhookConfig" -}}
{{- $webhook := include "pipeguard.webhook" . -}}
{{- $config := dict "apiVersion" "pipeguard.dev/v1alpha1" "kind" "WebhookConfig" "params" "/etc/pipeguard/parameters/parameters.yaml" "logLevel" .Values.logLevel -}}
{{- range $key, $name := include "pipeguard.addresses" . | fromYaml -}}
{{- $_ := set $config $key (printf ":%d" (get $.Values.webhook $name | int)) -}}
{{- end -}}
{{- $_ := set $config "cluster" (dict "serviceName" $webhook "webhookConfig" $webhook "policyWebhookConfig" (include "pipeguard.policyWebhook" .) "canaryNamespace" (.Values.webhook.canaryNamespace | default "-") "scanInterval" .Values.scanInterval) -}}
{{- if .Values.nodeLabels.enabled -}}
{{- $_ := set (get $config "cluster") "labelNodes" true -}}
{{- end -}}
{{- $_ := set $config "floor" (dict "mode" (include "pipeguard.settings" . | fromYaml).floor.mode "name" (include "pipeguard.floor" .) "clusterRole" $webhook) -}}
{{- with .Values.reports.standard -}}
{{- if ne . "None" -}}
{{- $_ := set $config "reports" (dict "standard" . "clusterRole" (include "pipeguard.reportsRole" $)) -}}
{{- end -}}
{{- end -}}
{{- $certificate := dict "secret" (include "pipeguard.certSecret" .) -}}
{{- if .Values.certificates.certManager.enabled -}}
{{- $certificate = dict "dir" "/etc/pipeguard/certificate" -}}
{{- end -}}
{{- $_ := set $config "certificate" $certificate -}}
{{- if .Values.auditRequired -}}
{{- $_ := set $config "audit" (dict "required" true) -}}
{{- end -}}
{{- with .Values.bundles -}}
{{- if .enabled -}}
{{- $bundles := dict "key" "/etc/pipeguard/bundle/key.pem" "pools" .pools "life" .life "minimumRevision" (int64 .minimumRevision) "namespace" (include "pipeguard.bundleNamespace" $) "serve" .serve -}}
{{- if .modulesConfigMap -}}
{{- $_ := set $bundles "modules" "/etc/pipeguard/bundle-modules" -}}
{{- end -}}
{{- $_ := set $config "bundles" $bundles -}}
{{- end -}}
{{- end -}}
{{- with .Values.witness -}}
{{- if .enabled -}}
{{- $witness := dict "key" "/etc/pipeguard/witness/key" -}}
{{- if .nodeKeys -}}
{{- $_ := set $witness "nodeKeys" "/etc/pipeguard/witness-keys/keys" -}}
{{- end -}}
{{- if .trustFirstUse -}}
{{- $_ := set $witness "trustFirstUse" true -}}
{{- end -}}
{{- $_ := set $config "witness" $witness -}}
{{- end -}}
{{- end -}}
{{- $own := deepCopy $config -}}
{{- $config = mergeOverwrite $config (deepCopy (.Values.config | default dict)) -}}
{{- include "pipeguard.checkWebhookConfig" $config -}}
{{- include "pipeguard.checkShared" (dict "config" $config "own" $own) -}}
{{- include "pipeguard.checkAddresses" (dict "config" $config "webhook" .Values.webhook) -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Refuses what a start of the webhook refuses and the schema cannot: times that are out of bounds, and fields that go together.
*/}}
{{- define "pipeguard.checkWebhookConfig" -}}
{{- range $name, $section := . -}}
{{- if not $section -}}
{{- fail (printf "config.%s is empty: fill it or remove it" $name) -}}
{{- end -}}
{{- end -}}
{{- with .certificate -}}
{{- if ne (empty .certFile) (empty .keyFile) -}}
{{- fail "config.certificate: certFile and keyFile go together" -}}
{{- else if and .dir .certFile -}}
{{- fail "config.certificate: dir, which certificates.certManager.enabled sets, and certFile exclude each other" -}}
{{- end -}}
{{- end -}}
{{- if lt (include "pipeguard.seconds" .cluster.scanInterval | float64) 60.0 -}}
{{- fail (printf "scanInterval: %s is below a minute" .cluster.scanInterval) -}}
{{- end -}}
{{- with .bundles -}}
{{- if and (not .key) (or .pools .life .minimumRevision .namespace .modules (eq (toString .serve) "false")) -}}
{{- fail "config.bundles: there are none without key, which bundles.enabled sets" -}}
{{- end -}}
{{- if .life -}}
{{- $life := include "pipeguard.seconds" .life | float64 -}}
{{- if or (lt $life 600.0) (gt $life 7776000.0) (ne $life (floor $life)) -}}
{{- fail (printf "bundles.life: %s, want whole seconds, 10m to 2160h" .life) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .witness -}}
{{- if and (not .key) (or .nodeKeys .trustFirstUse) -}}
{{- fail "config.witness: there is none without key, which witness.enabled sets" -}}
{{- else if and .key (not (or .nodeKeys .trustFirstUse)) -}}
{{- fail "witness: want nodeKeys or trustFirstUse: it would know no log" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A Go duration in seconds.
*/}}
{{- define "pipeguard.seconds" -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $seconds = addf $seconds (mulf (trimSuffix $unit . | float64) (get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) $unit)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/*
The settings that rights and other objects follow, each with the value that sets it for all of them. What only config sets, they would not
know: the webhook would lack a right on what it is to write, or write what the chart renders, too.
*/}}
{{- define "pipeguard.shared" -}}
cluster.webhookConfig: fullnameOverride
cluster.policyWebhookConfig: fullnameOverride
cluster.canaryNamespace: webhook.canaryNamespace
cluster.labelNodes: nodeLabels.enabled
floor.mode: floor.mode
floor.name: fullnameOverride
floor.clusterRole: fullnameOverride
reports.standard: reports.standard
reports.clusterRole: reports.standard
certificate.secret: fullnameOverride
{{- end -}}

{{/* Refuses shared settings of config that are not what the values say, own. A kind of None and false are what is not set. */}}
{{- define "pipeguard.checkShared" -}}
{{- range $path, $value := include "pipeguard.shared" . | fromYaml -}}
{{- $at := splitList "." $path -}}
{{- $is := dig (first $at) (last $at) "" $.config | toString -}}
{{- $want := dig (first $at) (last $at) "" $.own | toString -}}
{{- if and (ne $is $want) (or $want (not (has $is (list "None" "false")))) -}}
{{- fail (printf "config.%s is %s: set %s instead, which rights and other objects of the chart follow, too" $path $is $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings that are addresses, each with the value below webhook that is its port. */}}
{{- define "pipeguard.addresses" -}}
listenAddress: port
metricsBindAddress: metricsPort
healthProbeBindAddress: healthPort
{{- end -}}

{{/*
Refuses addresses of config whose ports are not those that Service, probes and NetworkPolicy have. Metrics may be turned off by 0.
*/}}
{{- define "pipeguard.checkAddresses" -}}
{{- range $key, $name := include "pipeguard.addresses" . | fromYaml -}}
{{- $address := get $.config $key -}}
{{- $isOff := and (eq $key "metricsBindAddress") (eq $address "0") -}}
{{- if not (or $isOff (hasSuffix (printf ":%d" (get $.webhook $name | int)) $address)) -}}
{{- fail (printf "config.%s is %s: its port must be that of webhook.%s" $key $address $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
