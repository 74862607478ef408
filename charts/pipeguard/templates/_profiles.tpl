{{/*
The drivers that are enabled, by name: what files/drivers.yaml has of them, with what the values set in its place. modes are those that
are published and wanted, and of a driver without service accounts not HostProcess, which no subject permits to everybody.
*/}}
{{- define "pipeguard.drivers" -}}
{{- range $old, $new := dict "awsEbs" "aws-ebs" "gcePd" "gce-pd" -}}
{{- if hasKey $.Values.drivers $old -}}
{{- fail (printf "drivers.%s is drivers.%s now, as the node proxy calls it: rename the value" $old $new) -}}
{{- end -}}
{{- end -}}
{{- $enabled := dict -}}
{{- range $name, $published := .Files.Get "files/drivers.yaml" | fromYaml -}}
{{- $values := get $.Values.drivers $name -}}
{{- if $values.enabled -}}
{{- $driver := dict "images" list "shares" list "containers" (list $published.container) "modes" (keys $published.modes | sortAlpha) -}}
{{- range $key, $value := pick $published "namespace" "serviceAccounts" "pipes" "methods" -}}
{{- $_ := set $driver $key $value -}}
{{- end -}}
{{- range $key, $value := $values -}}
{{- $_ := set $driver $key $value -}}
{{- end -}}
{{- range $driver.modes -}}
{{- if not (hasKey $published.modes .) -}}
{{- fail (printf "drivers.%s.modes: its manifests have no mode %s, but %s" $name . (keys $published.modes | sortAlpha | join " and ")) -}}
{{- end -}}
{{- end -}}
{{- if not $driver.serviceAccounts -}}
{{- $_ := set $driver "modes" (without $driver.modes "HostProcess") -}}
{{- if not $driver.modes -}}
{{- fail (printf "drivers.%s: in the mode HostProcess it needs serviceAccounts: otherwise anyone who can create pods in its namespace controls the nodes" $name) -}}
{{- end -}}
{{- end -}}
{{- $containers := dict -}}
{{- range $mode := $driver.modes -}}
{{- range $container, $facts := get $published.modes $mode -}}
{{- $known := get $containers $container | default (dict "images" list "hostPaths" list) -}}
{{- $_ := set $known "images" (concat $known.images $facts.images | uniq) -}}
{{- $_ := set $known "hostPaths" (concat $known.hostPaths ($facts.hostPaths | default list) | uniq) -}}
{{- if eq $mode "HostProcess" -}}
{{- $_ := set $known "runAsUserNames" $published.runAsUserNames -}}
{{- end -}}
{{- $_ := set $containers $container $known -}}
{{- end -}}
{{- end -}}
{{- $_ := set $driver "published" (dict "container" $published.container "containers" $containers) -}}
{{- if $driver.shares -}}
{{- if and $driver.methods (not (has "NewSmbGlobalMapping" $driver.methods)) -}}
{{- fail (printf "drivers.%s.shares: the driver maps no shares" $name) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $enabled $name $driver -}}
{{- end -}}
{{- end -}}
{{- toYaml $enabled -}}
{{- end -}}

{{/* The pods of the system that are enabled, by name: what files/system.yaml has of them, with what the values set in its place. */}}
{{- define "pipeguard.system" -}}
{{- $enabled := dict -}}
{{- range $name, $published := .Files.Get "files/system.yaml" | fromYaml -}}
{{- $values := get $.Values.system $name -}}
{{- if $values.enabled -}}
{{- $pods := set (deepCopy $published) "images" list -}}
{{- range $key, $value := $values -}}
{{- $_ := set $pods $key $value -}}
{{- end -}}
{{- $_ := set $enabled $name $pods -}}
{{- end -}}
{{- end -}}
{{- toYaml $enabled -}}
{{- end -}}

{{/* Patterns of images of repositories, with any tag or digest or none. */}}
{{- define "pipeguard.imagesOf" -}}
{{- $patterns := list -}}
{{- range . -}}
{{- $patterns = concat $patterns (list . (printf "%s:*" .) (printf "%s@*" .)) -}}
{{- end -}}
{{- toYaml $patterns -}}
{{- end -}}

{{/*
What a subject says of containers beside their names: .who with namespace, serviceAccounts and images that replace the published ones;
.facts with the published images, hostPaths and runAsUserNames of the containers; .kubelet. Nor are host paths permitted to everybody.
*/}}
{{- define "pipeguard.subject" -}}
{{- $subject := pick .who "namespace" "serviceAccounts" -}}
{{- $_ := set $subject "images" (.who.images | default (include "pipeguard.imagesOf" .facts.images | fromYamlArray)) -}}
{{- with .facts.runAsUserNames -}}
{{- $_ := set $subject "hostProcess" (dict "runAsUserNames" .) -}}
{{- end -}}
{{- if and .facts.hostPaths .who.serviceAccounts -}}
{{- $paths := list -}}
{{- range .facts.hostPaths -}}
{{- $paths = append $paths (ternary (printf "%s%s" $.kubelet (trimPrefix "C:\\var\\lib\\kubelet" .)) . (hasPrefix "C:\\var\\lib\\kubelet" .)) -}}
{{- end -}}
{{- $_ := set $subject "hostPaths" $paths -}}
{{- end -}}
{{- toYaml $subject -}}
{{- end -}}

{{/*
Policies of the release: policies of the values, and those of drivers, of pods of the system and of the node component. A driver's own
container is the subject of a policy with the driver's pipes; the other containers of its pods are subjects of one without pipes, for
admission alone. Each has the action of the parameters unless it sets one.
*/}}
{{- define "pipeguard.policies" -}}
{{- $kubelet := .Values.node.kubeletPath -}}
{{- $made := dict -}}
{{- range $name, $driver := include "pipeguard.drivers" . | fromYaml -}}
{{- $subject := include "pipeguard.subject" (dict "who" $driver "facts" (get $driver.published.containers $driver.published.container) "kubelet" $kubelet) | fromYaml -}}
{{- $_ := merge $subject (dict "name" "node" "containers" $driver.containers) -}}
{{- $policy := dict "subjects" (list $subject) -}}
{{- if has "Pipes" $driver.modes -}}
{{- $_ := set $policy "pipes" $driver.pipes -}}
{{- $node := dict "pathPrefixes" (list (printf "%s\\plugins" $kubelet) (printf "%s\\pods" $kubelet)) -}}
{{- range $key, $value := pick $driver "methods" "shares" -}}
{{- if $value -}}
{{- $_ := set $node $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $subject "node" $node -}}
{{- end -}}
{{- $_ := set $made $name (dict "of" (printf "drivers.%s" $name) "policy" $policy) -}}
{{- $sidecars := list -}}
{{- range $container, $facts := omit $driver.published.containers $driver.published.container -}}
{{- $sidecar := include "pipeguard.subject" (dict "who" $driver "facts" $facts "kubelet" $kubelet) | fromYaml -}}
{{- if or $sidecar.hostProcess $sidecar.hostPaths -}}
{{- $sidecars = append $sidecars (merge $sidecar (dict "name" $container "containers" (list $container))) -}}
{{- end -}}
{{- end -}}
{{- if $sidecars -}}
{{- $_ := set $made (printf "%s-sidecars" $name) (dict "of" (printf "drivers.%s" $name) "policy" (dict "subjects" $sidecars)) -}}
{{- end -}}
{{- end -}}
{{- range $name, $pods := include "pipeguard.system" . | fromYaml -}}
{{- $subjects := list -}}
{{- range $container, $facts := $pods.containers -}}
{{- $_ := set $facts "runAsUserNames" $pods.runAsUserNames -}}
{{- $subject := include "pipeguard.subject" (dict "who" $pods "facts" $facts "kubelet" $kubelet) | fromYaml -}}
{{- if or $subject.hostProcess $subject.hostPaths -}}
{{- $subjects = append $subjects (merge $subject (dict "name" $container "containers" (list $container))) -}}
{{- end -}}
{{- end -}}
{{- if $subjects -}}
{{- $_ := set $made $name (dict "of" (printf "system.%s" $name) "policy" (dict "subjects" $subjects)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.node.enabled -}}
{{- /* Any tag and digest of the repository: a new release's DaemonSet comes before the webhook has read this. */ -}}
{{- $node := include "pipeguard.node" . -}}
{{- $subject := dict "name" "proxy" "namespace" (include "pipeguard.nodeNamespace" .) "serviceAccounts" (list $node) "containers" (list "proxy") -}}
{{- $_ := set $subject "images" (include "pipeguard.imagesOf" (list .Values.node.image.repository) | fromYamlArray) -}}
{{- $_ := set $subject "hostProcess" (dict "runAsUserNames" (list "NT AUTHORITY\\SYSTEM")) -}}
{{- $_ := set $made $node (dict "of" "node.enabled" "policy" (dict "subjects" (list $subject))) -}}
{{- end -}}
{{- $policies := deepCopy (.Values.policies | default dict) -}}
{{- $action := (include "pipeguard.settings" . | fromYaml).parameters.action -}}
{{- range $name, $one := $made -}}
{{- if hasKey $policies $name -}}
{{- fail (printf "policies.%s has the name of a policy of %s: give it another" $name $one.of) -}}
{{- end -}}
{{- $_ := set $policies $name $one.policy -}}
{{- end -}}
{{- if ne $action "Deny" -}}
{{- range $policies -}}
{{- if .pipes -}}
{{- $_ := set . "admission" (merge (.admission | default dict) (dict "action" $action)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $policies -}}
{{- end -}}

{{/* Registries of images or repositories, sorted. A name without a registry, as of Docker Hub, has none. */}}
{{- define "pipeguard.registriesOf" -}}
{{- $registries := list -}}
{{- range . -}}
{{- $first := splitList "/" . | first -}}
{{- if and (contains "/" .) (regexMatch "[.:]|^localhost$" $first) -}}
{{- $registries = append $registries $first -}}
{{- end -}}
{{- end -}}
{{- $registries | uniq | sortAlpha | toYaml -}}
{{- end -}}

{{/* Says if images that are set are of registries that the published ones are not of: .key of the value, .images, .containers. */}}
{{- define "pipeguard.otherRegistries" -}}
{{- $published := list -}}
{{- range .containers -}}
{{- $published = concat $published .images -}}
{{- end -}}
{{- $usual := include "pipeguard.registriesOf" $published | fromYamlArray -}}
{{- $others := list -}}
{{- range include "pipeguard.registriesOf" .images | fromYamlArray -}}
{{- if not (has . $usual) -}}
{{- $others = append $others . -}}
{{- end -}}
{{- end -}}
{{- with $others -}}
{{- printf "%s.images is of %s, and the published images are of %s: who can push there decides what runs." $.key (join ", " .) (join ", " $usual) -}}
{{- end -}}
{{- end -}}

{{/* The mode in which a DaemonSet runs a driver, or nothing if it is none of the driver's for Windows: .spec of its pods, .driver. */}}
{{- define "pipeguard.modeOf" -}}
{{- $names := .driver.containers | default (list .driver.published.container) -}}
{{- if or (not .driver.serviceAccounts) (has (.spec.serviceAccountName | default "default") .driver.serviceAccounts) -}}
{{- $isDriver := false -}}
{{- $isHost := dig "securityContext" "windowsOptions" "hostProcess" false .spec -}}
{{- range .spec.containers -}}
{{- if has .name $names -}}
{{- $isDriver = true -}}
{{- $isHost = dig "securityContext" "windowsOptions" "hostProcess" $isHost . -}}
{{- end -}}
{{- end -}}
{{- $pipes := list -}}
{{- range .spec.volumes -}}
{{- $pipes = ternary (append $pipes .name) $pipes (dig "hostPath" "path" "" . | hasPrefix "\\\\.\\pipe\\") -}}
{{- end -}}
{{- if and $isDriver $isHost -}}
HostProcess
{{- else if and $isDriver $pipes -}}
Pipes
{{- end -}}
{{- end -}}
{{- end -}}
