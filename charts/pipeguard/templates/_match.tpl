{{/*
What the API server asks the webhook about. Everything else never leaves the API server, so that pods of CNI, of
kube-proxy on Linux and of the webhook itself do not depend on it.
*/}}

{{/*
The part of a regular expression, after the first slash, of plain paths that are to be judged nevertheless: what names
devices, what is below a directory of equal power, and that directory's parents.
*/}}
{{- define "pipeguard.judgedPaths" -}}
{{- $judged := list "device" "dosdevices" "etc/kubernetes" "etc/?$" "global" "program" "sessions" "silos" "users" "windows" -}}
{{- range .Values.parameters.equalPowerPaths -}}
{{- $path := . | lower | replace "\\" "/" | trimSuffix "/" -}}
{{- if hasPrefix "c:/" $path -}}
{{- $parents := list -}}
{{- $names := splitList "/" (trimPrefix "c:/" $path) -}}
{{- range $i, $name := $names -}}
{{- $parents = append $parents (regexQuoteMeta $name) -}}
{{- $end := lt (add1 $i) (len $names) | ternary "/?$" "" -}}
{{- $judged = append $judged (printf "%s%s" (join "/" $parents) $end) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "|" ($judged | uniq | sortAlpha) -}}
{{- end -}}

{{/*
The longest path that is looked at, in characters. A longer one is none that keeps nodes running, and is sent.
*/}}
{{- define "pipeguard.longestPath" -}}256{{- end -}}

{{/*
How many volumes, containers of a kind or annotations are looked at; an object with more is sent. The API server stops
evaluating an expression at a cost of 1,000,000 (PerCallLimit of k8s.io/apiserver/pkg/apis/cel), and then an object that
nobody has looked at passes if failurePolicy is Ignore. Nearly all of the cost is that of the two regular expressions of
isPlainPath: a tenth of the path's length times a quarter of the expression's. This keeps it below 400,000 for the volumes
and 50,000 for the rest, whatever parameters.equalPowerPaths adds to the second expression.
*/}}
{{- define "pipeguard.mostItems" -}}
{{- $path := add1 (div (include "pipeguard.longestPath" .) 10) -}}
{{- $expressions := add 20 (div (len (include "pipeguard.judgedPaths" .)) 4) -}}
{{- min 400 (div 400000 (add 100 (mul $path $expressions))) -}}
{{- end -}}

{{/*
How many mounts of all containers are looked at; an object with more is sent. This keeps the cost of their subPaths below
350,000: a mount has a subPath or a subPathExpr, which the API server looks at before.
*/}}
{{- define "pipeguard.mostMounts" -}}2000{{- end -}}

{{/*
CEL: the text is anything but a subPath as those of Linux pods are: one with another character, a backslash or a blank above
all, or with two dots in a row. The API server refuses ".." between slashes alone.
*/}}
{{- define "pipeguard.isOddSubPath" -}}
{{ . }}.size() > 128 || !{{ . }}.matches(r'^\.?([A-Za-z0-9_+@/$()-]+\.?)*$')
{{- end -}}

{{/*
CEL: the path in the variable "path" is one that only Linux can mean, or that names nothing of interest on Windows. No
name in it is "." or ".." or ends in a dot, which Windows would leave out.
*/}}
{{- define "pipeguard.isPlainPath" -}}
path.size() <= {{ include "pipeguard.longestPath" . }} && path.matches(r'^(/[A-Za-z0-9._+@-]*[A-Za-z0-9_+@-])+/?$') && !path.contains('..') && !path.matches(r'(?i)^/({{ include "pipeguard.judgedPaths" . }})')
{{- end -}}

{{/*
CEL: a pod could reach a pipe. spec and metadata are expressions for the parts of the pod or template; a part that is
missing has nothing that could. An annotation of microsoft.com can make a HostProcess container; a key has at most 317
characters, and where others than those of ASCII fold to these, other programs may read it so. Sizes come first: they cost next to nothing.
*/}}
{{- define "pipeguard.podCouldReachAPipe" -}}
[{{ .spec }}].exists(spec,
  [spec.?volumes, spec.?containers, spec.?initContainers, spec.?ephemeralContainers, {{ .metadata }}.?annotations].exists(items,
    items.hasValue() && items.value() != null && items.value().size() > {{ include "pipeguard.mostItems" .root }}) ||
  [spec.?containers, spec.?initContainers, spec.?ephemeralContainers].map(list, list.hasValue() && list.value() != null ?
    list.value().map(container, container.?volumeMounts.orValue([]).size()).sum() : 0).sum() > {{ include "pipeguard.mostMounts" .root }} ||
  spec.?volumes.orValue([]).exists(volume, has(volume.hostPath) &&
    [volume.hostPath.?path.orValue('')].exists(path, !({{ include "pipeguard.isPlainPath" .root }}))) ||
  spec.?securityContext.?windowsOptions.?hostProcess.orValue(false) ||
  [spec.?containers, spec.?initContainers, spec.?ephemeralContainers].exists(list,
    list.hasValue() && list.value() != null && list.value().exists(container,
      container.?securityContext.?windowsOptions.?hostProcess.orValue(false) ||
      container.?volumeMounts.orValue([]).exists(mount,
        has(mount.subPath) && ({{ include "pipeguard.isOddSubPath" "mount.subPath" }}) ||
        has(mount.subPathExpr) && ({{ include "pipeguard.isOddSubPath" "mount.subPathExpr" }})))) ||
  {{ .metadata }}.?annotations.orValue({}).exists(key, key.size() > 317 || !key.matches(r'^[!-~]*$') || key.lowerAscii().contains('microsoft.com')))
{{- end -}}

{{/* CEL: a PersistentVolume could reach a pipe. */}}
{{- define "pipeguard.volumeCouldReachAPipe" -}}
[object.?spec.?hostPath.?path, object.?spec.?local.?path].exists(given, given.hasValue() &&
  [given.value()].exists(path, !({{ include "pipeguard.isPlainPath" . }})))
{{- end -}}
