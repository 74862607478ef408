{{/*
What the API server asks the webhook about. Everything else never leaves the API server, so that pods of CNI, of
kube-proxy and of the webhook itself do not depend on it.

Each place in which objects keep a pod's specification has three entries. One is asked about what could reach a pipe, and
refuses it while no replica answers; the others about what is done to a node without a pipe, by a HostProcess container or
by another host path. No object is sent to two of them: one that could do both goes to the entry that fails closed, if one
of them does. A PersistentVolume has no containers, and so two entries.
*/}}

{{/*
CEL: the object is too large to be looked at, and is sent. spec is a variable, metadata an expression; see mostItems. Sizes
cost next to nothing.
*/}}
{{- define "pipeguard.isTooLarge" -}}
([spec.?volumes, spec.?containers, spec.?initContainers, spec.?ephemeralContainers, {{ .metadata }}.?annotations].exists(items,
  items.hasValue() && items.value() != null && items.value().size() > {{ include "pipeguard.mostItems" .root }}) ||
[spec.?containers, spec.?initContainers, spec.?ephemeralContainers].map(list, list.hasValue() && list.value() != null ?
  list.value().map(container, container.?volumeMounts.orValue([]).size()).sum() : 0).sum() > {{ include "pipeguard.mostMounts" .root }})
{{- end -}}

{{/*
How many terms of a node affinity, expressions in each and values in each of these are looked at. More of them prove nothing.
*/}}
{{- define "pipeguard.mostTerms" -}}32{{- end -}}

{{/*
CEL: the pod may run on Windows. A pod is one of Linux alone by its os, its nodeSelector or each term of its required node
affinity: a kubelet compares all three with its own system and its node's labels before it runs a pod, even one that is bound to it by hand.
isLinux of internal/admission/linux.go is the same in Go.
*/}}
{{- define "pipeguard.mayRunOnWindows" -}}
{{- $most := include "pipeguard.mostTerms" .root -}}
[{{ .spec }}].exists(spec,
  {{ include "pipeguard.isTooLarge" . | indent 2 | trim }} ||
  !(spec.?os.?name.orValue('') == 'linux' || spec.?nodeSelector[?'kubernetes.io/os'].orValue('') == 'linux' ||
    [spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])].exists(terms,
      terms != null && terms.size() > 0 && terms.size() <= {{ $most }} &&
      terms.all(term, [term.?matchExpressions.orValue([])].exists(expressions, expressions.size() <= {{ $most }} &&
        expressions.exists(e, e.key == 'kubernetes.io/os' && [e.?values.orValue([])].exists(values, values.size() <= {{ $most }} &&
          (e.operator == 'In' && values == ['linux'] || e.operator == 'NotIn' && 'windows' in values)))))))
)
{{- end -}}

{{/*
The longest path that is looked at, in characters. A longer one is none that keeps nodes running, and is sent.
*/}}
{{- define "pipeguard.longestPath" -}}256{{- end -}}

{{/* The guarded host paths: those of the parameters, and the kubelet's directory, in which profiles permit some. */}}
{{- define "pipeguard.guardedHostPaths" -}}
{{- $paths := .Values.parameters.guardedHostPaths -}}
{{- if $paths -}}{{- $paths = append $paths .Values.node.kubeletPath | uniq -}}{{- end -}}
{{- toYaml $paths -}}
{{- end -}}

{{/*
A regular expression of paths of Linux that Windows may take for a path of parameters.equalPowerPaths or
pipeguard.guardedHostPaths, one below it or one above it. A name that no plain path has ends such a path.
*/}}
{{- define "pipeguard.hostPaths" -}}
{{- $paths := list -}}
{{- $parents := list -}}
{{- range concat .Values.parameters.equalPowerPaths (include "pipeguard.guardedHostPaths" . | fromYamlArray) -}}
{{- $path := . | lower | replace "\\" "/" | trimSuffix "/" -}}
{{- if hasPrefix "c:/" $path -}}
{{- $names := splitList "/" (trimPrefix "c:/" $path) -}}
{{- $above := list -}}
{{- $isPlain := true -}}
{{- range $i, $name := $names -}}
{{- $isPlain = and $isPlain (regexMatch "^[a-z0-9._+@-]+$" $name) -}}
{{- if $isPlain -}}
{{- $above = append $above (regexQuoteMeta $name) -}}
{{- if lt (add1 $i) (len $names) -}}
{{- $parents = append $parents (join "/" $above) -}}
{{- else -}}
{{- $paths = append $paths (join "/" $above) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $kinds := list -}}
{{- with $paths | uniq | sortAlpha -}}{{- $kinds = append $kinds (printf "(%s)(/|$)" (join "|" .)) -}}{{- end -}}
{{- with $parents | uniq | sortAlpha -}}{{- $kinds = append $kinds (printf "(%s)/?$" (join "|" .)) -}}{{- end -}}
(?i)^/({{ join "|" $kinds | default "$" }})
{{- end -}}

{{/*
How many volumes, containers of a kind or annotations are looked at; an object with more is sent. The API server stops
evaluating an expression at a cost of 1,000,000, and all of an entry's at 2,500,000 (PerCallLimit and
RuntimeCELCostBudgetMatchConditions of k8s.io/apiserver/pkg/apis/cel), and then an object is admitted unevaluated if
failurePolicy is Ignore. Nearly all of the cost is that of regular expressions: a tenth of the path's length times a quarter of
the expression's. This keeps that of hostPaths below 700,000, however many paths the parameters have. Those of leadsToNoPipe
cost 450,000 at most, and the rest 50,000.
*/}}
{{- define "pipeguard.mostItems" -}}
{{- $path := add1 (div (include "pipeguard.longestPath" .) 10) -}}
{{- $expression := add1 (div (len (include "pipeguard.hostPaths" .)) 4) -}}
{{- min 400 (div 700000 (add 100 (mul $path $expression))) -}}
{{- end -}}

{{/*
How many mounts of all containers are looked at; an object with more is sent. This keeps the cost of their subPaths below
350,000: a mount has a subPath or a subPathExpr, which the API server looks at before.
*/}}
{{- define "pipeguard.mostMounts" -}}2000{{- end -}}

{{/*
CEL: the text is anything but a subPath as those of Linux pods are: one with another character, a backslash or a blank above
all, or with two dots in a row. The API server refuses ".." between slashes alone. Within the root of a node, any may be
that of a device.
*/}}
{{- define "pipeguard.isOddSubPath" -}}
{{ . }}.size() > 128 || ofRoot && {{ . }}.size() > 0 || !{{ . }}.matches(r'^\.?([A-Za-z0-9_+@/$()-]+\.?)*$')
{{- end -}}

{{/*
CEL: the path in the variable "path" leads to no pipe with any subPath that is not odd: it begins with a slash and does not name
a device of Windows, or is one of a drive. No name in it is "." or "..", or ends in a dot or a space, which Windows would leave out.
*/}}
{{- define "pipeguard.leadsToNoPipe" -}}
path.size() <= {{ include "pipeguard.longestPath" . }} && !path.contains('..') && (path.startsWith('/') ?
  path.matches(r'^(/[A-Za-z0-9._+@-]*[A-Za-z0-9_+@-])+/?$') && !path.matches(r'(?i)^/(device|dosdevices|global|sessions|silos)') :
  path.matches(r'^[A-Za-z]:[/\\]+([A-Za-z0-9._+@()~ -]*[A-Za-z0-9_+@()~-]([/\\]+|$))*$'))
{{- end -}}

{{/*
CEL: a path that leads to no pipe is the root of a node, or on a drive, or one of hostPaths.
*/}}
{{- define "pipeguard.isHostPath" -}}
path.size() <= {{ include "pipeguard.longestPath" . }} && (path == '/' || !path.startsWith('/') || path.matches(r'{{ include "pipeguard.hostPaths" . }}'))
{{- end -}}

{{/*
CEL: a pod could reach a pipe. spec and metadata are expressions for the parts of the pod or template; a part that is
missing has nothing that could.
*/}}
{{- define "pipeguard.podCouldReachAPipe" -}}
[{{ .spec }}].exists(spec,
  {{ include "pipeguard.isTooLarge" . | indent 2 | trim }} ||
  spec.?volumes.orValue([]).exists(volume, has(volume.hostPath) &&
    [volume.hostPath.?path.orValue('')].exists(path, path != '/' && !({{ include "pipeguard.leadsToNoPipe" .root | indent 4 | trim }}))) ||
  [spec.?volumes.orValue([]).exists(volume, volume.?hostPath.?path.orValue('') == '/')].exists(ofRoot,
    [spec.?containers, spec.?initContainers, spec.?ephemeralContainers].exists(list,
      list.hasValue() && list.value() != null && list.value().exists(container, container.?volumeMounts.orValue([]).exists(mount,
        has(mount.subPath) && ({{ include "pipeguard.isOddSubPath" "mount.subPath" }}) ||
        has(mount.subPathExpr) && ({{ include "pipeguard.isOddSubPath" "mount.subPathExpr" }}))))))
{{- end -}}

{{/* CEL: a pod that could reach no pipe could reach another host path that matters. */}}
{{- define "pipeguard.podCouldReachAHostPath" -}}
[{{ .spec }}].exists(spec, !{{ include "pipeguard.isTooLarge" . | indent 2 | trim }} &&
  spec.?volumes.orValue([]).exists(volume, has(volume.hostPath) &&
    [volume.hostPath.?path.orValue('')].exists(path, {{ include "pipeguard.isHostPath" .root }})))
{{- end -}}

{{/*
CEL: a pod could be a HostProcess container. An annotation of microsoft.com can make one; a key has at most 317 characters, and
where others than those of ASCII fold to these, other programs may read it so.
*/}}
{{- define "pipeguard.podCouldBeAHostProcess" -}}
[{{ .spec }}].exists(spec, !{{ include "pipeguard.isTooLarge" . | indent 2 | trim }} && (
  spec.?securityContext.?windowsOptions.?hostProcess.orValue(false) ||
  [spec.?containers, spec.?initContainers, spec.?ephemeralContainers].exists(list,
    list.hasValue() && list.value() != null && list.value().exists(container,
      container.?securityContext.?windowsOptions.?hostProcess.orValue(false))) ||
  {{ .metadata }}.?annotations.orValue({}).exists(key, key.size() > 317 || !key.matches(r'^[!-~]*$') || key.lowerAscii().contains('microsoft.com'))))
{{- end -}}

{{/* CEL: a PersistentVolume could reach a pipe, which it could in the root of a node: its mounts are not seen. */}}
{{- define "pipeguard.volumeCouldReachAPipe" -}}
[object.?spec.?hostPath.?path, object.?spec.?local.?path].exists(given, given.hasValue() &&
  [given.value()].exists(path, !({{ include "pipeguard.leadsToNoPipe" . | indent 2 | trim }})))
{{- end -}}

{{/* CEL: a PersistentVolume that could reach no pipe could reach another host path that matters. */}}
{{- define "pipeguard.volumeCouldReachAHostPath" -}}
[object.?spec.?hostPath.?path, object.?spec.?local.?path].exists(given, given.hasValue() &&
  [given.value()].exists(path, {{ include "pipeguard.isHostPath" . }}))
{{- end -}}

{{/*
What the API server does with what could reach no pipe when no replica answers: by the parameters that can refuse it, which
are the second argument. It lets pass what would only be recorded or warned of.
*/}}
{{- define "pipeguard.failurePolicyOf" -}}
{{- $root := index . 0 -}}
{{- $settings := include "pipeguard.settings" $root | fromYaml -}}
{{- $refuses := false -}}
{{- range index . 1 -}}
{{- $refuses = or $refuses (eq (get $settings.parameters .) "Deny") -}}
{{- end -}}
{{- $root.Values.webhook.hostFailurePolicy | default (ternary $settings.webhook.failurePolicy "Ignore" $refuses) -}}
{{- end -}}

{{- define "pipeguard.pathFailurePolicy" -}}
{{- include "pipeguard.failurePolicyOf" (list . (list "equalPower" "hostPaths")) -}}
{{- end -}}

{{- define "pipeguard.processFailurePolicy" -}}
{{- include "pipeguard.failurePolicyOf" (list . (list "hostProcess")) -}}
{{- end -}}
