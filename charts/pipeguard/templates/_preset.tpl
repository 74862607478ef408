{{/*
The settings that a preset sets, as they are in force: by the value's section, and in it by its key. What the values set wins over the
preset; files/presets.yaml has what each sets.
*/}}
{{- define "pipeguard.settings" -}}
{{- $settings := dict "parameters" dict "webhook" dict "floor" dict -}}
{{- range $path, $value := include "pipeguard.presetSettings" . | fromYaml -}}
{{- $at := splitList "." $path -}}
{{- $own := index $.Values (first $at) | default dict -}}
{{- if ne $value "none" -}}
{{- $_ := set (get $settings (first $at)) (last $at) (get $own (last $at) | default $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* What the preset of the values sets, by the paths of the values. */}}
{{- define "pipeguard.presetSettings" -}}
{{- $name := .Values.preset | default "default" -}}
{{- range .Files.Get "files/presets.yaml" | fromYamlArray -}}
{{- if eq .name $name -}}
{{- toYaml .settings -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The preset in force, with the values that were set to something else: "strict, but for parameters.hostProcess: Audit". Say of internal/preset does the same. */}}
{{- define "pipeguard.preset" -}}
{{- $others := list -}}
{{- range $path, $value := include "pipeguard.presetSettings" . | fromYaml -}}
{{- $at := splitList "." $path -}}
{{- $own := get (index $.Values (first $at) | default dict) (last $at) -}}
{{- if kindIs "map" $own -}}
{{- $own = keys $own | sortAlpha | join " " -}}
{{- end -}}
{{- if and $own (ne (toString $own) $value) -}}
{{- $others = append $others (printf "%s: %s" $path $own) -}}
{{- end -}}
{{- end -}}
{{- .Values.preset | default "default" -}}
{{- with $others }}, but for {{ join ", " . }}{{ end -}}
{{- end -}}
