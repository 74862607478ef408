{{- define "type" -}}
{{- if markdownShouldRenderType . -}}
### {{ .Name }}

{{ .Doc }}
{{ if .IsAlias }}
A {{ markdownRenderTypeLink .UnderlyingType }}.
{{ end }}{{ if .Validation }}
Checked:
{{ range .Validation }}
- {{ . }}{{ end }}
{{ end }}{{ if .References }}
Used in: {{ range $i, $r := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}
{{ end }}{{ if .Members }}
| field | what it is | default | checked |
|---|---|---|---|
{{ if .GVK }}| `apiVersion` _string_ | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` _string_ | `{{ .GVK.Kind }}` | | |
{{ end }}{{ range .Members }}| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ range .Validation }}{{ markdownRenderFieldDoc . }} <br />{{ end }} |
{{ end }}{{ end }}{{ if .EnumValues }}
| value | what it means |
|---|---|
{{ range .EnumValues }}| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end }}{{ end }}
{{ end -}}
{{- end -}}
