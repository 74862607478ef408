{{- define "gvList" -}}
# API reference

Generated from the types in `api/v1alpha1` by `make generate`. How to use them: [operator's guide](operators-guide.md), [author's guide](authors-guide.md).

{{ range . }}{{ template "gvDetails" . }}{{ end }}
{{- end -}}
