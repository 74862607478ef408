//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// shape is a review that repeats something.
type shape struct {
	name string
	n    int // how often
	text string
}

func shapes() []shape {
	all := []shape{
		{name: "mounts", n: 1000}, {name: "mounts", n: 3000}, {name: "mounts", n: 50}, {name: "mounts of volumes of one name", n: 10_000},
		{name: "containers", n: 3000}, {name: "volumes", n: 5000}, {name: "groups", n: 1200}, {name: "annotations", n: 20_000},
		{name: "bytes of the name", n: 200_000}, {name: "mounts of a Deployment", n: 3000}, {name: "mounts of an update", n: 1500},
		{name: "ephemeral containers", n: 3000}, {name: "mounts with a subPathExpr", n: 2000},
	}
	for i, s := range all {
		all[i].text = s.review()
	}
	return all
}

const (
	pipeVolume = `"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe\\csi-proxy-disk-v1"}}]`
	aContainer = `"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"C:/m"}]}]`
)

// small is a review that is light, and denied.
var small = request("", "Pod", "n", "", "", `"spec":{`+pipeVolume+`,`+aContainer+`}`)

// review writes the AdmissionReview.
func (s shape) review() string {
	mounted := `"containers":[{"name":"c","image":"i","volumeMounts":[` + repeat(s.n, `{"name":"v","mountPath":"C:/m%d"}`) + `]}]`
	switch s.name {
	case "mounts":
		return request("", "Pod", "n", "", "", `"spec":{`+pipeVolume+`,`+mounted+`}`)
	case "mounts of volumes of one name":
		side := 1
		for side*side < s.n {
			side++
		}
		return request("", "Pod", "n", "", "", `"spec":{"volumes":[`+repeat(side, `{"name":"","hostPath":{"path":"\\\\.\\pipe"}}`)+`],"containers":[{"volumeMounts":[`+repeat(side, `{}`)+`]}]}`)
	case "containers":
		return request("", "Pod", "n", "", "", `"spec":{`+pipeVolume+`,"containers":[`+repeat(s.n, `{"name":"c%d","volumeMounts":[{"name":"v"}]}`)+`]}`)
	case "volumes":
		return request("", "Pod", "n", "", "", `"spec":{"volumes":[`+repeat(s.n, `{"name":"v%d","hostPath":{"path":"\\\\.\\pipe\\csi-proxy-%d"}}`)+`]}`)
	case "groups":
		return request("", "Pod", "n", `"userInfo":{"username":"u","groups":[`+repeat(s.n, `"group-%d-of-some-length"`)+`]},`, "", `"spec":{`+pipeVolume+`,`+aContainer+`}`)
	case "annotations":
		return request("", "Pod", "n", "", `,"annotations":{`+repeat(s.n, `"a%d":""`)+`}`, `"spec":{`+pipeVolume+`,`+aContainer+`}`)
	case "bytes of the name":
		return request("", "Pod", strings.Repeat("n", s.n), "", "", `"spec":{`+pipeVolume+`,`+aContainer+`}`)
	case "mounts of a Deployment":
		return request("apps", "Deployment", "n", "", "", `"spec":{"template":{"spec":{`+pipeVolume+`,`+mounted+`}}}`)
	case "mounts of an update":
		old := `"oldObject":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"},"spec":{` + pipeVolume + `,` + mounted + `}},`
		return strings.Replace(request("", "Pod", "n", old, "", `"spec":{`+pipeVolume+`,`+mounted+`}`), `"CREATE"`, `"UPDATE"`, 1)
	case "ephemeral containers":
		text := request("", "Pod", "n", "", "", `"spec":{`+pipeVolume+`,"ephemeralContainers":[`+repeat(s.n, `{"name":"c%d","volumeMounts":[{"name":"v"}]}`)+`]}`)
		return strings.Replace(text, `"operation":"CREATE"`, `"subResource":"ephemeralcontainers","operation":"UPDATE"`, 1)
	case "mounts with a subPathExpr":
		return request("", "Pod", "n", "", "", `"spec":{"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe"}}],"containers":[{"volumeMounts":[`+repeat(s.n, `{"name":"v","subPathExpr":"$(A)\\%d"}`)+`]}]}`)
	}
	panic("no shape " + s.name)
}

// request is the review of an object. more stands in the request, metadata and body in the object.
func request(group, kind, name, more, metadata, body string) string {
	version := strings.TrimPrefix(group+"/v1", "/")
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":%q,"version":"v1","kind":%q},"namespace":"shop","name":%q,"operation":"CREATE",%s"object":{"apiVersion":%q,"kind":%q,"metadata":{"name":"n"%s},%s}}}`,
		group, kind, name, more, version, kind, metadata, body)
}

// repeat lists an entry n times, numbered.
func repeat(n int, entry string) string {
	list := slices.Repeat([]string{entry}, n)
	for i := range list {
		list[i] = strings.ReplaceAll(entry, "%d", fmt.Sprint(i))
	}
	return strings.Join(list, ",")
}
