{{/*
The configuration of the webhook: what the values set, with the value config over it.
*/}}
{{- define "pipeguard.webhookConfig" -}}
{{- $webhook := include "pipeguard.webhook" . -}}
{{- $config := dict "apiVersion" "pipeguard.dev/v1alpha1" "kind" "WebhookConfig" "params" "/etc/pipeguard/parameters/parameters.yaml" "logLevel" .Values.logLevel -}}
{{- $_ := set $config "cluster" (dict "serviceName" $webhook "webhookConfig" $webhook "policyWebhookConfig" (include "pipeguard.policyWebhook" .) "scanInterval" .Values.scanInterval) -}}
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
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) -}}
{{- end -}}
