{{/* Name of the node component's objects. */}}
{{- define "pipeguard.node" -}}
{{ include "pipeguard.fullname" . }}-node
{{- end -}}

{{/* Namespace of the node component. */}}
{{- define "pipeguard.nodeNamespace" -}}
{{ .Values.node.namespace | default .Release.Namespace }}
{{- end -}}

{{/* What selects the node component's pods. It must stay as it is from release to release. */}}
{{- define "pipeguard.nodeSelector" -}}
app.kubernetes.io/name: pipeguard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end -}}

{{/* Labels of the node component's objects. */}}
{{- define "pipeguard.nodeLabels" -}}
{{- toYaml (merge (include "pipeguard.nodeSelector" . | fromYaml) (include "pipeguard.labels" . | fromYaml)) -}}
{{- end -}}

{{/* The node component's image: by digest if there is one. */}}
{{- define "pipeguard.nodeImage" -}}
{{- with .Values.node.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default ($.Chart.AppVersion | trimPrefix "v") }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The root of a HostProcess container as the runtime writes it into a command, whatever it is: C:\hpc where it can bind
directories, C:\hpc\ID or C:\C\ID where it cannot. Only the runtime replaces it: no shell has to.
*/}}
{{- define "pipeguard.sandbox" -}}
%CONTAINER_SANDBOX_MOUNT_POINT%
{{- end -}}

{{/* Where the service answers for metrics and for its state. Without a value of its own only its own node asks it. */}}
{{- define "pipeguard.nodeServiceAddress" -}}
{{- if or .Values.node.metricsAddress (not .Values.node.reports.enabled) -}}
{{ .Values.node.metricsAddress }}
{{- else -}}
127.0.0.1:9189
{{- end -}}
{{- end -}}

{{/* Port of node.metricsAddress, or nothing. */}}
{{- define "pipeguard.nodeMetricsPort" -}}
{{- with .Values.node.metricsAddress -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}
{{- end -}}

{{/* What the service asks the kubelet with is brought, unless the configuration says how the kubelet is asked. */}}
{{- define "pipeguard.nodeIdentity" -}}
{{- if and .Values.node.identity.enabled (not (hasKey ((.Values.node.config | default dict).containers | default dict) "kubelet")) -}}
true
{{- end -}}
{{- end -}}

{{/* The pods need a token. */}}
{{- define "pipeguard.nodeToken" -}}
{{- if or .Values.node.reports.enabled (include "pipeguard.nodeIdentity" .) -}}
true
{{- end -}}
{{- end -}}

{{/* Files in which kubelets keep their certificate, as a list. */}}
{{- define "pipeguard.kubeletCertificates" -}}
{{- $pki := printf "%s\\pki" (trimSuffix "\\" .Values.node.kubeletPath) -}}
{{- .Values.node.identity.kubeletCertificates | default (list (printf "%s\\kubelet-server-current.pem" $pki) (printf "%s\\kubelet.crt" $pki)) | toYaml -}}
{{- end -}}

{{/*
The node's proxy.yaml as an object: node.config, with node.identity.enabled how callers are named, and with node.driverRules.enabled
what each driver whose profile is enabled may call.
*/}}
{{- define "pipeguard.nodeConfig" -}}
{{- $config := mergeOverwrite (dict "apiVersion" "pipeguard.dev/v1alpha1" "kind" "ProxyConfig") (deepCopy (.Values.node.config | default dict)) -}}
{{- if .Values.node.identity.enabled -}}
{{- $containers := merge (deepCopy ($config.containers | default dict)) (dict "endpoint" .Values.node.identity.endpoint) -}}
{{- if include "pipeguard.nodeIdentity" . -}}
{{- $_ := set $containers "kubelet" (dict "url" .Values.node.identity.kubelet "caFile" "C:\\ProgramData\\Pipeguard\\kubelet-ca.crt" "tokenFile" "C:\\ProgramData\\Pipeguard\\kubelet.token") -}}
{{- end -}}
{{- $_ := set $config "containers" $containers -}}
{{- end -}}
{{- if .Values.node.driverRules.enabled -}}
{{- $acl := deepCopy ($config.acl | default dict) -}}
{{- $known := $config.containers | default dict -}}
{{- if .Values.node.driverRules.user -}}
{{- with concat ($acl.rules | default list) (include "pipeguard.accountRules" . | fromYamlArray) -}}
{{- $_ := set $acl "rules" . -}}
{{- end -}}
{{- else if and $known.endpoint (or $known.kubelet $known.snapshot) -}}
{{- with concat ($acl.profiles | default list) (include "pipeguard.nodeProfiles" . | fromYamlArray) -}}
{{- $_ := set $acl "profiles" . -}}
{{- end -}}
{{- end -}}
{{- if $acl -}}
{{- $_ := set $config "acl" $acl -}}
{{- end -}}
{{- end -}}
{{- if .Values.node.bundle.enabled -}}
{{- include "pipeguard.checkNodeBundle" . -}}
{{- $bundle := dict "pool" .Values.node.bundle.pool "keys" "C:\\ProgramData\\Pipeguard\\bundle.key.pub" "file" "C:\\ProgramData\\Pipeguard\\bundle.tar.gz" -}}
{{- $_ := set $config "bundle" (merge $bundle ($config.bundle | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Profiles of the proxy for the drivers that are enabled and have pipes, as a list, but for those that node.config has. They have the proxy's
own operations, whatever methods the values have: those are for bundles.
*/}}
{{- define "pipeguard.nodeProfiles" -}}
{{- $written := list -}}
{{- range ((.Values.node.config | default dict).acl | default dict).profiles | default list -}}
{{- $isMap := kindIs "map" . -}}
{{- $written = append $written (ternary (get (ternary . dict $isMap) "name") . $isMap) -}}
{{- end -}}
{{- $profiles := list -}}
{{- range $name, $driver := include "pipeguard.drivers" . | fromYaml -}}
{{- if and (has "Pipes" $driver.modes) (not (has $name $written)) -}}
{{- if gt (len $driver.containers) 1 -}}
{{- fail (printf "drivers.%s.containers: a rule of nodes names one container; write rules for %s into node.config.acl, with node.driverRules.enabled=false" $name (join ", " $driver.containers)) -}}
{{- end -}}
{{- range $driver.serviceAccounts | default (list "*") -}}
{{- $profile := dict "name" $name "namespace" $driver.namespace "serviceAccount" . "kubeletDir" $.Values.node.kubeletPath -}}
{{- range $driver.containers -}}
{{- $_ := set $profile "container" . -}}
{{- end -}}
{{- with $driver.shares -}}
{{- $_ := set $profile "shares" . -}}
{{- end -}}
{{- $profiles = append $profiles $profile -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $profiles -}}
{{- end -}}

{{/*
Rules for the account node.driverRules.user, as a list: one for each driver that is enabled and has pipes. Pipes of the group system get a
rule of their own, because that group stops any service.
*/}}
{{- define "pipeguard.accountRules" -}}
{{- $rules := list -}}
{{- $callers := list (dict "user" .Values.node.driverRules.user "assurance" "process") -}}
{{- range $name, $driver := include "pipeguard.drivers" . | fromYaml -}}
{{- if has "Pipes" $driver.modes -}}
{{- $pipes := list -}}
{{- $system := list -}}
{{- range $driver.pipes -}}
{{- if hasPrefix "csi-proxy-system-" . -}}
{{- $system = append $system (trimPrefix "csi-proxy-" .) -}}
{{- else if hasPrefix "csi-proxy-" . -}}
{{- $pipes = append $pipes (trimPrefix "csi-proxy-" .) -}}
{{- end -}}
{{- end -}}
{{- with $pipes -}}
{{- $rules = append $rules (dict "name" (printf "driver-%s" $name) "pipes" . "operations" (list "*") "callers" $callers) -}}
{{- end -}}
{{- with $system -}}
{{- $rules = append $rules (dict "name" (printf "driver-%s-system" $name) "pipes" . "operations" (list "GetBIOSSerialNumber") "callers" $callers) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{/*
Refuses values of node.bundle by which nodes would have no bundle, and so deny every call, or by which they would be given what
they must not have.
*/}}
{{- define "pipeguard.checkNodeBundle" -}}
{{- with .Values.node.bundle -}}
{{- if not (trim .keys) -}}
{{- fail "node.bundle.enabled without node.bundle.keys: the nodes would believe no bundle, and deny every call" -}}
{{- end -}}
{{- /* Not by the schema, whose errors show the value. */ -}}
{{- if not (regexMatch "^\\s*(-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\\s]+-----END PUBLIC KEY-----\\s*){1,8}$" .keys) -}}
{{- fail "node.bundle.keys: want one to eight public keys in PEM and nothing else; a private key that was put here is no secret any more" -}}
{{- end -}}
{{- range $key := list "pool" "keys" "file" "url" "caFile" -}}
{{- if hasKey (($.Values.node.config | default dict).bundle | default dict) $key -}}
{{- fail (printf "node.bundle.enabled, and node.config.bundle.%s: want one of the two; beside node.bundle only dir and minimumRevision have a meaning" $key) -}}
{{- end -}}
{{- end -}}
{{- if $.Values.bundles.enabled -}}
{{- if not (has .pool $.Values.bundles.pools) -}}
{{- fail (printf "node.bundle.pool is %s, and bundles.pools has only %s: the nodes would have no bundle, and deny every call" .pool (join ", " $.Values.bundles.pools)) -}}
{{- end -}}
{{- if ne (include "pipeguard.bundleNamespace" $) (include "pipeguard.nodeNamespace" $) -}}
{{- fail (printf "bundles.namespace is %s, and the nodes' pods are in %s, where alone they can mount a bundle" (include "pipeguard.bundleNamespace" $) (include "pipeguard.nodeNamespace" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
