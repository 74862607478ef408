{{- define "gvDetails" -}}
## {{ .GroupVersionString }}

{{ .Doc }}

{{ range .SortedKinds }}- {{ $.TypeForKind . | markdownRenderTypeLink }}
{{ end }}
{{ range .SortedTypes }}{{ template "type" . }}{{ end }}
{{- end -}}
