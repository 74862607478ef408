{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The metadata of every Kubernetes object.
{{- else -}}
{{ markdownRenderFieldDoc .Doc }}
{{- end -}}
{{- end -}}
